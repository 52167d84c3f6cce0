//! Packs bits into bytes, the least significant first.

use super::huffman::Code;

/// Writes into a slice.
pub(super) struct Bits<'a> {
    out: &'a mut [u8],
    end: usize,
    /// Bits that are not in the slice yet.
    waiting: u64,
    n_waiting: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(out: &'a mut [u8], end: usize) -> Self {
        Self { out, end, waiting: 0, n_waiting: 0 }
    }

    /// Appends a code. At most 56 bits fit before the next [`Bits::flush`].
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

    /// Appends a code and writes whole bytes.
    #[inline(always)]
    pub(super) fn put(&mut self, code: Code) {
        self.add(code);
        self.flush();
    }

    /// Pads the last byte with zeros. Returns the number of bytes in the slice.
    pub(super) fn align(&mut self) -> usize {
        self.n_waiting = self.n_waiting.next_multiple_of(8);
        self.flush();
        self.end
    }

    /// Copies bytes, after a whole byte.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out[self.end..][..bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }
}
