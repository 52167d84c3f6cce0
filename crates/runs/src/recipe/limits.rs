//! How large the sizes of a model and the numbers of a training may be, whoever names them: a flag or a file.

use std::ops::RangeInclusive;

/// Embedding, hidden and linear sizes.
pub const SIZE: RangeInclusive<i64> = 1..=65_536;
/// LSTM layers.
pub const LAYERS: RangeInclusive<i64> = 1..=16;
/// Words that are drawn in a step of a pretraining.
pub const CANDIDATES: RangeInclusive<i64> = 1..=1 << 20;
/// Rows of a batch.
pub const BATCH: RangeInclusive<i64> = 1..=1 << 24;
/// Batches of a step.
pub const ACCUMULATE: RangeInclusive<i64> = 1..=1 << 16;

/// A range, as a message names it.
pub fn described(range: &RangeInclusive<i64>) -> String {
    format!("{} to {}", range.start(), range.end())
}
