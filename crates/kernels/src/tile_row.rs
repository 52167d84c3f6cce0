//! Where the tokens of a row lie in a tile.

/// A row of a tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileRow {
    /// Its place among the rows of the call.
    pub(crate) row: usize,
    /// Its tokens.
    pub(crate) length: usize,
    /// Its first slot.
    pub(crate) slot: usize,
}

/// Where R rows have this token.
#[inline(always)]
pub(crate) fn slots_at<const R: usize>(rows: &[TileRow], t: usize) -> [usize; R] {
    let mut slots = [0; R];
    for (slot, row) in slots.iter_mut().zip(rows) {
        *slot = row.slot + t;
    }
    slots
}
