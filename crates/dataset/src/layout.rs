//! The shape and the chunks of a column.

use crate::chunk::Scalar;
use crate::digest_table::describe_column;
use crate::schema::chunk_rows;

/// The shape and the chunks of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) name: String,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) chunk_rows: usize,
    pub(crate) shape: Vec<usize>,
    pub(crate) chunk: Vec<usize>,
}

impl Layout {
    pub(crate) fn of(name: &str, rows: usize, width: Option<usize>) -> Self {
        let chunk_rows = chunk_rows(name, width.unwrap_or(1)).min(rows.max(1));
        let dimensions = |first: usize| std::iter::once(first).chain(width).collect::<Vec<_>>();
        Self {
            name: name.to_owned(),
            rows,
            width: width.unwrap_or(1),
            chunk_rows,
            shape: dimensions(rows),
            chunk: dimensions(chunk_rows),
        }
    }

    /// The description of this column in the table of digests.
    pub(crate) fn description<T: Scalar>(&self) -> String {
        describe_column(&self.name, T::NAME, &self.shape, &self.chunk)
    }

    /// Number of chunks.
    pub(crate) fn n_chunks(&self) -> usize {
        self.rows.div_ceil(self.chunk_rows)
    }

    /// Number of elements of a chunk, including the padding of the last chunk.
    pub(crate) fn chunk_elements(&self) -> usize {
        self.chunk_rows * self.width
    }

    /// Number of dimensions.
    pub(crate) fn dimensions(&self) -> usize {
        self.shape.len()
    }
}
