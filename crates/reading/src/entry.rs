//! Entries of sources, and their positions.

use corpus::csv::Columns;
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
        Self { place, number, what, columns: None }
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
