//! Reads the rows of an Arrow file or stream as reviews: `.arrow` and `.feather` files, caches of Hugging Face
//! `datasets`. Record batches are read in parallel.
//!
//! The text is one or several columns of texts, the rating a column of numbers, texts or booleans, all at the top level of the
//! schema. Other columns are not read. Texts are decoded as bytes, so that invalid UTF-8 is repaired as in a line.

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
use corpus::format::Format;
use corpus::review::RatingValue;

use super::columns::{Joined, visit_row};
use super::{Content, Error, Part, Source};

pub(super) use batches::Dictionaries;
use layout::Layout;
use messages::Block;

/// Whether a file with this beginning is an Arrow file or stream. No line starts with these bytes.
pub(super) fn is_beginning(beginning: &[u8]) -> bool {
    beginning.starts_with(messages::FILE_MAGIC) || beginning.starts_with(&messages::CONTINUATION)
}

/// A record batch of a file.
#[derive(Debug)]
pub(super) struct Batch {
    layout: Arc<Layout>,
    block: Block,
    /// Number of dictionary batches before this batch.
    n_dictionaries: usize,
    /// Number of rows in the file before this batch.
    first_row: u64,
}

/// The record batches of a file.
pub(super) fn batches(source: &Source, file: &File, format: &Format) -> Result<Vec<Batch>, Error> {
    let Format::Json(fields) = format else {
        return Err(Error::NotLines { input: source.name.clone(), kind: "an Arrow", format: format.name() });
    };
    let refused = |fault| refused(source, fault);
    let contents = guarded(|| messages::contents(file)).map_err(refused)?;
    let layout =
        Arc::new(Layout::of(source, contents.schema, contents.version, contents.dictionaries, fields)?);
    let mut first_row = 0;
    let mut batches = Vec::with_capacity(contents.batches.len());
    for found in contents.batches {
        let layout = Arc::clone(&layout);
        batches.push(Batch { layout, block: found.block, n_dictionaries: found.n_dictionaries, first_row });
        first_row += found.n_rows;
    }
    Ok(batches)
}

impl Batch {
    /// Reads all rows, with their numbers in the file.
    pub(super) fn each_row<E: From<Error>>(
        &self,
        file: &File,
        dictionaries: &mut Dictionaries,
        part: &Part<'_>,
        visit: &mut impl FnMut(u64, Content<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let refused = |fault| refused(part.source, fault);
        let read = guarded(|| {
            dictionaries.advance(file, &self.layout, self.n_dictionaries)?;
            batches::read(file, &self.layout, &self.block, dictionaries)
        });
        let rows = read.map_err(refused)?;
        let (texts, rating) = self.layout.columns(&rows);
        let mut joined = Joined::default();
        for row in 0..rows.num_rows() {
            if row.is_multiple_of(STOP_ROWS) && part.state.is_stopped() {
                return Ok(());
            }
            let text = joined.of(texts.iter().map(|column| text(*column, row)));
            let rating = rating_value(rating, row);
            visit_row(self.first_row + row as u64, text, rating, part.line_bytes_max, visit)?;
        }
        part.state.advance(self.block.bytes());
        Ok(())
    }
}

/// Number of rows between two checks whether reading was stopped.
const STOP_ROWS: usize = 1024;

impl Layout {
    /// The columns of the text and the column of the rating.
    fn columns<'a>(&self, rows: &'a RecordBatch) -> (Vec<&'a dyn Array>, &'a dyn Array) {
        let column = |&at: &usize| rows.column(at).as_ref();
        (self.text.iter().map(column).collect(), column(&self.rating))
    }
}

/// The text of a row, if it is not null.
fn text(column: &dyn Array, row: usize) -> Option<&[u8]> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Binary => Some(column.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Some(column.as_binary::<i64>().value(row)),
        DataType::BinaryView => Some(column.as_binary_view().value(row)),
        DataType::Dictionary(..) => {
            let column = column.as_any_dictionary();
            text(column.values().as_ref(), usize::try_from(integer(column.keys(), row)?).ok()?)
        }
        _ => None,
    }
}

/// The rating of a row.
fn rating_value(column: &dyn Array, row: usize) -> RatingValue<'_> {
    if column.is_null(row) {
        return RatingValue::Missing;
    }
    let scaled = |unscaled: f64, scale: i8| RatingValue::Number(unscaled / 10_f64.powi(scale.into()));
    match column.data_type() {
        DataType::Float16 => RatingValue::Number(column.as_primitive::<Float16Type>().value(row).into()),
        DataType::Float32 => RatingValue::Number(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => RatingValue::Number(column.as_primitive::<Float64Type>().value(row)),
        DataType::UInt64 => RatingValue::Number(column.as_primitive::<UInt64Type>().value(row) as f64),
        &DataType::Decimal32(_, scale) => {
            scaled(column.as_primitive::<Decimal32Type>().value(row).into(), scale)
        }
        &DataType::Decimal64(_, scale) => {
            scaled(column.as_primitive::<Decimal64Type>().value(row) as f64, scale)
        }
        &DataType::Decimal128(_, scale) => {
            scaled(column.as_primitive::<Decimal128Type>().value(row) as f64, scale)
        }
        DataType::Boolean => RatingValue::of_bool(column.as_boolean().value(row)),
        DataType::Dictionary(..) => {
            let column = column.as_any_dictionary();
            match integer(column.keys(), row).and_then(|key| usize::try_from(key).ok()) {
                Some(key) => rating_value(column.values().as_ref(), key),
                None => RatingValue::Missing,
            }
        }
        _ => match integer(column, row) {
            Some(number) => RatingValue::Number(number as f64),
            None => text(column, row).map_or(RatingValue::Missing, RatingValue::Text),
        },
    }
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
pub(crate) enum Fault {
    /// The operating system returned an error.
    Io(io::Error),
    /// The content is invalid.
    Damaged(String),
    /// A batch needs more memory than allowed.
    Large { bytes: u64 },
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ArrowError> for Fault {
    fn from(error: ArrowError) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl Fault {
    fn damaged(found: &str) -> Self {
        Self::Damaged(found.to_owned())
    }
}

/// Calls the decoder, which panics on some damaged files.
fn guarded<T>(decode: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(Fault::damaged("its decoder panicked, see the message above")))
}

fn refused(source: &Source, fault: Fault) -> Error {
    let input = source.name.clone();
    match fault {
        Fault::Io(error) => source.unreadable("read it", error),
        Fault::Damaged(found) => Error::Damaged { input, kind: "Arrow", found },
        Fault::Large { bytes } => Error::LargeBatch { input, bytes, most: batches::BYTES_MAX },
    }
}
