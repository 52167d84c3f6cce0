//! A column as it is written: elements in order in, each chunk to the file as soon as it is full.

use std::path::PathBuf;

use corpus::digest::Digest;

use crate::chunk::{Encoder, Scalar};
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
        let capacity = self.layout.chunk_elements();
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
        let stored = encoder.encode(&self.elements, self.layout.chunk_elements());
        let mut offset = vec![0; self.layout.dimensions()];
        offset[0] = (self.digests.len() * self.layout.chunk_rows) as u64;
        self.digests.push(Digest::of(stored));
        self.elements.clear();
        ffi::write_chunk(&self.dataset, &offset, stored).at(&self.path, "write a chunk")
    }

    /// Stores the last chunk; gives what the table of digests says of this column.
    pub(crate) fn finish(mut self, encoder: &mut Encoder) -> Result<(String, Vec<Digest>)> {
        let written = self.digests.len() * self.layout.chunk_elements() + self.elements.len();
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
