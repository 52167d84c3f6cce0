//! Position of a row's tokens in a tile.

/// A row of a tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileRow {
    /// The row's index in the call.
    pub(crate) row: usize,
    /// Number of tokens.
    pub(crate) length: usize,
    /// The row's first slot.
    pub(crate) slot: usize,
}

/// The slots of token `t` in R rows.
#[inline(always)]
pub(crate) fn slots_at<const R: usize>(rows: &[TileRow], t: usize) -> [usize; R] {
    let mut slots = [0; R];
    for (slot, row) in slots.iter_mut().zip(rows) {
        *slot = row.slot + t;
    }
    slots
}
