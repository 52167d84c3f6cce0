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
    /// The number of the line or row, from 1.
    pub line: u64,
    /// The text before cleaning.
    pub text: Option<String>,
}
