//! Reads the rows of a Parquet file as reviews: the columns of the text and the rating, read in parallel, row
//! group by row group.
//!
//! The text is one or several columns of bytes. The rating is a column of numbers or booleans, or of bytes that are
//! parsed like a JSON string. A column may be null, and it may be in a structure, but not in a list.

mod ratings;

use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use corpus::format::{FieldPath, Format};
use corpus::lines::LineContent;
use corpus::rejects::Content;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use program::exit::Exit;
use tables::foreign::{ChunkMemory, Excess, Pages, check_footer, chunk_memory};

use crate::columns::{Joined, bad_column, no_column, visit_row};
use crate::entry::{RowColumns, RowValue};
use crate::error::Error;
use crate::members::FileFrom;
use crate::memory::{Memory, Share};
use crate::options::{KeptColumns, ReadingOptions};
use crate::source::Source;
use crate::state::Part;
use ratings::{Ratings, is_rating};

/// Magic bytes of such a file. No review of any format starts with them.
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";

/// Whether a first line is the beginning of such a file, which cannot be read line by line.
pub(crate) fn is_beginning(line: LineContent<'_>) -> bool {
    matches!(line, LineContent::Bytes(line) if line.starts_with(MAGIC))
}

/// Pages that exceed the memory are read one after the other, up to this multiple of it.
const PAGES_PART: u64 = 2;
/// Maximum number of rows read at once, unless their texts are long.
const ROWS_MAX: usize = 1024;
/// Target size of texts read at once. If it is exceeded, fewer rows are read next time.
const BATCH_BYTES: usize = 1 << 20;

/// The decoded metadata of a file take up to this multiple of their size,
const FOOTER_PART: u64 = 16;
/// and may always have this many bytes.
const FOOTER_BYTES: u64 = 4 << 20;

/// A row group of a file, and the metadata of its columns that are read.
#[derive(Debug)]
pub(crate) struct RowGroup {
    texts: Vec<ColumnChunkMetaData>,
    rating: ColumnChunkMetaData,
    /// The columns whose values are kept.
    kept: Vec<ColumnChunkMetaData>,
    /// Number of rows in the file before this group.
    first_row: u64,
    n_rows: usize,
    /// The row group's share of the file's size.
    bytes: u64,
}

/// The row groups of a file, and its columns.
pub(crate) fn row_groups(
    source: &Source,
    file: File,
    options: &ReadingOptions,
) -> Result<(Vec<RowGroup>, RowColumns), Error> {
    let ReadingOptions { ref format, batches_bytes: memory_bytes, .. } = *options;
    let Format::Json(fields) = format else {
        return Err(source.not_lines("a Parquet", format));
    };
    let footer_bytes_max = (memory_bytes as u64 / FOOTER_PART).max(FOOTER_BYTES);
    let footer = check_footer(&file, footer_bytes_max).map_err(|error| source.failed(error))?;
    footer.map_err(|excess| too_large(source, excess))?;
    let damaged = |error| damaged(source, error);
    let chunks = Chunks::of(Arc::new(file)).map_err(damaged)?;
    let metadata = guarded(|| ParquetMetaDataReader::new().parse_and_finish(&chunks)).map_err(damaged)?;
    let schema = metadata.file_metadata().schema_descr();
    let text = |path| RequiredColumn { source, path, option: "--text-field" }.text(schema);
    let texts = fields.text.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let rating =
        RequiredColumn { source, path: &fields.rating, option: fields.rating_flag() }.rating(schema)?;
    let (kept, others): (Vec<usize>, Vec<usize>) = match options.columns {
        KeptColumns::OfFields => Default::default(),
        KeptColumns::All => (0..schema.num_columns()).partition(|number| {
            let column = schema.column(*number);
            // Bytes without a type are texts if they are read as such.
            let is_field = texts.contains(number) || *number == rating;
            is_kept(&column) || is_field && column.physical_type() == Type::BYTE_ARRAY
        }),
    };
    let name = |number: usize| schema.column(number).path().parts().join(".");
    let columns = RowColumns {
        names: kept.iter().map(|&number| name(number).into()).collect(),
        others: others.into_iter().map(name).collect(),
    };
    let groups = with_columns(&metadata, chunks.bytes, (&texts, rating, &kept)).map_err(damaged)?;
    Ok((groups, columns))
}

/// Whether the values of a column are kept: texts, numbers and booleans.
fn is_kept(column: &ColumnDescriptor) -> bool {
    let is_plain = match column.logical_type_ref() {
        Some(
            LogicalType::String
            | LogicalType::Enum
            | LogicalType::Json
            | LogicalType::Decimal { .. }
            | LogicalType::Float16
            | LogicalType::Integer(_),
        ) => true,
        Some(_) => false,
        None => match column.converted_type() {
            ConvertedType::NONE => column.physical_type() != Type::BYTE_ARRAY,
            ConvertedType::DATE
            | ConvertedType::TIME_MILLIS
            | ConvertedType::TIME_MICROS
            | ConvertedType::TIMESTAMP_MILLIS
            | ConvertedType::TIMESTAMP_MICROS
            | ConvertedType::INTERVAL
            | ConvertedType::BSON => false,
            _ => true,
        },
    };
    is_plain && column.max_rep_level() == 0 && is_rating(column)
}

/// Keeps only the needed parts of the metadata, which may be large.
fn with_columns(
    metadata: &ParquetMetaData,
    file_bytes: u64,
    (texts, rating, kept): (&[usize], usize, &[usize]),
) -> ParquetResult<Vec<RowGroup>> {
    let mut groups: Vec<RowGroup> = Vec::new();
    let (mut first_row, mut rest_bytes) = (0, file_bytes);
    for group in metadata.row_groups() {
        let number = |number: i64| {
            u64::try_from(number)
                .map_err(|_| ParquetError::General(format!("a row group has the size {number}")))
        };
        let n_rows = number(group.num_rows())?;
        let bytes = number(group.compressed_size())?.min(rest_bytes);
        rest_bytes -= bytes;
        let texts = texts.iter().map(|&text| group.column(text).clone()).collect();
        let rating = group.column(rating).clone();
        let kept = kept.iter().map(|&column| group.column(column).clone()).collect();
        let n_rows_held = usize::try_from(n_rows).expect("memory is addressed by 64 bits");
        groups.push(RowGroup { texts, rating, kept, first_row, n_rows: n_rows_held, bytes });
        first_row += n_rows;
    }
    if let Some(last) = groups.last_mut() {
        last.bytes += rest_bytes;
    }
    Ok(groups)
}

impl RowGroup {
    /// Memory for a page of each column, and the number of rows that can be read at once.
    fn memory(&self, file: &File, source: &Source) -> Result<ChunkMemory, Error> {
        let mut sum = ChunkMemory { bytes: 0, rows_max: ROWS_MAX };
        for chunk in self.texts.iter().chain([&self.rating]).chain(&self.kept) {
            // What is negative is refused by the decoder.
            let size = |number: i64| u64::try_from(number).unwrap_or_default();
            let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            let found = chunk_memory(file, size(start), size(chunk.compressed_size()), ROWS_MAX)
                .map_err(|error| source.failed(error))?;
            let found = found.map_err(|excess| too_large(source, excess))?;
            sum.bytes += found.bytes;
            sum.rows_max = sum.rows_max.min(found.rows_max);
        }
        Ok(sum)
    }

    /// Waits for memory and reads all rows, with their numbers in the file.
    pub(crate) fn each_row<E: From<Error>>(
        &self,
        file: Arc<File>,
        memory: &Memory,
        part: &Part<'_>,
        visit: &mut impl FnMut(u64, Content<'_>, &[RowValue<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let ChunkMemory { bytes: needed, rows_max } = self.memory(&file, part.source)?;
        let most = PAGES_PART * memory.bytes();
        if needed > most {
            let found = format!("pages of {needed} bytes in a row group");
            let remedy = "write the file with smaller pages, or raise --memory of sentimill";
            return Err(too_large(part.source, Excess::of(found, most, remedy)).into());
        }
        let mut share = Share::of(memory);
        if !share.wait_for(needed, || part.state.is_stopped()) {
            return Ok(());
        }
        let damaged = |error| damaged(part.source, error);
        let mut columns = guarded(|| RowGroupColumns::of(self, file)).map_err(damaged)?;
        let (mut read, mut at_once) = (0, (ROWS_MAX / 16).min(rows_max));
        let mut joined = Joined::default();
        while read < self.n_rows {
            if part.state.is_stopped() {
                return Ok(());
            }
            let rows = at_once.min(self.n_rows - read);
            guarded(|| columns.read(rows)).map_err(damaged)?;
            let mut texts: Vec<_> = columns.texts.iter().map(ColumnBuffer::values).collect();
            let mut kept: Vec<_> = columns.kept.iter().map(Ratings::row_values).collect();
            for (row, rating) in columns.ratings.values().enumerate() {
                let values: Vec<RowValue<'_>> =
                    kept.iter_mut().map(|column| column.next().unwrap_or(RowValue::Null)).collect();
                let number = self.first_row + (read + row) as u64;
                let text =
                    joined.of(texts.iter_mut().map(|column| column.next().flatten().map(ByteArray::data)));
                visit_row((number, &values), text, rating, part.line_bytes_max, visit)?;
            }
            read += rows;
            let of_kept: usize = columns.kept.iter().map(Ratings::bytes).sum();
            let bytes = columns.texts.iter().map(ColumnBuffer::bytes).sum::<usize>() + of_kept;
            at_once = if bytes > BATCH_BYTES { at_once / 2 } else { at_once * 2 };
            at_once = at_once.clamp(1, rows_max);
        }
        part.state.advance(self.bytes);
        Ok(())
    }
}

/// The columns of a row group, while they are read.
struct RowGroupColumns {
    texts: Vec<ColumnBuffer<ByteArrayType>>,
    ratings: Ratings,
    kept: Vec<Ratings>,
}

impl RowGroupColumns {
    fn of(group: &RowGroup, file: Arc<File>) -> ParquetResult<Self> {
        let chunks = Arc::new(Chunks::of(file)?);
        let open = |chunk: &ColumnChunkMetaData| -> ParquetResult<ColumnReader> {
            let pages = SerializedPageReader::new(Arc::clone(&chunks), chunk, group.n_rows, None)?;
            let column = chunk.column_descr_ptr();
            let pages = Pages::of(pages, column.max_def_level(), column.max_rep_level());
            Ok(get_column_reader(column, Box::new(pages)))
        };
        let text = |chunk: &ColumnChunkMetaData| match open(chunk)? {
            ColumnReader::ByteArrayColumnReader(reader) => Ok(ColumnBuffer::of(reader, chunk)),
            _ => Err(unexpected(chunk)),
        };
        let texts = group.texts.iter().map(text).collect::<ParquetResult<_>>()?;
        let ratings = |chunk: &ColumnChunkMetaData| Ratings::of(open(chunk)?, chunk);
        let kept = group.kept.iter().map(ratings).collect::<ParquetResult<_>>()?;
        Ok(Self { texts, ratings: ratings(&group.rating)?, kept })
    }

    /// Reads this number of rows, which exist unless the file is damaged.
    fn read(&mut self, rows: usize) -> ParquetResult<()> {
        self.texts.iter_mut().try_for_each(|text| text.read(rows))?;
        self.kept.iter_mut().try_for_each(|column| column.read(rows))?;
        self.ratings.read(rows)
    }
}

/// The error for a column whose row groups have different types.
fn unexpected(chunk: &ColumnChunkMetaData) -> ParquetError {
    ParquetError::General(format!("a row group has values of the type {}", chunk.column_type()))
}

/// A column, and its last values read.
struct ColumnBuffer<T: DataType> {
    reader: ColumnReaderImpl<T>,
    /// The definition level of a non-null value. A column without nulls has no levels.
    full_level: i16,
    levels: Vec<i16>,
    values: Vec<T::T>,
}

impl<T: DataType> ColumnBuffer<T> {
    fn of(reader: ColumnReaderImpl<T>, chunk: &ColumnChunkMetaData) -> Self {
        let full_level = chunk.column_descr().max_def_level();
        Self { reader, full_level, levels: Vec::new(), values: Vec::new() }
    }

    fn read(&mut self, rows: usize) -> ParquetResult<()> {
        self.levels.clear();
        self.values.clear();
        let (read, n_values, _) =
            self.reader.read_records(rows, Some(&mut self.levels), None, &mut self.values)?;
        if self.full_level == 0 {
            self.levels.resize(read, 0);
        }
        let n_full = self.levels.iter().filter(|&&level| level == self.full_level).count();
        let is_whole =
            read == rows && self.levels.len() == rows && n_full == n_values && n_values == self.values.len();
        if is_whole {
            Ok(())
        } else {
            Err(ParquetError::EOF(format!("{read} rows and {n_values} values, expected {rows} rows")))
        }
    }

    /// One value per row.
    fn values(&self) -> impl Iterator<Item = Option<&T::T>> {
        let mut values = self.values.iter();
        self.levels.iter().map(move |&level| if level == self.full_level { values.next() } else { None })
    }
}

impl ColumnBuffer<ByteArrayType> {
    /// Size of the last values.
    fn bytes(&self) -> usize {
        self.values.iter().map(ByteArray::len).sum()
    }
}

/// A required column.
struct RequiredColumn<'a> {
    source: &'a Source,
    path: &'a FieldPath,
    /// The option that names it.
    option: &'static str,
}

impl RequiredColumn<'_> {
    /// Index of the column of texts.
    fn text(&self, schema: &SchemaDescriptor) -> Result<usize, Error> {
        let number = self.number(schema)?;
        match schema.column(number).physical_type() {
            Type::BYTE_ARRAY => Ok(number),
            other => Err(self.bad(&format!("values of the type {other}"), "texts")),
        }
    }

    /// Index of the column of ratings.
    fn rating(&self, schema: &SchemaDescriptor) -> Result<usize, Error> {
        let number = self.number(schema)?;
        let column = schema.column(number);
        if is_rating(&column) {
            return Ok(number);
        }
        Err(self.bad(&format!("values of the type {}", column.physical_type()), "numbers or texts"))
    }

    /// Index of the column with this path, the last one of several, which must be neither a list nor a structure.
    fn number(&self, schema: &SchemaDescriptor) -> Result<usize, Error> {
        let names = self.path.names();
        let find = |is_it: &dyn Fn(&[String]) -> bool| {
            schema.columns().iter().rposition(|column| is_it(column.path().parts()))
        };
        // A column whose name has dots comes before one in a structure.
        let name = self.path.literal();
        let found = find(&|parts| parts == [name.as_str()]).or_else(|| find(&|parts| parts == names));
        match found {
            Some(number) if schema.column(number).max_rep_level() == 0 => Ok(number),
            Some(_) => Err(self.bad("a list", "one value per row")),
            None => {
                if schema.columns().iter().any(|column| column.path().parts().starts_with(names)) {
                    return Err(self.bad("a list or a structure", "one value per row"));
                }
                let names = schema.root_schema().get_fields().iter().map(|field| field.name());
                Err(no_column(self.source, self.path, names, self.option))
            }
        }
    }

    fn bad(&self, found: &str, expected: &str) -> Error {
        bad_column(self.source, self.path, (found, expected), self.option)
    }
}

/// A file that several threads read concurrently, each at its own offset.
struct Chunks {
    file: Arc<File>,
    bytes: u64,
}

impl Chunks {
    fn of(file: Arc<File>) -> ParquetResult<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes })
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Chunks {
    type T = BufReader<FileFrom>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(BufReader::new(FileFrom { file: Arc::clone(&self.file), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        // The length is checked before memory is allocated, because a damaged file may contain any length.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            let found = format!(
                "the metadata name {length} bytes at byte {start}, behind the end of the file of {} bytes",
                self.bytes
            );
            return Err(ParquetError::EOF(found));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// Calls the decoder, which panics on some damaged files.
fn guarded<T>(decode: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| {
        Err(ParquetError::General("its decoder panicked, see the message above".to_owned()))
    })
}

fn too_large(source: &Source, excess: Excess) -> Error {
    source.refused(Exit::BadInput, excess)
}

fn damaged(source: &Source, error: ParquetError) -> Error {
    let found = match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            // This is an error of the operating system, not of the decoder.
            Ok(error) if error.raw_os_error().is_some() => return source.failed(*error),
            Ok(error) => error.to_string(),
            Err(error) => error.to_string(),
        },
        error => error.to_string(),
    };
    source.damaged("Parquet", &found)
}
