//! The table of the origins of reviews: one row per review, by the hash of its cleaned text, then in the order of the
//! input.

use crate::schema::{Column, Kind, Schema};

/// The column of the hashes.
pub const HASH: usize = 0;
/// The column of the names of files.
pub const FILE: usize = 1;
/// The column of the numbers of lines or rows, from 1.
pub const LINE: usize = 2;

/// Its columns.
pub fn schema() -> Schema {
    Schema::new(vec![
        Column::new("hash", Kind::U64),
        Column::repeating("file", Kind::Text),
        Column::new("line", Kind::U64),
    ])
}
