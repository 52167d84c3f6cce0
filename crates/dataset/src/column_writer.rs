//! Cuts the elements of a column into chunks.

use crate::chunk::Scalar;
use crate::error::Result;
use crate::layout::Layout;

/// Takes the elements of columns, cut at the ends of chunks.
pub(crate) trait ChunkSink {
    /// Takes all elements of the next chunk of a column.
    fn chunk<T: Scalar>(&mut self, column: usize, elements: &[T]) -> Result<()>;

    /// Takes elements that do not fill a chunk: those after the last whole chunk, or those that complete a chunk of
    /// which other elements were taken before.
    fn rest<T: Scalar>(&mut self, column: usize, elements: &[T]) -> Result<()>;
}

/// Collects elements and passes them on as soon as a chunk is full.
pub(crate) struct ColumnWriter<T> {
    /// Number of the column in its file.
    column: usize,
    /// Number of elements of a chunk.
    capacity: usize,
    /// Number of elements until the end of the current chunk.
    missing: usize,
    elements: Vec<T>,
}

impl<T: Scalar> ColumnWriter<T> {
    pub(crate) fn new(column: usize, layout: &Layout) -> Self {
        let capacity = layout.chunk_elements();
        Self { column, capacity, missing: capacity, elements: Vec::new() }
    }

    /// A writer of the elements from this index on.
    pub(crate) fn starting_at(&self, element: u64) -> Self {
        let Self { column, capacity, .. } = *self;
        Self {
            column,
            capacity,
            missing: capacity - (element % capacity as u64) as usize,
            elements: Vec::new(),
        }
    }

    /// Number of the column in its file.
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    /// Appends elements; in a column with a width, whole rows.
    #[inline]
    pub(crate) fn push(&mut self, chunks: &mut impl ChunkSink, mut elements: &[T]) -> Result<()> {
        while !elements.is_empty() {
            let (now, later) = elements.split_at(elements.len().min(self.missing));
            self.elements.extend_from_slice(now);
            self.missing -= now.len();
            elements = later;
            if self.missing == 0 {
                self.pass_on(chunks)?;
            }
        }
        Ok(())
    }

    fn pass_on(&mut self, chunks: &mut impl ChunkSink) -> Result<()> {
        if self.elements.len() == self.capacity {
            chunks.chunk(self.column, &self.elements)?;
        } else {
            chunks.rest(self.column, &self.elements)?;
        }
        self.elements.clear();
        self.missing = self.capacity;
        Ok(())
    }

    /// Passes on the elements after the last whole chunk.
    pub(crate) fn finish(mut self, chunks: &mut impl ChunkSink) -> Result<()> {
        if self.elements.is_empty() { Ok(()) } else { self.pass_on(chunks) }
    }
}
