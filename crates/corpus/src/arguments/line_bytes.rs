//! The limit of a line's length, which the readers of records impose.

use crate::record::RECORD_BYTES_MAX;
use program::size::parse_size_within;

/// Maximum of --line-bytes-max. Cleaning makes a text at most half as long again (Ⱥ has two bytes, ⱥ three), and a
/// record must not exceed the limit of its readers.
const LINE_BYTES_LARGEST: u64 = RECORD_BYTES_MAX as u64 / 8 * 5;

/// Parses the value of --line-bytes-max.
pub fn parse_line_bytes(size: &str) -> Result<u64, String> {
    parse_size_within(size, &(1..=LINE_BYTES_LARGEST))
}
