//! Chunks on their way into a file: compressed by a thread beside the one that fills them, stored in order.
//!
//! Compressing is a third of what writing a file takes. The library lays chunks one behind the other as they are stored,
//! so that they are stored here in the order in which they came, whoever was faster.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use corpus::digest::Digest;

use crate::chunk::{Encoder, Scalar, shuffle};
use crate::error::{At, Result};
use crate::ffi;

/// So many chunks are under way at most.
const UNDER_WAY_MAX: usize = 4;
/// The thread holds nothing of size on its stack.
const STACK_BYTES: usize = 256 << 10;

/// Stores the chunks of all columns of a file.
pub(crate) struct ChunkWriter {
    path: PathBuf,
    /// Each chunk goes there and comes back. Its buffers are this thread's, so that the other one takes no memory.
    there: SyncSender<Buffers>,
    back: Receiver<Buffers>,
    under_way: VecDeque<Place>,
    spare: Vec<Buffers>,
    /// Of each column, those of its chunks stored so far.
    digests: Vec<Vec<Digest>>,
}

#[derive(Default)]
struct Buffers {
    shuffled: Vec<u8>,
    stored: Vec<u8>,
}

/// Where a chunk belongs.
struct Place {
    column: usize,
    dataset: hdf5::Dataset,
    offset: Vec<u64>,
}

impl ChunkWriter {
    /// For the file of this path; compresses with this level of deflate, from 1 to 9.
    pub(crate) fn new(path: &Path, deflate_level: u8) -> Result<Self> {
        let mut encoder = Encoder::new(deflate_level);
        let (there, to_do) = sync_channel::<Buffers>(UNDER_WAY_MAX);
        let (done, back) = sync_channel(UNDER_WAY_MAX);
        // It ends when the other end of either channel does.
        let compress = move || {
            for mut chunk in to_do {
                encoder.encode(&chunk.shuffled, &mut chunk.stored);
                if done.send(chunk).is_err() {
                    return;
                }
            }
        };
        let started = thread::Builder::new().stack_size(STACK_BYTES).spawn(compress);
        started.at(path, "start a thread that compresses")?;
        let (under_way, spare, digests) = (VecDeque::new(), Vec::new(), Vec::new());
        Ok(Self { path: path.to_owned(), there, back, under_way, spare, digests })
    }

    /// A number for a new column.
    pub(crate) fn new_column(&mut self) -> usize {
        self.digests.push(Vec::new());
        self.digests.len() - 1
    }

    /// Takes the next chunk, of `capacity` elements of which the first are given and the rest are zero, as in the last
    /// chunk of a column. Its first element stands at `offset`.
    pub(crate) fn store<T: Scalar>(
        &mut self,
        column: usize,
        dataset: &hdf5::Dataset,
        offset: Vec<u64>,
        elements: &[T],
        capacity: usize,
    ) -> Result<()> {
        let mut chunk = self.spare.pop().unwrap_or_default();
        shuffle(elements, capacity, &mut chunk.shuffled);
        chunk.stored.resize(Encoder::stored_bytes_max(chunk.shuffled.len()), 0);
        self.there.send(chunk).expect("the thread that compresses ends after this one");
        self.under_way.push_back(Place { column, dataset: dataset.clone(), offset });
        if self.under_way.len() == UNDER_WAY_MAX { self.store_next() } else { Ok(()) }
    }

    /// Stores the chunk that has been under way longest.
    fn store_next(&mut self) -> Result<()> {
        let Some(Place { column, dataset, offset }) = self.under_way.pop_front() else { return Ok(()) };
        let chunk = self.back.recv().expect("the thread that compresses ends after this one");
        self.digests[column].push(Digest::of(&chunk.stored));
        ffi::write_chunk(&dataset, &offset, &chunk.stored).at(&self.path, "write a chunk")?;
        self.spare.push(chunk);
        Ok(())
    }

    /// Stores what is under way; gives the digests of a column's chunks.
    pub(crate) fn finish_column(&mut self, column: usize) -> Result<Vec<Digest>> {
        while !self.under_way.is_empty() {
            self.store_next()?;
        }
        Ok(std::mem::take(&mut self.digests[column]))
    }
}
