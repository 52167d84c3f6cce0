//! Rows of floats that several threads read and write at once without locks, and the vectors that a processor computes
//! with: 16 floats with AVX-512, 8 with AVX2, otherwise 4.
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

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::kernel;

/// Floats per cache line. Rows have a multiple of it.
pub(crate) const LINE: usize = 16;
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
    pub(crate) fn stride(&self) -> usize {
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
            *value = f32::from_bits(row.float(at).load(Relaxed));
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
            row.float(at).store(value.to_bits(), Relaxed);
        }
    }

    /// A part of a row.
    #[inline(always)]
    pub(crate) fn row(&self, row: u32, part: usize) -> Row<'_> {
        assert!((row as usize) < self.n_rows && part < self.parts, "no such row");
        // SAFETY: the row is within the mapping.
        let start = unsafe { self.floats.add((row as usize * self.parts + part) * self.stride) };
        Row { start, stride: self.stride, of: PhantomData }
    }

    /// Loads the lines of a row into the caches.
    #[inline(always)]
    pub(crate) fn prefetch(&self, row: u32) {
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
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
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

/// A part of a row: `stride` floats.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    start: NonNull<f32>,
    stride: usize,
    of: PhantomData<&'a Table>,
}

impl Row<'_> {
    /// The address of `n` floats.
    #[inline(always)]
    fn at(self, at: usize, n: usize) -> *mut f32 {
        assert!(at + n <= self.stride, "within the row");
        // SAFETY: within the row.
        unsafe { self.start.as_ptr().add(at) }
    }

    #[inline(always)]
    fn float(&self, at: usize) -> &AtomicU32 {
        // SAFETY: aligned memory of the table, which lives as long as the row. Atomics allow concurrent stores.
        unsafe { AtomicU32::from_ptr(self.at(at, 1).cast()) }
    }
}

/// A vector of floats with elementwise operations.
pub(crate) trait Vector: Copy {
    /// Number of floats: a divisor of [`LINE`].
    const LANES: usize;

    fn load(row: Row<'_>, at: usize) -> Self;
    fn store(self, row: Row<'_>, at: usize);
    /// Loads the first values of a slice, which has at least `LANES`.
    fn from_slice(from: &[f32]) -> Self;
    /// Stores into the first elements of a slice, which has at least `LANES`.
    fn to_slice(self, to: &mut [f32]);
    fn splat(value: f32) -> Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn sqrt(self) -> Self;
    /// self · by + plus
    fn fma(self, by: Self, plus: Self) -> Self;
}

macro_rules! x86_vector {
    ($(#[$attribute:meta])* $name:ident($register:ty), $lanes:literal, $load:ident, $store:ident, $splat:ident, $add:ident, $mul:ident, $div:ident, $sqrt:ident, $fma:ident) => {
        $(#[$attribute])*
        #[cfg(target_arch = "x86_64")]
        #[derive(Clone, Copy)]
        pub(crate) struct $name($register);

        // SAFETY of every call: the processor supports the instruction, because only `on_processor` names this type,
        // after it checked the processor. Addresses are checked by `Row::at` or by slicing.
        #[cfg(target_arch = "x86_64")]
        impl Vector for $name {
            const LANES: usize = $lanes;

            #[inline(always)]
            fn load(row: Row<'_>, at: usize) -> Self {
                Self(unsafe { $load(row.at(at, $lanes)) })
            }
            #[inline(always)]
            fn store(self, row: Row<'_>, at: usize) {
                unsafe { $store(row.at(at, $lanes), self.0) }
            }
            #[inline(always)]
            fn from_slice(from: &[f32]) -> Self {
                Self(unsafe { $load(from[..$lanes].as_ptr()) })
            }
            #[inline(always)]
            fn to_slice(self, to: &mut [f32]) {
                unsafe { $store(to[..$lanes].as_mut_ptr(), self.0) }
            }
            #[inline(always)]
            fn splat(value: f32) -> Self {
                Self(unsafe { $splat(value) })
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(unsafe { $add(self.0, other.0) })
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Self(unsafe { $mul(self.0, other.0) })
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                Self(unsafe { $div(self.0, other.0) })
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Self(unsafe { $sqrt(self.0) })
            }
            #[inline(always)]
            fn fma(self, by: Self, plus: Self) -> Self {
                Self(unsafe { $fma(self.0, by.0, plus.0) })
            }
        }
    };
}

x86_vector! {
    /// 16 floats, for AVX-512.
    Avx512(__m512), 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_add_ps, _mm512_mul_ps, _mm512_div_ps,
    _mm512_sqrt_ps, _mm512_fmadd_ps
}
x86_vector! {
    /// 8 floats, for AVX2 with FMA.
    Avx2(__m256), 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_add_ps, _mm256_mul_ps, _mm256_div_ps,
    _mm256_sqrt_ps, _mm256_fmadd_ps
}

/// Four floats, for any processor.
#[derive(Clone, Copy)]
pub(crate) struct Plain([f32; 4]);

impl Plain {
    #[inline(always)]
    fn zip(self, other: Self, with: impl Fn(f32, f32) -> f32) -> Self {
        let mut lanes = self.0;
        for (lane, other) in lanes.iter_mut().zip(other.0) {
            *lane = with(*lane, other);
        }
        Self(lanes)
    }
}

impl Vector for Plain {
    const LANES: usize = 4;

    #[inline(always)]
    fn load(row: Row<'_>, at: usize) -> Self {
        Self([0, 1, 2, 3].map(|lane| f32::from_bits(row.float(at + lane).load(Relaxed))))
    }
    #[inline(always)]
    fn store(self, row: Row<'_>, at: usize) {
        for (lane, value) in self.0.into_iter().enumerate() {
            row.float(at + lane).store(value.to_bits(), Relaxed);
        }
    }
    #[inline(always)]
    fn from_slice(from: &[f32]) -> Self {
        Self([from[0], from[1], from[2], from[3]])
    }
    #[inline(always)]
    fn to_slice(self, to: &mut [f32]) {
        to[..4].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self([value; 4])
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |one, other| one + other)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |one, other| one * other)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |one, other| one / other)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(self.0.map(f32::sqrt))
    }
    #[inline(always)]
    fn fma(self, by: Self, plus: Self) -> Self {
        // Rounds twice. A fused multiply-add would be a function call per value on a processor without FMA.
        self.mul(by).add(plus)
    }
}

/// Instruction sets that the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512(Checked),
    /// 256-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2(Checked),
    /// Any processor.
    Plain,
}

/// Proof that the processor supports the instruction set; created only after the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked(());

impl Processor {
    /// The fastest instruction set that this processor supports.
    pub fn best() -> Self {
        Self::all()[0]
    }

    /// All instruction sets that this processor supports, the fastest first.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                all.push(Self::Avx512(Checked(())));
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                all.push(Self::Avx2(Checked(())));
            }
        }
        all.push(Self::Plain);
        all
    }
}

/// Generates a function that calls a generic function of `kernel` with the vector type of the processor.
macro_rules! on_processor {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {$(
        #[inline]
        pub(crate) fn $name(processor: Processor, $($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            fn avx512($($argument: $type),*) $(-> $result)? {
                kernel::$name::<Avx512>($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($argument: $type),*) $(-> $result)? {
                kernel::$name::<Avx2>($($argument),*)
            }
            match processor {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `Checked` exists only if the processor supports these instructions.
                Processor::Avx512(_) => unsafe { avx512($($argument),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                Processor::Avx2(_) => unsafe { avx2($($argument),*) },
                Processor::Plain => kernel::$name::<Plain>($($argument),*),
            }
        }
    )*};
}

on_processor! {
    fn mean(table: &Table, rows: &[u32], n_rows: usize, mean: &mut [f32]);
    fn dot(table: &Table, row: u32, vector: &[f32]) -> f32;
    fn add_scaled(table: &Table, row: u32, by: f32, sum: &mut [f32]);
    fn add_to_rows(table: &Table, rows: &[u32], gradient: &[f32], next: &[u32]);
    fn update_row(table: &Table, row: u32, gradient: &[f32], by: f32, rule: &kernel::Rule);
    fn draw(table: &Table, row: u32, key: u64);
}
