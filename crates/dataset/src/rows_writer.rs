//! Writes the columns of rows: of a whole file, or of one of several parts of them.

use crate::chunk::Scalar;
use crate::column_writer::{ChunkSink, ColumnWriter};
use crate::error::Result;
use crate::file::FileWriter;
use crate::layout::Layout;
use crate::row_columns::{Row, RowsSize, TokenType};
use crate::schema::{HASH, LABEL, OFFSETS, SPLIT, TOKENS, VOTES};

/// Gives columns their numbers.
pub(crate) trait NewColumns {
    /// Returns the next column, of `rows` rows with `width` elements each.
    fn column<T: Scalar>(&mut self, name: &str, rows: usize, width: Option<usize>)
    -> Result<ColumnWriter<T>>;
}

impl NewColumns for FileWriter {
    fn column<T: Scalar>(
        &mut self,
        name: &str,
        rows: usize,
        width: Option<usize>,
    ) -> Result<ColumnWriter<T>> {
        self.column(name, rows, width)
    }
}

/// Numbers columns from 0, for rows that are encoded for the file of another program.
#[derive(Default)]
pub(crate) struct Numbered(usize);

impl NewColumns for Numbered {
    fn column<T: Scalar>(
        &mut self,
        name: &str,
        rows: usize,
        width: Option<usize>,
    ) -> Result<ColumnWriter<T>> {
        self.0 += 1;
        Ok(ColumnWriter::new(self.0 - 1, &Layout::of(name, rows, width)))
    }
}

/// Writes rows in the order of the calls.
pub(crate) struct RowsWriter {
    tokens: TokensWriter,
    offsets: ColumnWriter<u64>,
    label: ColumnWriter<u8>,
    votes: ColumnWriter<u32>,
    hash: ColumnWriter<u64>,
    split: ColumnWriter<u16>,
    n_tokens: u64,
    narrow: Vec<u16>,
}

enum TokensWriter {
    U16(ColumnWriter<u16>),
    U32(ColumnWriter<u32>),
}

impl RowsWriter {
    /// Creates the columns of a new file for this number of rows and tokens. They are consecutive.
    pub(crate) fn create(file: &mut impl NewColumns, size: RowsSize, token_type: TokenType) -> Result<Self> {
        let (n_rows, n_tokens) = (size.rows as usize, size.tokens as usize);
        Ok(Self {
            offsets: file.column(OFFSETS, n_rows + 1, None)?,
            tokens: match token_type {
                TokenType::U16 => TokensWriter::U16(file.column(TOKENS, n_tokens, None)?),
                TokenType::U32 => TokensWriter::U32(file.column(TOKENS, n_tokens, None)?),
            },
            label: file.column(LABEL, n_rows, None)?,
            votes: file.column(VOTES, n_rows, Some(5))?,
            hash: file.column(HASH, n_rows, None)?,
            split: file.column(SPLIT, n_rows, None)?,
            n_tokens: 0,
            narrow: Vec::new(),
        })
    }

    /// Number of the first column in its file.
    pub(crate) fn first_column(&self) -> usize {
        self.offsets.column()
    }

    /// A writer of the rows after `before`.
    pub(crate) fn starting_at(&self, before: RowsSize) -> Self {
        let RowsSize { rows, tokens } = before;
        Self {
            tokens: match &self.tokens {
                TokensWriter::U16(column) => TokensWriter::U16(column.starting_at(tokens)),
                TokensWriter::U32(column) => TokensWriter::U32(column.starting_at(tokens)),
            },
            // Each row writes the offset of its end.
            offsets: self.offsets.starting_at(rows + 1),
            label: self.label.starting_at(rows),
            votes: self.votes.starting_at(5 * rows),
            hash: self.hash.starting_at(rows),
            split: self.split.starting_at(rows),
            n_tokens: tokens,
            narrow: Vec::new(),
        }
    }

    /// Writes what comes before the first row of a file.
    pub(crate) fn begin(&mut self, chunks: &mut impl ChunkSink) -> Result<()> {
        self.offsets = self.offsets.starting_at(0);
        self.offsets.push(chunks, &[0])
    }

    pub(crate) fn push(&mut self, chunks: &mut impl ChunkSink, row: &Row) -> Result<()> {
        match &mut self.tokens {
            TokensWriter::U16(column) => {
                self.narrow.clear();
                self.narrow.extend(row.tokens.iter().map(|&id| id as u16));
                column.push(chunks, &self.narrow)?;
            }
            TokensWriter::U32(column) => column.push(chunks, &row.tokens)?,
        }
        self.n_tokens += row.tokens.len() as u64;
        self.offsets.push(chunks, &[self.n_tokens])?;
        self.label.push(chunks, &[row.label])?;
        self.votes.push(chunks, &row.votes.0)?;
        self.hash.push(chunks, &[row.hash])?;
        self.split.push(chunks, &[row.split])
    }

    /// Passes on the elements after the last whole chunk of each column.
    pub(crate) fn finish_part(self, chunks: &mut impl ChunkSink) -> Result<()> {
        match self.tokens {
            TokensWriter::U16(column) => column.finish(chunks)?,
            TokensWriter::U32(column) => column.finish(chunks)?,
        }
        self.offsets.finish(chunks)?;
        self.label.finish(chunks)?;
        self.votes.finish(chunks)?;
        self.hash.finish(chunks)?;
        self.split.finish(chunks)
    }

    pub(crate) fn finish(self, file: &mut FileWriter) -> Result<()> {
        match self.tokens {
            TokensWriter::U16(column) => file.finish_column(column)?,
            TokensWriter::U32(column) => file.finish_column(column)?,
        }
        file.finish_column(self.offsets)?;
        file.finish_column(self.label)?;
        file.finish_column(self.votes)?;
        file.finish_column(self.hash)?;
        file.finish_column(self.split)
    }
}
