//! A column for reading. Any number of threads can read it at the same time, chunk by chunk, without the HDF5
//! library.
//!
//! The library has one lock per process. It is used once, to locate the chunks ([`crate::chunk_index`]).
//! After that each thread reads a chunk from the file, verifies it against its digest, and only then decodes
//! it ([`crate::chunk`]).

use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;

use corpus::digest::Digest;
use program::threads::{locked, spawn};

use crate::chunk::{Decoder, Scalar};
use crate::chunk_index::StoredChunk;
use crate::error::{Error, Result, Violation};
use crate::layout::Layout;
use crate::stored_file::StoredFile;

/// A column of an open file. Clones share the file and may be read concurrently.
#[derive(Clone, Debug)]
pub struct Column<T> {
    file: Arc<StoredFile>,
    layout: Layout,
    chunks: Arc<[StoredChunk]>,
    shared: Option<Arc<Shared<T>>>,
}

/// The decoded chunks of a column that several readers need. Each reader reads one of several consecutive ranges of
/// rows in order, and the readers of neighbouring ranges read at about the same time.
#[derive(Debug)]
struct Shared<T> {
    /// The rows of each reader, ascending.
    ranges: Vec<Range<usize>>,
    /// The chunks that further readers will need, and the number of these readers.
    decoded: Mutex<HashMap<usize, Needed<T>>>,
}

/// The elements of a chunk, and the number of readers that will need them.
type Needed<T> = (Arc<Vec<T>>, usize);

impl<T: Scalar> Shared<T> {
    /// The elements of a chunk with these rows, decoded by `decode` unless another reader has decoded them.
    fn chunk(
        &self,
        chunk: usize,
        rows: Range<usize>,
        decode: impl FnOnce() -> Result<Arc<Vec<T>>>,
    ) -> Result<Arc<Vec<T>>> {
        // A second reader of the chunk waits until the first has decoded it.
        let mut decoded = locked(&self.decoded);
        if let Some((elements, n_readers)) = decoded.get_mut(&chunk) {
            let elements = elements.clone();
            *n_readers -= 1;
            if *n_readers == 0 {
                decoded.remove(&chunk);
            }
            return Ok(elements);
        }
        let elements = decode()?;
        let first = self.ranges.partition_point(|range| range.end <= rows.start);
        let readers = self.ranges[first..].iter().take_while(|range| range.start < rows.end);
        let n_readers = readers.filter(|range| !range.is_empty()).count();
        if n_readers > 1 {
            decoded.insert(chunk, (elements.clone(), n_readers - 1));
        }
        Ok(elements)
    }
}

/// Buffers of one thread for reading chunks, which are reused.
#[derive(Default)]
pub struct Scratch {
    stored: Vec<u8>,
    decoder: Decoder,
}

impl<T: Scalar> Column<T> {
    pub(crate) fn new(file: Arc<StoredFile>, layout: Layout, chunks: Vec<StoredChunk>) -> Self {
        Self { file, layout, chunks: chunks.into(), shared: None }
    }

    /// Prepares for readers of these ranges of rows, which ascend.
    pub(crate) fn share(&mut self, ranges: Vec<Range<usize>>) {
        self.shared = Some(Arc::new(Shared { ranges, decoded: Mutex::default() }));
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.layout.rows
    }

    /// Number of elements per row.
    pub fn width(&self) -> usize {
        self.layout.width
    }

    /// Size of the column's chunks in the file, in bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.bytes as u64).sum()
    }

    /// Number of chunks.
    pub fn n_chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The rows of a chunk. The last chunk may have fewer rows than the others.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn rows_of_chunk(&self, chunk: usize) -> Range<usize> {
        assert!(chunk < self.n_chunks(), "chunk {chunk} of {}", self.n_chunks());
        let first = chunk * self.layout.chunk_rows;
        first..(first + self.layout.chunk_rows).min(self.n_rows())
    }

    /// Fills `elements` with the elements of a chunk's rows.
    ///
    /// # Panics
    /// If there is no such chunk, or if the length of `elements` does not match the rows of the chunk.
    pub fn read_chunk(&self, chunk: usize, scratch: &mut Scratch, elements: &mut [T]) -> Result<()> {
        assert_eq!(elements.len(), self.rows_of_chunk(chunk).len() * self.width());
        let StoredChunk { address, bytes, digest } = self.chunks[chunk];
        let Scratch { stored, decoder } = scratch;
        let damaged = || self.file.damaged(&format!("chunk {chunk} of {}", self.layout.name));
        stored.resize(bytes, 0);
        self.file.read(address, stored)?.ok_or_else(damaged)?;
        if Digest::of(stored) != digest {
            return Err(damaged());
        }
        let capacity = self.layout.chunk_elements();
        decoder.decode(stored, capacity, elements).ok_or_else(damaged)?;
        if !decoder.is_zero_behind::<T>(capacity, elements.len()) {
            let thing = format!("chunk {chunk} of {}", self.layout.name);
            let violation =
                Violation::new("F10", thing, "filled up with other values", "zeros after the last row");
            return Err(self.broken(violation));
        }
        Ok(())
    }

    /// The elements of a chunk's rows, in this vector if nobody else has it.
    fn decoded(&self, chunk: usize, mut elements: Arc<Vec<T>>) -> Result<Arc<Vec<T>>> {
        // Readers need it only while they decode. There may be many more readers than threads.
        thread_local!(static SCRATCH: RefCell<Scratch> = RefCell::default());
        let into = Arc::make_mut(&mut elements);
        into.resize(self.rows_of_chunk(chunk).len() * self.width(), T::default());
        SCRATCH.with_borrow_mut(|scratch| self.read_chunk(chunk, scratch, into))?;
        Ok(elements)
    }

    /// All elements, row by row, read by this number of threads.
    pub fn read(&self, threads: NonZeroUsize) -> Result<Vec<T>> {
        let mut elements = vec![T::default(); self.n_rows() * self.width()];
        // Each thread reads every `threads`-th chunk.
        let mut hands: Vec<Vec<(usize, &mut [T])>> = (0..threads.get()).map(|_| Vec::new()).collect();
        for (chunk, part) in elements.chunks_mut(self.layout.chunk_elements()).enumerate() {
            hands[chunk % threads].push((chunk, part));
        }
        let own = hands.pop().expect("there is a thread");
        let read = |hand: Vec<(usize, &mut [T])>| {
            let mut scratch = Scratch::default();
            hand.into_iter().try_for_each(|(chunk, part)| {
                self.read_chunk(chunk, &mut scratch, part).map_err(|error| (chunk, error))
            })
        };
        let ends: Vec<_> = thread::scope(|scope| {
            let started: Vec<_> = hands.into_iter().map(|hand| spawn(scope, move || read(hand))).collect();
            let own = read(own);
            let others = started.into_iter().map(|thread| thread.join().expect("a reader does not panic"));
            others.chain([own]).collect()
        });
        // The first error in file order, so that the result does not depend on which thread was faster.
        let first_error =
            ends.into_iter().filter_map(std::result::Result::err).min_by_key(|(chunk, _)| *chunk);
        first_error.map_or(Ok(elements), |(_, error)| Err(error))
    }

    /// Calls `take` with the elements of each chunk, in order.
    pub(crate) fn each_chunk(&self, mut take: impl FnMut(&[T]) -> Result<()>) -> Result<()> {
        let (mut scratch, mut elements) = (Scratch::default(), Vec::new());
        (0..self.n_chunks()).try_for_each(|chunk| {
            elements.resize(self.rows_of_chunk(chunk).len() * self.width(), T::default());
            self.read_chunk(chunk, &mut scratch, &mut elements)?;
            take(&elements)
        })
    }

    /// The error for a column whose elements violate the format.
    pub(crate) fn broken(&self, violation: Violation) -> Error {
        self.file.broken(violation)
    }

    /// A reader of this column for one thread.
    pub(crate) fn reader(&self) -> ColumnReader<T> {
        ColumnReader { column: self.clone(), held: 0..0, elements: Arc::default() }
    }
}

/// One thread's reader of a column. Returns any row, and keeps the decoded chunk for the next one.
pub(crate) struct ColumnReader<T> {
    column: Column<T>,
    /// The rows of the decoded chunk.
    held: Range<usize>,
    elements: Arc<Vec<T>>,
}

impl<T: Scalar> ColumnReader<T> {
    /// The column.
    pub(crate) fn column(&self) -> &Column<T> {
        &self.column
    }

    /// The elements of one row.
    #[inline]
    pub(crate) fn row(&mut self, row: usize) -> Result<&[T]> {
        if !self.held.contains(&row) {
            self.hold(row)?;
        }
        let width = self.column.layout.width;
        let at = (row - self.held.start) * width;
        Ok(&self.elements[at..at + width])
    }

    /// The element of one row, in a column of single elements.
    #[inline]
    pub(crate) fn get(&mut self, row: usize) -> Result<T> {
        Ok(self.row(row)?[0])
    }

    /// Calls `take` with the elements of rows `from` up to `to` of a column of single elements, once per
    /// chunk.
    #[inline]
    pub(crate) fn pieces(&mut self, from: usize, to: usize, mut take: impl FnMut(&[T])) -> Result<()> {
        let mut from = from;
        while from < to {
            if !self.held.contains(&from) {
                self.hold(from)?;
            }
            let end = to.min(self.held.end);
            take(&self.elements[from - self.held.start..end - self.held.start]);
            from = end;
        }
        Ok(())
    }

    fn hold(&mut self, row: usize) -> Result<()> {
        let chunk = row / self.column.layout.chunk_rows;
        let rows = self.column.rows_of_chunk(chunk);
        self.held = 0..0;
        let Self { column, elements, .. } = self;
        match &column.shared {
            Some(shared) => {
                let decode = || column.decoded(chunk, Arc::default());
                *elements = shared.chunk(chunk, rows.clone(), decode)?;
            }
            None => *elements = column.decoded(chunk, std::mem::take(elements))?,
        }
        self.held = rows;
        Ok(())
    }
}
