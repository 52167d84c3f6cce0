//! Entries of sources, and their positions.

use std::sync::Arc;

use corpus::csv::Columns;
use corpus::entry::RatingValue;
use corpus::rejects::Content;

/// A line or a row, and its position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputEntry<'a> {
    /// Its position.
    pub place: InputPlace,
    /// Number of entries before it in its source, or in its group if the source is split into groups.
    pub number: u64,
    /// Its content.
    pub what: Content<'a>,
    /// The columns of its source, if it is a record of CSV.
    pub columns: Option<&'a Columns>,
    /// Its values, if it is a row and [`ReadingOptions::columns`](crate::ReadingOptions::columns) are kept.
    pub values: &'a [RowValue<'a>],
}

/// A value of a column of a Parquet or Arrow file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowValue<'a> {
    /// No value.
    Null,
    /// true or false.
    Bool(bool),
    /// An integer.
    Whole(i64),
    /// An integer of a column of unsigned 64 bits.
    Unsigned(u64),
    /// A number of 32 bits.
    Float(f32),
    /// A number.
    Number(f64),
    /// A text, which may not be UTF-8.
    Text(&'a [u8]),
}

impl<'a> From<RatingValue<'a>> for RowValue<'a> {
    fn from(value: RatingValue<'a>) -> Self {
        match value {
            RatingValue::Number(number) => Self::Number(number),
            RatingValue::Text(text) => Self::Text(text),
            RatingValue::Missing => Self::Null,
        }
    }
}

/// The columns of a Parquet or Arrow file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowColumns {
    /// The names of those that are kept, in their order: texts, numbers and booleans.
    pub names: Vec<Arc<str>>,
    /// The names of the others, such as lists, dates and binary columns.
    pub others: Vec<String>,
}

/// The unit of the entries of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryUnit {
    /// Lines.
    Line,
    /// Records of CSV or TSV behind the header.
    Record,
    /// Elements of JSON arrays.
    Element,
    /// Rows of a Parquet or Arrow file.
    Row,
}

/// A position in the inputs. Positions are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputPlace {
    /// Index of its source in [`Reading::sources`](crate::Reading::sources).
    pub source: usize,
    /// Number of the range or the group of members; 0 if the source is not split into such groups.
    pub(crate) group: usize,
    /// Offset in the source, or in the group of members.
    pub(crate) offset: u64,
}

impl<'a> InputEntry<'a> {
    /// An entry of a source that is no table of CSV.
    pub fn new(place: InputPlace, number: u64, what: Content<'a>) -> Self {
        Self { place, number, what, columns: None, values: &[] }
    }
}

impl InputPlace {
    /// A position in a source that is not split into groups.
    pub fn at(source: usize, offset: u64) -> Self {
        Self { source, group: 0, offset }
    }

    /// A position in a range, or in a group of members.
    pub fn in_group(source: usize, group: usize, offset: u64) -> Self {
        Self { source, group, offset }
    }

    /// The range or group, and the offset.
    pub fn within(self) -> (usize, u64) {
        (self.group, self.offset)
    }

    pub(crate) fn is_first(self) -> bool {
        self.group == 0 && self.offset == 0
    }
}
