//! Bits, the least significant first, into bytes.

use super::huffman::Code;

/// Writes behind what is in a slice already.
pub(super) struct Bits<'a> {
    out: &'a mut [u8],
    end: usize,
    /// What is not in the slice yet.
    waiting: u64,
    n_waiting: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(out: &'a mut [u8], end: usize) -> Self {
        Self { out, end, waiting: 0, n_waiting: 0 }
    }

    /// Takes a code. No more than 56 bits fit before the next [`Bits::flush`].
    #[inline(always)]
    pub(super) fn add(&mut self, code: Code) {
        self.waiting |= code.bits() << self.n_waiting;
        self.n_waiting += code.n_bits();
    }

    /// Writes all whole bytes.
    #[inline(always)]
    pub(super) fn flush(&mut self) {
        self.out[self.end..][..8].copy_from_slice(&self.waiting.to_le_bytes());
        self.end += (self.n_waiting / 8) as usize;
        self.waiting >>= self.n_waiting & !7;
        self.n_waiting &= 7;
    }

    /// Takes a code and writes whole bytes.
    #[inline(always)]
    pub(super) fn put(&mut self, code: Code) {
        self.add(code);
        self.flush();
    }

    /// Fills the last byte with zeros; gives the number of bytes in the slice.
    pub(super) fn align(&mut self) -> usize {
        self.n_waiting = self.n_waiting.next_multiple_of(8);
        self.flush();
        self.end
    }

    /// Takes bytes as they are, behind a whole byte.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out[self.end..][..bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }
}
