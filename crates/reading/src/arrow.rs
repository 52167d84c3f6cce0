//! Reads the rows of an Arrow file or stream as reviews: `.arrow` and `.feather` files, caches of Hugging Face
//! `datasets`. Record batches are read in parallel.
//!
//! The text is one or several columns of texts, the rating a column of numbers, texts or booleans. A column may be in a
//! structure, but not in a list. Other columns are read only if they are kept. Texts are decoded as bytes, so that invalid
//! UTF-8 is repaired as in a line. A thread waits for a share of the memory before it reads a batch.

mod batches;
mod layout;
mod messages;

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal32Type, Decimal64Type, Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType};
use corpus::entry::RatingValue;
use corpus::format::Format;
use corpus::rejects::Content;
use program::exit::Exit;

use crate::columns::{Joined, visit_row};
use crate::entry::{RowColumns, RowValue};
use crate::error::Error;
use crate::memory::{Memory, Share};
use crate::options::KeptColumns;
use crate::source::Source;
use crate::state::Part;
use batches::{Dictionaries, Dictionary};
use layout::Layout;
use messages::Block;

/// Whether a file with this beginning is an Arrow file or stream. No line starts with these bytes.
pub(crate) fn is_beginning(beginning: &[u8]) -> bool {
    beginning.starts_with(messages::FILE_MAGIC) || beginning.starts_with(&messages::CONTINUATION)
}

/// A record batch of a file.
#[derive(Debug)]
pub(crate) struct ArrowBatch {
    layout: Arc<Layout>,
    block: Block,
    /// Number of dictionary batches before this batch.
    n_dictionaries: usize,
    /// Number of rows in the file before this batch.
    first_row: u64,
}

/// The record batches of a file, and its columns.
pub(crate) fn batches(
    source: &Source,
    file: &File,
    (format, kept): (&Format, KeptColumns),
) -> Result<(Vec<ArrowBatch>, RowColumns), Error> {
    let Format::Json(fields) = format else {
        return Err(source.not_lines("an Arrow", format));
    };
    let refused = |failure| refused(source, failure);
    let contents = guarded(|| messages::contents(file)).map_err(refused)?;
    let of_file = (contents.schema, contents.version, contents.dictionaries);
    let (layout, columns) = Layout::of(source, of_file, fields, kept)?;
    let layout = Arc::new(layout);
    let mut first_row = 0;
    let mut batches = Vec::with_capacity(contents.batches.len());
    for found in contents.batches {
        let layout = Arc::clone(&layout);
        batches.push(ArrowBatch {
            layout,
            block: found.block,
            n_dictionaries: found.n_dictionaries,
            first_row,
        });
        first_row += found.n_rows;
    }
    Ok((batches, columns))
}

impl ArrowBatch {
    /// Reads all rows, with their numbers in the file.
    pub(crate) fn each_row<E: From<Error>>(
        &self,
        file: &File,
        held: &mut HeldDictionaries<'_>,
        part: &Part<'_>,
        visit: &mut impl FnMut(u64, Content<'_>, &[RowValue<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let refused = |failure| refused(part.source, failure);
        let is_stopped = || part.state.is_stopped();
        let read = guarded(|| held.read(file, self, is_stopped)).map_err(refused)?;
        let Some(rows) = read else { return Ok(()) };
        let columns = |at: usize| BatchColumn::of(&rows, at, &self.layout, &held.dictionaries);
        let column = |at: &usize| guarded(|| columns(*at)).map_err(refused);
        let texts = self.layout.text.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let ratings = column(&self.layout.rating)?;
        let kept = self.layout.kept.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let mut joined = Joined::default();
        for row in 0..rows.num_rows() {
            if row.is_multiple_of(STOP_ROWS) && is_stopped() {
                return Ok(());
            }
            let text = joined.of(texts.iter().map(|column| text(column.value(row)?)));
            let rating = ratings.value(row).map_or(RatingValue::Missing, rating_value);
            let values: Vec<RowValue<'_>> =
                kept.iter().map(|column| column.value(row).map_or(RowValue::Null, row_value)).collect();
            let number = self.first_row + row as u64;
            visit_row((number, &values), text, rating, part.line_bytes_max, visit)?;
        }
        drop((texts, ratings, kept));
        drop(rows);
        held.memory.reduce(held.dictionaries.memory_bytes());
        part.state.advance(self.block.bytes());
        Ok(())
    }
}

/// What a thread holds of a file between two of its batches.
pub(crate) struct HeldDictionaries<'a> {
    dictionaries: Dictionaries,
    memory: Share<'a>,
}

impl<'a> HeldDictionaries<'a> {
    /// Nothing, with nothing of this memory.
    pub(crate) fn of(memory: &'a Memory) -> Self {
        Self { dictionaries: Dictionaries::default(), memory: Share::of(memory) }
    }

    /// Waits for memory and reads a batch. Returns `None` if reading was stopped.
    fn read(
        &mut self,
        file: &File,
        batch: &ArrowBatch,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Option<RecordBatch>, ReadFailure> {
        let planned = batches::planned(file, &batch.layout, &batch.block)?;
        let more = loop {
            let more = self.dictionaries.plan(file, &batch.layout, batch.n_dictionaries)?;
            let bytes = more.memory_bytes + planned.memory_bytes();
            if self.memory.try_change(bytes) {
                break more;
            }
            if self.memory.bytes() == 0 {
                if !self.memory.wait_for(bytes, &is_stopped) {
                    return Ok(None);
                }
                break more;
            }
            // A thread that waits must not hold memory for which others wait.
            self.dictionaries = Dictionaries::default();
            self.memory.reduce(0);
        };
        self.dictionaries.advance(file, &batch.layout, more)?;
        planned.read(file, Arc::clone(&batch.layout.schema), &batch.layout).map(Some)
    }
}

/// Number of rows between two checks whether reading was stopped.
const STOP_ROWS: usize = 1024;

/// A value: a position in an array that has bytes, numbers or booleans.
type Value<'a> = (&'a dyn Array, usize);

/// A column of a record batch.
struct BatchColumn<'a> {
    /// The structures that contain it.
    structures: Vec<&'a dyn Array>,
    /// Its values, or their keys in the dictionary.
    values: &'a dyn Array,
    dictionary: Option<&'a Dictionary>,
}

impl<'a> BatchColumn<'a> {
    fn of(
        rows: &'a RecordBatch,
        at: usize,
        layout: &Layout,
        dictionaries: &'a Dictionaries,
    ) -> Result<Self, ReadFailure> {
        let mut values = rows.column(at).as_ref();
        let mut structures = Vec::new();
        while let Some(structure) = values.as_struct_opt() {
            structures.push(values);
            let inner = structure.columns().first();
            values = inner.ok_or_else(|| ReadFailure::damaged("a structure has no column"))?.as_ref();
        }
        let id = layout.wanted[at].dictionary.as_ref().map(|(id, _)| *id);
        let column = Self { structures, values, dictionary: id.and_then(|id| dictionaries.get(id)) };
        if id.is_some() {
            column.check_keys()?;
        }
        Ok(column)
    }

    /// Returns an error if a key has no value. A dictionary that no batch defines has no values.
    fn check_keys(&self) -> Result<(), ReadFailure> {
        let n_values = self.dictionary.map_or(0, Dictionary::n_values);
        let is_known = |row| key(self.values, row).is_some_and(|key| key < n_values);
        if (0..self.values.len()).all(|row| self.values.is_null(row) || is_known(row)) {
            return Ok(());
        }
        Err(ReadFailure::damaged("a key is not in its dictionary"))
    }

    /// The value of a row, if it is not null.
    fn value(&self, row: usize) -> Option<Value<'a>> {
        if self.values.is_null(row) || self.structures.iter().any(|structure| structure.is_null(row)) {
            return None;
        }
        let Some(dictionary) = self.dictionary else { return Some((self.values, row)) };
        let (values, at) = dictionary.value(key(self.values, row)?)?;
        (!values.is_null(at)).then_some((values, at))
    }
}

/// The key of a row.
fn key(keys: &dyn Array, row: usize) -> Option<u64> {
    u64::try_from(integer(keys, row)?).ok()
}

/// A value of a column of texts.
fn text<'a>((values, at): Value<'a>) -> Option<&'a [u8]> {
    Some(match values.data_type() {
        DataType::Binary => values.as_binary::<i32>().value(at),
        DataType::LargeBinary => values.as_binary::<i64>().value(at),
        DataType::BinaryView => values.as_binary_view().value(at),
        _ => return None,
    })
}

/// A value of a column of ratings.
fn rating_value((values, at): Value<'_>) -> RatingValue<'_> {
    let scaled = |unscaled: f64, scale: i8| RatingValue::Number(unscaled / 10_f64.powi(scale.into()));
    match values.data_type() {
        DataType::Float16 => RatingValue::Number(values.as_primitive::<Float16Type>().value(at).into()),
        DataType::Float32 => RatingValue::Number(values.as_primitive::<Float32Type>().value(at).into()),
        DataType::Float64 => RatingValue::Number(values.as_primitive::<Float64Type>().value(at)),
        DataType::UInt64 => RatingValue::Number(values.as_primitive::<UInt64Type>().value(at) as f64),
        &DataType::Decimal32(_, scale) => {
            scaled(values.as_primitive::<Decimal32Type>().value(at).into(), scale)
        }
        &DataType::Decimal64(_, scale) => {
            scaled(values.as_primitive::<Decimal64Type>().value(at) as f64, scale)
        }
        &DataType::Decimal128(_, scale) => {
            scaled(values.as_primitive::<Decimal128Type>().value(at) as f64, scale)
        }
        DataType::Boolean => RatingValue::of_bool(values.as_boolean().value(at)),
        _ => match integer(values, at) {
            Some(number) => RatingValue::Number(number as f64),
            None => text((values, at)).map_or(RatingValue::Missing, RatingValue::Text),
        },
    }
}

/// A value as it is.
fn row_value(value: Value<'_>) -> RowValue<'_> {
    let (values, at) = value;
    if let Some(values) = values.as_boolean_opt() {
        return RowValue::Bool(values.value(at));
    }
    if *values.data_type() == DataType::UInt64 {
        return RowValue::Unsigned(values.as_primitive::<UInt64Type>().value(at));
    }
    if *values.data_type() == DataType::Float32 {
        return RowValue::Float(values.as_primitive::<Float32Type>().value(at));
    }
    if let Some(whole) = integer(values, at) {
        return RowValue::Whole(whole);
    }
    rating_value(value).into()
}

/// The integer of a row that is not null, if the column has integers.
fn integer(column: &dyn Array, row: usize) -> Option<i64> {
    Some(match column.data_type() {
        DataType::Int8 => column.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => column.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row),
        DataType::UInt8 => column.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => i64::try_from(column.as_primitive::<UInt64Type>().value(row)).ok()?,
        _ => return None,
    })
}

/// Why a file cannot be read.
#[derive(Debug)]
pub(crate) enum ReadFailure {
    /// The operating system returned an error.
    Io(io::Error),
    /// The content is invalid.
    Damaged(String),
    /// A batch needs more memory than allowed.
    Large { bytes: u64 },
    /// A stream ends at this byte, behind a message and without the mark of its end.
    Unclosed { end: u64 },
}

impl From<io::Error> for ReadFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ArrowError> for ReadFailure {
    fn from(error: ArrowError) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl ReadFailure {
    fn damaged(found: &str) -> Self {
        Self::Damaged(found.to_owned())
    }
}

/// Calls the decoder, which panics on some damaged files.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ReadFailure>) -> Result<T, ReadFailure> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(ReadFailure::damaged("its decoder panicked, see the message above")))
}

fn refused(source: &Source, failure: ReadFailure) -> Error {
    match failure {
        ReadFailure::Io(error) => source.failed(error),
        ReadFailure::Damaged(found) => source.damaged("Arrow", &found),
        ReadFailure::Large { bytes } => {
            let most = batches::BYTES_MAX;
            let found = format!("found a record batch or a dictionary of {bytes} bytes, expected at most {most}");
            let remedy = "write the file with smaller batches, or as Parquet";
            source.refused(Exit::BadInput, format!("{found}; {remedy}"))
        }
        ReadFailure::Unclosed { end } => source.refused(
            Exit::BadInput,
            format!(
                "the Arrow file is damaged (no end-of-stream mark at its end, byte {end}): truncated, or its writer did \
                 not close it; write it again"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, Int32Array, StringArray};
    use arrow_ipc::writer::{DictionaryHandling, IpcWriteOptions, StreamWriter};
    use store::S3Options;

    use super::*;

    /// Batches of one row, whose dictionary grows by one text before each, and starts anew before the third.
    fn growing() -> Vec<u8> {
        let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
        let batch = |texts: &[&str]| {
            let last = Int32Array::from(vec![texts.len() as i32 - 1]);
            let texts = Arc::new(StringArray::from(texts.to_vec()));
            let texts: DictionaryArray<Int32Type> = DictionaryArray::new(last, texts);
            let ratings = Int32Array::from(vec![5]);
            RecordBatch::try_from_iter([
                ("reviewText", Arc::new(texts) as Arc<dyn Array>),
                ("overall", Arc::new(ratings) as Arc<dyn Array>),
            ])
            .unwrap()
        };
        let batches =
            [batch(&["a"]), batch(&["a", "b"]), batch(&["c"]), batch(&["c", "d"]), batch(&["c", "d", "e"])];
        let schema = batches[0].schema();
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    }

    #[test]
    fn a_dictionary_grows_without_being_copied_and_replaced_ones_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.arrow");
        std::fs::write(&path, growing()).unwrap();
        let sources = crate::find(&[path.to_str().unwrap().to_owned()], &S3Options::default()).unwrap();
        let file = File::open(&path).unwrap();
        let batches = batches(&sources[0], &file, (&Format::default(), KeptColumns::OfFields)).unwrap().0;
        let layout = &batches[0].layout;
        let mut dictionaries = Dictionaries::default();
        let mut texts_of = |n_batches: usize| -> Vec<(String, *const u8)> {
            let n_before = batches[n_batches - 1].n_dictionaries;
            let more = dictionaries.plan(&file, layout, n_before).unwrap();
            let planned_bytes = more.memory_bytes;
            dictionaries.advance(&file, layout, more).unwrap();
            assert!(dictionaries.memory_bytes() <= planned_bytes);
            let (id, _) = layout.wanted.iter().find_map(|column| column.dictionary.clone()).unwrap();
            let dictionary = dictionaries.get(id).unwrap();
            assert!(dictionary.value(dictionary.n_values()).is_none());
            let texts = (0..dictionary.n_values()).map(|key| text(dictionary.value(key).unwrap()).unwrap());
            texts.map(|text| (String::from_utf8(text.to_vec()).unwrap(), text.as_ptr())).collect()
        };
        let names =
            |texts: &[(String, *const u8)]| texts.iter().map(|(text, _)| text.clone()).collect::<String>();
        let (one, two) = (texts_of(1), texts_of(2));
        assert_eq!([names(&one), names(&two)], ["a", "ab"]);
        assert_eq!(two[0].1, one[0].1, "the same memory");
        // From the second to the fourth batch: the third dictionary replaces the first two.
        let (four, five) = (texts_of(4), texts_of(5));
        assert_eq!([names(&four), names(&five)], ["cd", "cde"]);
        assert_eq!(five[1].1, four[1].1, "the same memory");
    }
}
