//! One column of a file: elements in order in, any element out, a chunk at a time.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use corpus::digest::Digest;

use crate::chunk::{Decoder, Encoder, Scalar};
use crate::error::{At, Error, Result};
use crate::ffi;
use crate::file::Layout;

/// Gathers elements and stores each chunk as soon as it is full.
pub(crate) struct ColumnWriter<T> {
    path: PathBuf,
    dataset: hdf5::Dataset,
    layout: Layout,
    elements: Vec<T>,
    digests: Vec<Digest>,
}

impl<T: Scalar> ColumnWriter<T> {
    pub(crate) fn new(path: PathBuf, dataset: hdf5::Dataset, layout: Layout) -> Self {
        Self { path, dataset, layout, elements: Vec::new(), digests: Vec::new() }
    }

    /// Takes the next elements; of a column with a width, whole rows.
    pub(crate) fn push(&mut self, encoder: &mut Encoder, mut elements: &[T]) -> Result<()> {
        let capacity = self.layout.chunk_rows * self.layout.width;
        while !elements.is_empty() {
            let (now, later) = elements.split_at(elements.len().min(capacity - self.elements.len()));
            self.elements.extend_from_slice(now);
            elements = later;
            if self.elements.len() == capacity {
                self.store(encoder)?;
            }
        }
        Ok(())
    }

    fn store(&mut self, encoder: &mut Encoder) -> Result<()> {
        let stored = encoder.encode(&self.elements, self.layout.chunk_rows * self.layout.width);
        let mut offset = vec![0; self.layout.dimensions()];
        offset[0] = (self.digests.len() * self.layout.chunk_rows) as u64;
        self.digests.push(Digest::of(stored));
        self.elements.clear();
        ffi::write_chunk(&self.dataset, &offset, stored).at(&self.path, "write a chunk")
    }

    /// Stores the last chunk; gives what the table of digests says of this column.
    pub(crate) fn finish(mut self, encoder: &mut Encoder) -> Result<(String, Vec<Digest>)> {
        let written = self.digests.len() * self.layout.chunk_rows * self.layout.width + self.elements.len();
        if written != self.layout.rows * self.layout.width {
            let Layout { name, rows, width, .. } = &self.layout;
            let promise = format!("{written} elements were written to {name} of {rows} rows of {width}");
            return Err(Error::Internal { path: self.path, promise });
        }
        if !self.elements.is_empty() {
            self.store(encoder)?;
        }
        Ok((self.layout.description::<T>(), self.digests))
    }
}

/// Reads a column chunk by chunk: each is read from the file by its address, held against its digest, and only
/// then decoded. One chunk is held at a time.
pub(crate) struct ColumnReader<T> {
    path: Arc<Path>,
    file: Arc<fs::File>,
    layout: Layout,
    chunks: Vec<StoredChunk>,
    decoder: Decoder,
    stored: Vec<u8>,
    held: Option<usize>,
    elements: Vec<T>,
}

#[derive(Clone, Copy)]
struct StoredChunk {
    address: u64,
    bytes: u64,
    digest: Digest,
}

impl<T: Scalar> ColumnReader<T> {
    pub(crate) fn open(
        path: Arc<Path>,
        file: Arc<fs::File>,
        dataset: &hdf5::Dataset,
        layout: Layout,
        digests: Vec<Digest>,
    ) -> Result<Self> {
        let damaged = || Error::Damaged {
            path: path.to_path_buf(),
            part: format!("the chunk index of {}", layout.name),
        };
        let n_chunks = layout.rows.div_ceil(layout.chunk_rows);
        if digests.len() != n_chunks {
            return Err(damaged());
        }
        let mut found = vec![None; n_chunks];
        if n_chunks > 0 {
            dataset
                .chunks_visit(|chunk| {
                    let at = chunk.offset[0] as usize / layout.chunk_rows;
                    if chunk.filter_mask == 0 && at < n_chunks {
                        found[at] = Some((chunk.addr, chunk.size));
                    }
                    0
                })
                .map_err(|_| damaged())?;
        }
        // Deflate never grows a chunk by more than a few bytes in a thousand.
        let bytes_max = 2 * (layout.chunk_rows * layout.width * T::BYTES) as u64 + 1024;
        let chunks: Option<Vec<_>> = found
            .into_iter()
            .zip(digests)
            .map(|(place, digest)| match place {
                Some((address, bytes)) if bytes <= bytes_max => Some(StoredChunk { address, bytes, digest }),
                _ => None,
            })
            .collect();
        let chunks = chunks.ok_or_else(damaged)?;
        let decoder = Decoder::default();
        Ok(Self { path, file, layout, chunks, decoder, stored: Vec::new(), held: None, elements: Vec::new() })
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.layout.rows
    }

    /// The elements of one row.
    #[inline]
    pub(crate) fn row(&mut self, row: usize) -> Result<&[T]> {
        let chunk = row / self.layout.chunk_rows;
        if self.held != Some(chunk) {
            self.load(chunk)?;
        }
        let at = (row % self.layout.chunk_rows) * self.layout.width;
        Ok(&self.elements[at..at + self.layout.width])
    }

    /// The element of one row of a column of single elements.
    #[inline]
    pub(crate) fn get(&mut self, row: usize) -> Result<T> {
        Ok(self.row(row)?[0])
    }

    /// Appends the elements of the rows from `from` up to `to` of a column of single elements.
    pub(crate) fn extend(&mut self, from: usize, to: usize, out: &mut Vec<T>) -> Result<()> {
        let mut from = from;
        while from < to {
            self.row(from)?;
            let at = from % self.layout.chunk_rows;
            let n = (to - from).min(self.layout.chunk_rows - at);
            out.extend_from_slice(&self.elements[at..at + n]);
            from += n;
        }
        Ok(())
    }

    fn load(&mut self, at: usize) -> Result<()> {
        let chunk = self.chunks[at];
        self.held = None;
        self.stored.resize(chunk.bytes as usize, 0);
        let damaged = || Error::Damaged {
            path: self.path.to_path_buf(),
            part: format!("chunk {at} of {}", self.layout.name),
        };
        match self.file.read_exact_at(&mut self.stored, chunk.address) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Err(damaged()),
            read => read.at(&self.path, "read a chunk")?,
        }
        if Digest::of(&self.stored) != chunk.digest {
            return Err(damaged());
        }
        let capacity = self.layout.chunk_rows * self.layout.width;
        self.decoder.decode(&self.stored, capacity, &mut self.elements).ok_or_else(damaged)?;
        self.held = Some(at);
        Ok(())
    }
}
