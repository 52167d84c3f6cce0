//! Writes a column: takes elements in order and stores each chunk as soon as it is full.

use std::path::PathBuf;

use corpus::digest::Digest;

use crate::chunk::Scalar;
use crate::chunk_writer::ChunkWriter;
use crate::error::{Error, Result};
use crate::layout::Layout;

/// Collects elements and stores each chunk as soon as it is full.
pub(crate) struct ColumnWriter<T> {
    path: PathBuf,
    dataset: hdf5::Dataset,
    layout: Layout,
    elements: Vec<T>,
    /// Number of this column.
    number: usize,
    n_chunks: usize,
}

impl<T: Scalar> ColumnWriter<T> {
    pub(crate) fn new(path: PathBuf, dataset: hdf5::Dataset, layout: Layout, number: usize) -> Self {
        Self { path, dataset, layout, elements: Vec::new(), number, n_chunks: 0 }
    }

    /// Appends elements; in a column with a width, whole rows.
    pub(crate) fn push(&mut self, chunks: &mut ChunkWriter, mut elements: &[T]) -> Result<()> {
        let capacity = self.layout.chunk_elements();
        while !elements.is_empty() {
            let (now, later) = elements.split_at(elements.len().min(capacity - self.elements.len()));
            self.elements.extend_from_slice(now);
            elements = later;
            if self.elements.len() == capacity {
                self.store(chunks)?;
            }
        }
        Ok(())
    }

    fn store(&mut self, chunks: &mut ChunkWriter) -> Result<()> {
        let mut offset = vec![0; self.layout.dimensions()];
        offset[0] = (self.n_chunks * self.layout.chunk_rows) as u64;
        let capacity = self.layout.chunk_elements();
        chunks.store(self.number, &self.dataset, offset, &self.elements, capacity)?;
        self.n_chunks += 1;
        self.elements.clear();
        Ok(())
    }

    /// Stores the last chunk. Returns the description and the chunk digests of this column for the table of
    /// digests.
    pub(crate) fn finish(mut self, chunks: &mut ChunkWriter) -> Result<(String, Vec<Digest>)> {
        let written = self.n_chunks * self.layout.chunk_elements() + self.elements.len();
        if written != self.layout.rows * self.layout.width {
            let Layout { name, rows, width, .. } = &self.layout;
            let promise = format!("{written} elements were written to {name} of {rows} rows of {width}");
            return Err(Error::Internal { path: self.path, promise });
        }
        if !self.elements.is_empty() {
            self.store(chunks)?;
        }
        Ok((self.layout.description::<T>(), chunks.finish_column(self.number)?))
    }
}
