//! Texts between two checkpoints.

use super::order::Window;

/// Texts between two checkpoints.
pub(super) struct Segment<'a> {
    pub window: &'a Window<'a>,
    pub from: usize,
    pub to: usize,
    /// Number of texts of the training before the segment.
    pub n_done: u64,
    /// Number of texts of the training.
    pub n_total: u64,
}

impl Segment<'_> {
    /// Number of texts of the training before this one, by its position in the window.
    #[inline]
    pub fn step(&self, position: usize) -> u64 {
        self.n_done + (position - self.from) as u64
    }
}
