//! Writes columns of texts and numbers that may be null, such as a table of another program with more columns.
//!
//! Memory holds one row group.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::error::{Error, Result};
use crate::row_group::{BYTES_MAX, ROWS_MAX};
use crate::schema::CREATED_BY;

const WRITE: &str = "write rows";

/// The values of a column that are not written yet; `None` is null.
#[derive(Clone, Debug)]
pub enum Nullable {
    /// UTF-8.
    Text(Vec<Option<Vec<u8>>>),
    /// Integers.
    Whole(Vec<Option<i32>>),
    /// Numbers.
    Float(Vec<Option<f32>>),
    /// true or false.
    Bool(Vec<Option<bool>>),
    /// Integers of 64 bits.
    Long(Vec<Option<i64>>),
    /// Numbers of 64 bits.
    Double(Vec<Option<f64>>),
}

/// Writer of a table whose columns may be null.
pub struct NullableWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Nullable>,
    n_rows: usize,
    n_bytes: usize,
}

impl<W: Write + Send> NullableWriter<W> {
    /// Writes a table of these columns, which have distinct names. They are empty.
    pub fn new(out: W, columns: Vec<(&str, Nullable)>) -> Result<Self> {
        Self::of_columns(out, columns).map_err(|error| Error::of(WRITE, error))
    }

    fn of_columns(out: W, columns: Vec<(&str, Nullable)>) -> ParquetResult<Self> {
        let field = |(name, column): &(&str, Nullable)| {
            let (physical, logical) = match column {
                Nullable::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Nullable::Whole(_) => (Physical::INT32, None),
                Nullable::Float(_) => (Physical::FLOAT, None),
                Nullable::Bool(_) => (Physical::BOOLEAN, None),
                Nullable::Long(_) => (Physical::INT64, None),
                Nullable::Double(_) => (Physical::DOUBLE, None),
            };
            let column = Type::primitive_type_builder(name, physical).with_logical_type(logical);
            column.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<ParquetResult<_>>()?;
        let root = Type::group_type_builder("schema").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_created_by(CREATED_BY.to_owned());
        // They would hold texts a second time.
        let properties = properties.set_statistics_enabled(EnabledStatistics::None);
        let properties = properties.set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(out, Arc::new(root), Arc::new(properties))?;
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        Ok(Self { file, columns, n_rows: 0, n_bytes: 0 })
    }

    /// The columns, to each of which the caller adds one value before [`Self::end_row`].
    pub fn columns(&mut self) -> &mut [Nullable] {
        &mut self.columns
    }

    /// Ends a row of this number of bytes.
    pub fn end_row(&mut self, n_bytes: usize) -> Result<()> {
        self.n_rows += 1;
        self.n_bytes += n_bytes;
        let is_full = self.n_rows == ROWS_MAX || self.n_bytes >= BYTES_MAX;
        if is_full { self.write().map_err(|error| Error::of(WRITE, error)) } else { Ok(()) }
    }

    /// Completes the table.
    pub fn finish(mut self) -> Result<W> {
        self.write().and_then(|()| self.file.into_inner()).map_err(|error| Error::of(WRITE, error))
    }

    fn write(&mut self) -> ParquetResult<()> {
        if self.n_rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            match column {
                Nullable::Text(values) => {
                    let values = values.drain(..).map(|value| value.map(ByteArray::from));
                    add::<_, ByteArrayType>(&mut group, values)?;
                }
                Nullable::Whole(values) => add::<_, Int32Type>(&mut group, values.drain(..))?,
                Nullable::Float(values) => add::<_, FloatType>(&mut group, values.drain(..))?,
                Nullable::Bool(values) => add::<_, BoolType>(&mut group, values.drain(..))?,
                Nullable::Long(values) => add::<_, Int64Type>(&mut group, values.drain(..))?,
                Nullable::Double(values) => add::<_, DoubleType>(&mut group, values.drain(..))?,
            }
        }
        group.close()?;
        (self.n_rows, self.n_bytes) = (0, 0);
        Ok(())
    }
}

/// Writes the values of the next column of a row group.
fn add<W: Write + Send, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl Iterator<Item = Option<T::T>>,
) -> ParquetResult<()> {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(&present, Some(&levels), None)?;
        column.close()?;
    }
    Ok(())
}
