//! The column of ratings of a Parquet file, or one whose values are kept: numbers of any type, texts or booleans.

use arrow_array::types::{ArrowPrimitiveType, Float16Type};
use corpus::entry::RatingValue;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::ColumnDescriptor;

use super::{ColumnBuffer, unexpected};
use crate::entry::RowValue;

/// A column of ratings, while it is read.
pub(super) struct Ratings {
    column: RatingColumn,
    meaning: Meaning,
}

/// The column, by physical type.
enum RatingColumn {
    Bool(ColumnBuffer<BoolType>),
    Int32(ColumnBuffer<Int32Type>),
    Int64(ColumnBuffer<Int64Type>),
    Float(ColumnBuffer<FloatType>),
    Double(ColumnBuffer<DoubleType>),
    Bytes(ColumnBuffer<ByteArrayType>),
    Fixed(ColumnBuffer<FixedLenByteArrayType>),
}

/// What a value of a physical type means.
#[derive(Clone, Copy)]
enum Meaning {
    Plain,
    Unsigned,
    /// The value must be divided by this power of ten.
    Decimal(f64),
    Float16,
}

/// Whether a column may have ratings.
pub(super) fn is_rating(column: &ColumnDescriptor) -> bool {
    match column.physical_type() {
        Type::FIXED_LEN_BYTE_ARRAY => !matches!(Meaning::of(column), Meaning::Plain),
        Type::INT96 => false,
        _ => true,
    }
}

impl Meaning {
    fn of(column: &ColumnDescriptor) -> Self {
        let is_decimal = matches!(column.logical_type_ref(), Some(LogicalType::Decimal { .. }))
            || column.converted_type() == ConvertedType::DECIMAL;
        if is_decimal {
            return Self::Decimal(10_f64.powi(column.type_scale()));
        }
        match column.logical_type_ref() {
            Some(LogicalType::Float16) => Self::Float16,
            Some(LogicalType::Integer(of)) if !of.is_signed => Self::Unsigned,
            _ => match column.converted_type() {
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64 => Self::Unsigned,
                _ => Self::Plain,
            },
        }
    }
}

impl Ratings {
    pub fn of(reader: ColumnReader, chunk: &ColumnChunkMetaData) -> ParquetResult<Self> {
        let column = match reader {
            ColumnReader::BoolColumnReader(reader) => RatingColumn::Bool(ColumnBuffer::of(reader, chunk)),
            ColumnReader::Int32ColumnReader(reader) => RatingColumn::Int32(ColumnBuffer::of(reader, chunk)),
            ColumnReader::Int64ColumnReader(reader) => RatingColumn::Int64(ColumnBuffer::of(reader, chunk)),
            ColumnReader::FloatColumnReader(reader) => RatingColumn::Float(ColumnBuffer::of(reader, chunk)),
            ColumnReader::DoubleColumnReader(reader) => RatingColumn::Double(ColumnBuffer::of(reader, chunk)),
            ColumnReader::ByteArrayColumnReader(reader) => {
                RatingColumn::Bytes(ColumnBuffer::of(reader, chunk))
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                RatingColumn::Fixed(ColumnBuffer::of(reader, chunk))
            }
            _ => return Err(unexpected(chunk)),
        };
        Ok(Self { column, meaning: Meaning::of(chunk.column_descr()) })
    }

    /// Reads this number of rows, which exist unless the file is damaged.
    pub fn read(&mut self, rows: usize) -> ParquetResult<()> {
        match &mut self.column {
            RatingColumn::Bool(column) => column.read(rows),
            RatingColumn::Int32(column) => column.read(rows),
            RatingColumn::Int64(column) => column.read(rows),
            RatingColumn::Float(column) => column.read(rows),
            RatingColumn::Double(column) => column.read(rows),
            RatingColumn::Bytes(column) => column.read(rows),
            RatingColumn::Fixed(column) => column.read(rows),
        }
    }

    /// The values of the last rows read, as they are.
    pub fn row_values(&self) -> Box<dyn Iterator<Item = RowValue<'_>> + '_> {
        match (&self.column, self.meaning) {
            (RatingColumn::Bool(column), _) => column.each(|&value| RowValue::Bool(value)),
            (RatingColumn::Int32(column), Meaning::Plain) => {
                column.each(|&value| RowValue::Whole(value.into()))
            }
            (RatingColumn::Int32(column), Meaning::Unsigned) => {
                column.each(|&value| RowValue::Whole((value as u32).into()))
            }
            (RatingColumn::Int64(column), Meaning::Plain) => column.each(|&value| RowValue::Whole(value)),
            (RatingColumn::Int64(column), Meaning::Unsigned) => {
                column.each(|&value| RowValue::Unsigned(value as u64))
            }
            (RatingColumn::Float(column), _) => column.each(|&value| RowValue::Float(value)),
            _ => Box::new(self.values().map(RowValue::from)),
        }
    }

    /// Size of the texts of the last rows read.
    pub fn bytes(&self) -> usize {
        if let RatingColumn::Bytes(column) = &self.column { column.bytes() } else { 0 }
    }

    /// The values of the last rows read.
    pub fn values(&self) -> Box<dyn Iterator<Item = RatingValue<'_>> + '_> {
        let meaning = self.meaning;
        let divisor = if let Meaning::Decimal(divisor) = meaning { divisor } else { 1.0 };
        match &self.column {
            RatingColumn::Bool(column) => column.ratings(|&value| RatingValue::of_bool(value)),
            RatingColumn::Int32(column) => {
                column.ratings(move |&value| RatingValue::Number(f64::from(value) / divisor))
            }
            RatingColumn::Int64(column) => {
                column.ratings(move |&value| RatingValue::Number(value as f64 / divisor))
            }
            RatingColumn::Float(column) => column.ratings(|&value| RatingValue::Number(value.into())),
            RatingColumn::Double(column) => column.ratings(|&value| RatingValue::Number(value)),
            RatingColumn::Bytes(column) => column.ratings(move |value| of_bytes(value, meaning)),
            RatingColumn::Fixed(column) => column.ratings(move |value| of_bytes(value, meaning)),
        }
    }
}

impl<T: parquet::data_type::DataType> ColumnBuffer<T> {
    fn each<'a>(
        &'a self,
        of: impl Fn(&'a T::T) -> RowValue<'a> + 'a,
    ) -> Box<dyn Iterator<Item = RowValue<'a>> + 'a> {
        Box::new(self.values().map(move |value| value.map_or(RowValue::Null, &of)))
    }

    fn ratings<'a>(
        &'a self,
        rating: impl Fn(&'a T::T) -> RatingValue<'a> + 'a,
    ) -> Box<dyn Iterator<Item = RatingValue<'a>> + 'a> {
        Box::new(self.values().map(move |value| value.map_or(RatingValue::Missing, &rating)))
    }
}

/// The value of bytes: a text, a decimal number in two's complement, or a number of 16 bits.
fn of_bytes(value: &ByteArray, meaning: Meaning) -> RatingValue<'_> {
    let bytes = value.data();
    let number = match meaning {
        Meaning::Plain | Meaning::Unsigned => return RatingValue::Text(bytes),
        Meaning::Decimal(divisor) => big_endian(bytes).map(|unscaled| unscaled as f64 / divisor),
        Meaning::Float16 => {
            let bytes = bytes.try_into().ok();
            bytes.map(|bytes| <Float16Type as ArrowPrimitiveType>::Native::from_le_bytes(bytes).into())
        }
    };
    number.map_or(RatingValue::Missing, RatingValue::Number)
}

/// A number in two's complement of at most 128 bits.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let sign = if bytes.first()? & 0x80 == 0 { 0 } else { 0xff };
    let mut all = [sign; 16];
    let start = all.len().checked_sub(bytes.len())?;
    all[start..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_width_are_read_with_their_sign() {
        assert_eq!(big_endian(&[4, 0xb0]), Some(1200));
        assert_eq!(big_endian(&[0xff, 0x38]), Some(-200));
        assert_eq!(big_endian(&[0; 16]), Some(0));
        assert_eq!([big_endian(&[]), big_endian(&[0; 17])], [None; 2]);
        let four = ByteArray::from(vec![1, 0x90]);
        assert_eq!(of_bytes(&four, Meaning::Decimal(100.0)), RatingValue::Number(4.0));
        let half = ByteArray::from(vec![0, 0x45]);
        assert_eq!(of_bytes(&half, Meaning::Float16), RatingValue::Number(5.0));
    }
}
