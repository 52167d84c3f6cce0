//! Rows of floats that several threads read and write at once without locks.
//!
//! Two threads may write one row at the same time. One of the updates, or a part of it, is then lost. Gradient descent
//! tolerates this (Niu et al. 2011, "Hogwild!"). No reference to the memory of a table exists, because references forbid
//! concurrent writes: values are copied in and out by loads and stores of vectors.
//!
//! Rows start at cache lines, and the memory is in huge pages if the system has them: most rows are read from memory, and
//! with small pages each read would also miss the cache of addresses.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Floats per cache line. Rows have a multiple of it.
pub const LINE: usize = 16;
const HUGE_PAGE: usize = 2 << 20;

/// Rows of `parts` vectors of equal length: the weights, and the state of the optimizer.
pub struct Table {
    floats: NonNull<f32>,
    n_bytes: usize,
    n_rows: usize,
    dim: usize,
    /// Floats per part: `dim`, rounded up to whole cache lines.
    stride: usize,
    parts: usize,
}

// SAFETY: the memory belongs to the table and is accessed by loads and stores only, never by references.
unsafe impl Send for Table {}
// SAFETY: as above; concurrent stores are allowed.
unsafe impl Sync for Table {}

impl std::fmt::Debug for Table {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Table({} rows of {} × {})", self.n_rows, self.parts, self.dim)
    }
}

/// Memory of a table in bytes; `None` if it exceeds 64 bits.
pub fn table_bytes(n_rows: u64, dim: usize, parts: usize) -> Option<u64> {
    let floats = (dim.checked_next_multiple_of(LINE)? as u64).checked_mul(parts as u64)?;
    n_rows.checked_mul(floats)?.checked_mul(4)
}

impl Table {
    /// A table of zeros. Memory is used from the first store into a row.
    ///
    /// # Errors
    /// If the system has no address space of this size.
    pub fn new(n_rows: usize, dim: usize, parts: usize) -> io::Result<Self> {
        let n_bytes = table_bytes(n_rows as u64, dim, parts).and_then(|bytes| usize::try_from(bytes).ok());
        let n_bytes = n_bytes
            .and_then(|bytes| bytes.checked_next_multiple_of(HUGE_PAGE))
            .map(|bytes| bytes.max(HUGE_PAGE));
        let n_bytes =
            n_bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a private mapping without a file; the result is checked.
        let memory = unsafe {
            let (access, kind) = (
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            );
            libc::mmap(std::ptr::null_mut(), n_bytes, access, kind, -1, 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping above. A system without huge pages refuses; small pages then serve.
        unsafe { libc::madvise(memory, n_bytes, libc::MADV_HUGEPAGE) };
        let floats = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { floats, n_bytes, n_rows, dim, stride: dim.next_multiple_of(LINE), parts })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Floats per part of a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of parts of a row.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// `dim`, rounded up to whole cache lines.
    #[inline]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Copies a part of a row, of `dim` floats.
    ///
    /// # Panics
    /// If the row or part does not exist, or `values` is longer than a part.
    pub fn read(&self, row: u32, part: usize, values: &mut [f32]) {
        let row = self.row(row, part);
        assert!(values.len() <= self.dim);
        for (at, value) in values.iter_mut().enumerate() {
            *value = row.get(at);
        }
    }

    /// Overwrites a part of a row.
    ///
    /// # Panics
    /// As [`Table::read`].
    pub fn write(&self, row: u32, part: usize, values: &[f32]) {
        let row = self.row(row, part);
        assert!(values.len() <= self.dim);
        for (at, value) in values.iter().enumerate() {
            row.set(at, *value);
        }
    }

    /// A part of a row.
    ///
    /// # Panics
    /// If the row or part does not exist.
    #[inline(always)]
    pub fn row(&self, row: u32, part: usize) -> Row<'_> {
        assert!((row as usize) < self.n_rows && part < self.parts, "no such row");
        // SAFETY: the row is within the mapping.
        let start = unsafe { self.floats.add((row as usize * self.parts + part) * self.stride) };
        Row { start, stride: self.stride, of: PhantomData }
    }

    /// Loads the lines of a row into the caches.
    #[inline(always)]
    pub fn prefetch(&self, row: u32) {
        let floats = self.parts * self.stride;
        // An address is computed, not read: a row that does not exist does no harm.
        let start = self.floats.as_ptr().wrapping_add(row as usize * floats);
        for line in (0..floats).step_by(LINE) {
            prefetch(start.wrapping_add(line));
        }
    }
}

#[inline(always)]
fn prefetch(at: *const f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction has no effect besides caches, and every x86-64 processor has it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to the table.
        unsafe { libc::munmap(self.floats.as_ptr().cast(), self.n_bytes) };
    }
}

/// A part of a row: `stride` floats, from a cache line on.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    start: NonNull<f32>,
    stride: usize,
    of: PhantomData<&'a Table>,
}

impl Row<'_> {
    /// A value.
    ///
    /// # Panics
    /// If it is not within the row.
    #[inline(always)]
    pub fn get(&self, at: usize) -> f32 {
        f32::from_bits(self.float(at).load(Relaxed))
    }

    /// Overwrites a value.
    ///
    /// # Panics
    /// If it is not within the row.
    #[inline(always)]
    pub fn set(&self, at: usize, value: f32) {
        self.float(at).store(value.to_bits(), Relaxed);
    }

    /// The address of `n` floats.
    #[inline(always)]
    pub(crate) fn at(self, at: usize, n: usize) -> *mut f32 {
        // Not `at + n`, which can overflow.
        assert!(n <= self.stride && at <= self.stride - n, "within the row");
        // SAFETY: within the row.
        unsafe { self.start.as_ptr().add(at) }
    }

    /// The address of a vector of floats, each lane of which is within the row.
    #[inline(always)]
    pub(crate) fn vector<V>(self, at: usize) -> *mut V {
        let n_lanes = size_of::<V>() / size_of::<f32>();
        assert!(at.is_multiple_of(n_lanes), "rows are aligned, and so are their vectors");
        self.at(at, n_lanes).cast()
    }

    #[inline(always)]
    fn float(&self, at: usize) -> &AtomicU32 {
        // SAFETY: aligned memory of the table, which lives as long as the row. Atomics allow concurrent stores.
        unsafe { AtomicU32::from_ptr(self.at(at, 1).cast()) }
    }
}
