//! Writes chunks into a file: background threads compress them, and the calling thread passes them to the library in order.
//!
//! Compression is most of the work of writing a file. The HDF5 library appends each chunk when it is passed to
//! the library, so chunks are passed in the order of submission, whichever thread finishes first.
//!
//! Rows that several threads encode come in [`Piece`]s: chunks that are compressed already, and the elements of the
//! chunks in which one part ends and the next one begins.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use corpus::digest::Digest;

use crate::chunk::{Encoder, Scalar, append_bytes, shuffle, shuffle_bytes};
use crate::column_writer::ChunkSink;
use crate::error::{At, Error, Result};
use crate::ffi;
use crate::in_order::threads;
use crate::layout::Layout;

/// Maximum number of compressing threads of a file. Two are as fast as the thread that feeds them.
pub const COMPRESSORS_MAX: NonZeroUsize = NonZeroUsize::new(2).expect("2 is more than 0");
/// Maximum number of chunks in progress.
const UNDER_WAY_MAX: usize = 8;
/// The stack holds nothing large.
const STACK_BYTES: usize = 256 << 10;

/// Stores the chunks of all columns of a file.
pub(crate) struct ChunkWriter {
    path: PathBuf,
    columns: Vec<StoredColumn>,
    /// Used in rotation, one chunk each.
    compressors: Vec<Compressor>,
    next: usize,
    under_way: VecDeque<UnderWay>,
    spare: Vec<Buffers>,
}

/// A column of the file.
struct StoredColumn {
    dataset: hdf5::Dataset,
    layout: Layout,
    description: String,
    element_bytes: usize,
    /// Number of submitted chunks.
    n_chunks: usize,
    /// The bytes of the elements after the last submitted chunk.
    rest: Vec<u8>,
    /// The digests of the chunks stored so far.
    digests: Vec<Digest>,
}

/// What one part of the rows adds to a column.
pub(crate) struct Piece {
    pub(crate) column: usize,
    pub(crate) content: Content,
}

impl Piece {
    /// The piece in a file in which its column comes behind this number of others.
    pub(crate) fn behind(self, columns: usize) -> Self {
        Self { column: self.column + columns, ..self }
    }
}

pub(crate) enum Content {
    /// A whole chunk.
    Chunk { stored: Vec<u8>, digest: Digest },
    /// The bytes of elements of a chunk that is divided between parts.
    Rest(Vec<u8>),
}

/// Compresses the chunks of one part of the rows on the calling thread, and passes them on.
pub(crate) struct Pieces<P> {
    put: P,
    encoder: Encoder,
    shuffled: Vec<u8>,
    stored: Vec<u8>,
}

impl<P: FnMut(Piece)> Pieces<P> {
    pub(crate) fn new(put: P) -> Self {
        Self { put, encoder: Encoder::default(), shuffled: Vec::new(), stored: Vec::new() }
    }
}

impl<P: FnMut(Piece)> ChunkSink for Pieces<P> {
    fn chunk<T: Scalar>(&mut self, column: usize, elements: &[T]) -> Result<()> {
        shuffle(elements, elements.len(), &mut self.shuffled);
        self.stored.resize(Encoder::stored_bytes_max(self.shuffled.len()), 0);
        self.encoder.encode(&self.shuffled, elements.len(), &mut self.stored);
        let (stored, digest) = (self.stored.clone(), Digest::of(&self.stored));
        (self.put)(Piece { column, content: Content::Chunk { stored, digest } });
        Ok(())
    }

    fn rest<T: Scalar>(&mut self, column: usize, elements: &[T]) -> Result<()> {
        let mut bytes = Vec::with_capacity(elements.len() * T::BYTES);
        append_bytes(elements, &mut bytes);
        (self.put)(Piece { column, content: Content::Rest(bytes) });
        Ok(())
    }
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
    digest: Digest,
}

/// A chunk in progress.
struct UnderWay {
    column: usize,
    /// Index of the first row.
    first: u64,
    from: Source,
}

/// Where a chunk in progress comes from.
enum Source {
    /// The compressor with this index.
    Compressor(usize),
    /// It is compressed already.
    Part { stored: Vec<u8>, digest: Digest },
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
                chunk.digest = Digest::of(&chunk.stored);
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
        let started = (0..threads(COMPRESSORS_MAX).get()).map(|_| Compressor::start());
        let compressors = started.collect::<io::Result<_>>().at(path, "start a thread that compresses")?;
        let (columns, under_way, spare) = (Vec::new(), VecDeque::new(), Vec::new());
        Ok(Self { path: path.to_owned(), columns, compressors, next: 0, under_way, spare })
    }

    /// Returns the number of a new column.
    pub(crate) fn new_column<T: Scalar>(&mut self, dataset: hdf5::Dataset, layout: Layout) -> usize {
        let (description, element_bytes) = (layout.description::<T>(), T::BYTES);
        let (n_chunks, rest, digests) = (0, Vec::new(), Vec::new());
        self.columns.push(StoredColumn {
            dataset,
            layout,
            description,
            element_bytes,
            n_chunks,
            rest,
            digests,
        });
        self.columns.len() - 1
    }

    /// Submits what a part of the rows adds to a column. The pieces of a part come in the order of the part, and the
    /// parts in the order of the rows.
    pub(crate) fn put(&mut self, Piece { column, content }: Piece) -> Result<()> {
        match content {
            Content::Chunk { stored, digest } => {
                self.check_whole(column)?;
                self.under_way(column, Source::Part { stored, digest })
            }
            Content::Rest(bytes) => self.add_rest(column, |rest| rest.extend_from_slice(&bytes)),
        }
    }

    /// Checks that the elements so far end with a whole chunk.
    fn check_whole(&self, column: usize) -> Result<()> {
        let StoredColumn { rest, layout, .. } = &self.columns[column];
        if rest.is_empty() {
            return Ok(());
        }
        let promise = format!("a chunk of {} comes when the one before is whole", layout.name);
        Err(Error::Internal { path: self.path.clone(), promise })
    }

    fn add_rest(&mut self, column: usize, add: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let of = &mut self.columns[column];
        add(&mut of.rest);
        match of.rest.len().cmp(&(of.layout.chunk_elements() * of.element_bytes)) {
            Ordering::Less => Ok(()),
            Ordering::Equal => self.submit_rest(column),
            Ordering::Greater => {
                let promise = format!("the parts of a chunk of {} are together one chunk", of.layout.name);
                Err(Error::Internal { path: self.path.clone(), promise })
            }
        }
    }

    /// Submits the elements after the last chunk, followed by zeros, as the next chunk.
    fn submit_rest(&mut self, column: usize) -> Result<()> {
        let mut rest = std::mem::take(&mut self.columns[column].rest);
        let element_bytes = self.columns[column].element_bytes;
        self.submit(column, |capacity, shuffled| shuffle_bytes(&rest, element_bytes, capacity, shuffled))?;
        rest.clear();
        self.columns[column].rest = rest;
        Ok(())
    }

    /// Submits the next chunk to a compressor.
    fn submit(&mut self, column: usize, shuffle: impl FnOnce(usize, &mut Vec<u8>)) -> Result<()> {
        let mut chunk = self.spare.pop().unwrap_or_default();
        chunk.capacity = self.columns[column].layout.chunk_elements();
        shuffle(chunk.capacity, &mut chunk.shuffled);
        chunk.stored.resize(Encoder::stored_bytes_max(chunk.shuffled.len()), 0);
        let compressor = self.next;
        self.next = (self.next + 1) % self.compressors.len();
        self.compressors[compressor].there.send(chunk).expect(ENDS_LATER);
        self.under_way(column, Source::Compressor(compressor))
    }

    fn under_way(&mut self, column: usize, from: Source) -> Result<()> {
        let of = &mut self.columns[column];
        let first = (of.n_chunks * of.layout.chunk_rows) as u64;
        of.n_chunks += 1;
        self.under_way.push_back(UnderWay { column, first, from });
        if self.under_way.len() == UNDER_WAY_MAX { self.store_next() } else { Ok(()) }
    }

    /// Stores the oldest chunk in progress.
    fn store_next(&mut self) -> Result<()> {
        let Some(UnderWay { column, first, from }) = self.under_way.pop_front() else { return Ok(()) };
        match from {
            Source::Part { stored, digest } => self.store(column, first, &stored, digest),
            Source::Compressor(compressor) => {
                let chunk = self.compressors[compressor].back.recv().expect(ENDS_LATER);
                self.store(column, first, &chunk.stored, chunk.digest)?;
                self.spare.push(chunk);
                Ok(())
            }
        }
    }

    fn store(&mut self, column: usize, first: u64, stored: &[u8], digest: Digest) -> Result<()> {
        let of = &mut self.columns[column];
        let mut offset = vec![0; of.layout.dimensions()];
        offset[0] = first;
        of.digests.push(digest);
        ffi::write_chunk(&of.dataset, &offset, stored).at(&self.path, "write a chunk")
    }

    /// Stores the last chunk of a column and all chunks in progress. Returns the column's description and the digests
    /// of its chunks for the table of digests.
    pub(crate) fn finish_column(&mut self, column: usize) -> Result<(String, Vec<Digest>)> {
        let StoredColumn { layout, n_chunks, rest, element_bytes, .. } = &self.columns[column];
        let written = n_chunks * layout.chunk_elements() + rest.len() / element_bytes;
        if written != layout.rows * layout.width {
            let Layout { name, rows, width, .. } = layout;
            let promise = format!("{written} elements were written to {name} of {rows} rows of {width}");
            return Err(Error::Internal { path: self.path.clone(), promise });
        }
        if !rest.is_empty() {
            self.submit_rest(column)?;
        }
        while !self.under_way.is_empty() {
            self.store_next()?;
        }
        let of = &mut self.columns[column];
        Ok((std::mem::take(&mut of.description), std::mem::take(&mut of.digests)))
    }

    /// Closes all columns. With an open column, the library would write the end of the file after it was closed and synced.
    pub(crate) fn close_columns(&mut self) {
        self.columns.clear();
    }
}

impl ChunkSink for ChunkWriter {
    fn chunk<T: Scalar>(&mut self, column: usize, elements: &[T]) -> Result<()> {
        self.check_whole(column)?;
        self.submit(column, |capacity, shuffled| shuffle(elements, capacity, shuffled))
    }

    fn rest<T: Scalar>(&mut self, column: usize, elements: &[T]) -> Result<()> {
        self.add_rest(column, |rest| append_bytes(elements, rest))
    }
}
