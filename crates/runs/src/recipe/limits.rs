//! Limits of model sizes and training settings, for flags and files alike.

use std::ops::RangeInclusive;

/// Embedding dimension, hidden size and size of the linear layer.
pub const SIZE: RangeInclusive<i64> = 1..=65_536;
/// Number of LSTM layers.
pub const LAYERS: RangeInclusive<i64> = 1..=16;
/// Number of candidate words per step of a pretraining.
pub const CANDIDATES: RangeInclusive<i64> = 1..=1 << 20;
/// Batch size.
pub const BATCH: RangeInclusive<i64> = 1..=1 << 24;
/// Number of batches per step.
pub const ACCUMULATE: RangeInclusive<i64> = 1..=1 << 16;
/// Steps of a round.
pub const SYNC_EVERY: RangeInclusive<i64> = 1..=1 << 16;

/// A range as text for messages.
pub fn described(range: &RangeInclusive<i64>) -> String {
    format!("{} to {}", range.start(), range.end())
}
