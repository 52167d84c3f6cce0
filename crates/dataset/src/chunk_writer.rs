//! Writes chunks into a file: background threads compress them, and the calling thread passes them to the library in order.
//!
//! Compression is most of the work of writing a file. The HDF5 library appends each chunk when it is passed to
//! the library, so chunks are passed in the order of submission, whichever thread finishes first.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use corpus::digest::Digest;

use crate::chunk::{Encoder, Scalar, shuffle};
use crate::error::{At, Result};
use crate::ffi;
use crate::in_order::threads;

/// Maximum number of compressing threads. Two are as fast as the thread that feeds them.
const THREADS_MAX: NonZeroUsize = NonZeroUsize::new(2).expect("2 is more than 0");
/// Maximum number of chunks in progress.
const UNDER_WAY_MAX: usize = 8;
/// The stack holds nothing large.
const STACK_BYTES: usize = 256 << 10;

/// Stores the chunks of all columns of a file.
pub(crate) struct ChunkWriter {
    path: PathBuf,
    /// Used in rotation, one chunk each.
    compressors: Vec<Compressor>,
    next: usize,
    under_way: VecDeque<Place>,
    spare: Vec<Buffers>,
    /// Per column, the digests of the chunks stored so far.
    digests: Vec<Vec<Digest>>,
}

/// A compressing thread. Each chunk is sent to it and comes back. The feeding thread owns the buffers, so
/// this thread allocates nothing.
struct Compressor {
    there: SyncSender<Buffers>,
    back: Receiver<Buffers>,
}

#[derive(Default)]
struct Buffers {
    /// Number of elements of the chunk.
    capacity: usize,
    shuffled: Vec<u8>,
    stored: Vec<u8>,
}

/// Destination of a chunk.
struct Place {
    /// Index of the compressor that has the chunk.
    compressor: usize,
    column: usize,
    dataset: hdf5::Dataset,
    offset: Vec<u64>,
}

impl Compressor {
    fn start() -> io::Result<Self> {
        let mut encoder = Encoder::default();
        let (there, to_do) = sync_channel::<Buffers>(UNDER_WAY_MAX);
        let (done, back) = sync_channel(UNDER_WAY_MAX);
        // The thread ends when the other end of either channel is closed.
        let compress = move || {
            for mut chunk in to_do {
                encoder.encode(&chunk.shuffled, chunk.capacity, &mut chunk.stored);
                if done.send(chunk).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().stack_size(STACK_BYTES).spawn(compress)?;
        Ok(Self { there, back })
    }
}

const ENDS_LATER: &str = "a thread that compresses ends after the one that feeds it";

impl ChunkWriter {
    /// For the file at this path.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let started = (0..threads(THREADS_MAX).get()).map(|_| Compressor::start());
        let compressors = started.collect::<io::Result<_>>().at(path, "start a thread that compresses")?;
        let (under_way, spare, digests) = (VecDeque::new(), Vec::new(), Vec::new());
        Ok(Self { path: path.to_owned(), compressors, next: 0, under_way, spare, digests })
    }

    /// Returns the number of a new column.
    pub(crate) fn new_column(&mut self) -> usize {
        self.digests.push(Vec::new());
        self.digests.len() - 1
    }

    /// Submits the next chunk, of `capacity` elements, which are `elements` followed by zeros, as in the last
    /// chunk of a column. `offset` is the index of its first element.
    pub(crate) fn store<T: Scalar>(
        &mut self,
        column: usize,
        dataset: &hdf5::Dataset,
        offset: Vec<u64>,
        elements: &[T],
        capacity: usize,
    ) -> Result<()> {
        let mut chunk = self.spare.pop().unwrap_or_default();
        chunk.capacity = capacity;
        shuffle(elements, capacity, &mut chunk.shuffled);
        chunk.stored.resize(Encoder::stored_bytes_max(chunk.shuffled.len()), 0);
        let compressor = self.next;
        self.next = (self.next + 1) % self.compressors.len();
        self.compressors[compressor].there.send(chunk).expect(ENDS_LATER);
        self.under_way.push_back(Place { compressor, column, dataset: dataset.clone(), offset });
        if self.under_way.len() == UNDER_WAY_MAX { self.store_next() } else { Ok(()) }
    }

    /// Stores the oldest chunk in progress.
    fn store_next(&mut self) -> Result<()> {
        let Some(Place { compressor, column, dataset, offset }) = self.under_way.pop_front() else {
            return Ok(());
        };
        let chunk = self.compressors[compressor].back.recv().expect(ENDS_LATER);
        self.digests[column].push(Digest::of(&chunk.stored));
        ffi::write_chunk(&dataset, &offset, &chunk.stored).at(&self.path, "write a chunk")?;
        self.spare.push(chunk);
        Ok(())
    }

    /// Stores the chunks in progress. Returns the digests of the column's chunks.
    pub(crate) fn finish_column(&mut self, column: usize) -> Result<Vec<Digest>> {
        while !self.under_way.is_empty() {
            self.store_next()?;
        }
        Ok(std::mem::take(&mut self.digests[column]))
    }
}
