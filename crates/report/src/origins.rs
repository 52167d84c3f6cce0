//! Where the reviews of rows come from.

use std::collections::HashMap;

/// The reviews of rows, by the hash of their text as 16 hexadecimal digits.
pub type Origins = HashMap<String, RowOrigins>;

/// The reviews of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowOrigins {
    /// The first reviews, in the order of the input.
    pub first: Vec<ReviewOrigin>,
    /// Number of all reviews.
    pub n_reviews: u64,
}

/// The place of a review, and its text if the file could be read there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewOrigin {
    /// The name of the file, as it was passed to `sentimill`.
    pub file: String,
    /// The number of the line, record, element or row, from 1.
    pub number: u64,
    /// What the number counts.
    pub unit: OriginUnit,
    /// The text before cleaning.
    pub text: Option<String>,
}

/// What the number of a review counts in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginUnit {
    /// Lines.
    Line,
    /// Records of CSV or TSV behind the header.
    Record,
    /// Elements of a JSON array.
    Element,
    /// Rows of a Parquet or Arrow file.
    Row,
}

impl OriginUnit {
    /// The place with this number in a file: `reviews.json:12` or `record 12 of reviews.csv`.
    pub(crate) fn place(self, number: u64, file: &str) -> String {
        let name = match self {
            Self::Line => return format!("{file}:{number}"),
            Self::Record => "record",
            Self::Element => "element",
            Self::Row => "row",
        };
        format!("{name} {number} of {file}")
    }
}
