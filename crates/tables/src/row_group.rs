//! The rows of one row group, column by column.

use std::ops::Range;

use xxhash_rust::xxh3::Xxh3;

use crate::schema::{Kind, Schema};

/// Maximum number of rows of a row group.
pub const ROWS_MAX: usize = 1 << 16;
/// A row group ends with the row that reaches this number of bytes. Several row groups are in memory at once.
pub const BYTES_MAX: usize = 8 << 20;

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// An integer.
    Number(u64),
    /// UTF-8.
    Text(&'a [u8]),
    /// A list of integers.
    List(&'a [u32]),
}

/// The rows of one row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowGroup {
    columns: Vec<Values>,
    n_rows: usize,
    n_bytes: usize,
}

/// The values of a column, as Parquet stores them: unsigned integers have the bits of signed ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    Int32 { values: Vec<i32>, max: u64 },
    Int64(Vec<i64>),
    Text { bytes: Vec<u8>, ends: Vec<u64> },
    List { values: Vec<i32>, ends: Vec<u64>, max: u32 },
}

impl RowGroup {
    /// No rows of a table.
    pub fn of(schema: &Schema) -> Self {
        let of_bits = |bits: u32| Values::Int32 { values: Vec::new(), max: u64::MAX >> (u64::BITS - bits) };
        let list_of = |max| Values::List { values: Vec::new(), ends: Vec::new(), max };
        let empty = |kind| match kind {
            Kind::U8 => of_bits(8),
            Kind::U16 => of_bits(16),
            Kind::U32 => of_bits(32),
            Kind::U64 => Values::Int64(Vec::new()),
            Kind::Text => Values::Text { bytes: Vec::new(), ends: Vec::new() },
            Kind::ListOfU16 => list_of(u16::MAX.into()),
            Kind::ListOfU32 => list_of(u32::MAX),
        };
        let columns = schema.columns().iter().map(|column| empty(column.kind())).collect();
        Self { columns, n_rows: 0, n_bytes: 0 }
    }

    /// Appends a row, with one value per column.
    ///
    /// # Panics
    ///
    /// If a value does not have the type of its column.
    pub fn push(&mut self, row: &[Value<'_>]) {
        assert_eq!(row.len(), self.columns.len(), "a row has one value per column");
        for (column, value) in self.columns.iter_mut().zip(row) {
            self.n_bytes += column.push(*value);
        }
        self.n_rows += 1;
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Whether the row group ends here. If every row group ends at the first row for which this is true, the bytes
    /// of the file depend only on its rows.
    pub fn is_full(&self) -> bool {
        self.n_rows >= ROWS_MAX || self.n_bytes >= BYTES_MAX
    }

    /// The text of a row.
    ///
    /// # Panics
    ///
    /// If the column has no texts.
    pub fn text(&self, column: usize, row: usize) -> &[u8] {
        match &self.columns[column] {
            Values::Text { bytes, ends } => &bytes[range(ends, row)],
            _ => panic!("column {column} has no texts"),
        }
    }

    /// The number of a row.
    ///
    /// # Panics
    ///
    /// If the column has no numbers.
    pub fn number(&self, column: usize, row: usize) -> u64 {
        match &self.columns[column] {
            Values::Int32 { values, .. } => u64::from(values[row] as u32),
            Values::Int64(values) => values[row] as u64,
            _ => panic!("column {column} has no numbers"),
        }
    }

    pub(crate) fn into_columns(self) -> Vec<Values> {
        self.columns
    }

    /// Replaces the values of all columns by those that a file contains.
    pub(crate) fn read(columns: Vec<Values>, n_rows: usize) -> Self {
        Self { columns, n_rows, n_bytes: 0 }
    }

    /// XXH3-128 of all values.
    pub(crate) fn digest(&self) -> u128 {
        let mut digest = Xxh3::new();
        for column in &self.columns {
            match column {
                Values::Int32 { values, .. } => update(&mut digest, values, i32::to_le_bytes),
                Values::Int64(values) => update(&mut digest, values, i64::to_le_bytes),
                Values::Text { bytes, ends } => {
                    digest.update(bytes);
                    update(&mut digest, ends, u64::to_le_bytes);
                }
                Values::List { values, ends, .. } => {
                    update(&mut digest, values, i32::to_le_bytes);
                    update(&mut digest, ends, u64::to_le_bytes);
                }
            }
        }
        digest.digest128()
    }
}

impl Values {
    /// Appends a value and returns its size in bytes.
    fn push(&mut self, value: Value<'_>) -> usize {
        match (self, value) {
            (Self::Int32 { values, max }, Value::Number(number)) => {
                assert!(number <= *max, "{number} fits in its column, up to {max}");
                values.push(number as u32 as i32);
                size_of::<i32>()
            }
            (Self::Int64(values), Value::Number(number)) => {
                values.push(number as i64);
                size_of::<i64>()
            }
            (Self::Text { bytes, ends }, Value::Text(text)) => {
                bytes.extend_from_slice(text);
                ends.push(bytes.len() as u64);
                text.len()
            }
            (Self::List { values, ends, max }, Value::List(list)) => {
                assert!(list.iter().all(|number| number <= max), "numbers fit in their column, up to {max}");
                values.extend(list.iter().map(|&number| number as i32));
                ends.push(values.len() as u64);
                size_of_val(list)
            }
            (column, value) => panic!("{value:?} does not have the type of its column {column:?}"),
        }
    }
}

/// The range of a row's elements, from the ends of all rows.
pub(crate) fn range(ends: &[u64], row: usize) -> Range<usize> {
    let from = row.checked_sub(1).map_or(0, |before| ends[before]);
    from as usize..ends[row] as usize
}

/// Number of values converted to bytes at once.
const TOGETHER: usize = 512;

fn update<T: Copy, const N: usize>(digest: &mut Xxh3, values: &[T], bytes_of: impl Fn(T) -> [u8; N]) {
    let mut bytes = [[0; N]; TOGETHER];
    for values in values.chunks(TOGETHER) {
        bytes.iter_mut().zip(values).for_each(|(bytes, &value)| *bytes = bytes_of(value));
        digest.update(bytes[..values.len()].as_flattened());
    }
}
