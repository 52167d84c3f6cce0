//! The six columns of rows that shards and datasets share.

use std::num::NonZeroUsize;
use std::ops::Range;

use corpus::digest::SPLITS;
use corpus::record::Votes;
use corpus::settings::Settings;

use crate::column::{Column, ColumnReader};
use crate::column_writer::ColumnWriter;
use crate::error::{Error, Result};
use crate::file::{FileReader, FileWriter};
use crate::in_order::in_order;
use crate::schema::{HASH, LABEL, OFFSETS, SPLIT, TOKENS, VOTES};

/// Rows that a thread reads in one go. Chunks of the larger columns begin with a block, so that no more is decoded twice
/// than small ones, and a chunk of tokens between two blocks.
const BLOCK_ROWS: u64 = 32 << 10;

/// Reads so many rows by several threads, in blocks: for each `empty` makes something that `read` may add to while it
/// reads the block's rows, and `take` gets both results of every block, in order.
pub(crate) fn in_blocks<R: Send, B: Send, E: From<Error> + Send>(
    n_rows: u64,
    threads: NonZeroUsize,
    empty: impl Fn() -> B + Sync,
    read: impl Fn(Range<u64>, &mut B) -> Result<R> + Sync,
    mut take: impl FnMut(R, B) -> Result<(), E>,
) -> Result<(), E> {
    let read_block = |block: usize| {
        let from = block as u64 * BLOCK_ROWS;
        let mut made = empty();
        let rows = read(from..(from + BLOCK_ROWS).min(n_rows), &mut made)?;
        Ok((rows, made))
    };
    in_order(n_rows.div_ceil(BLOCK_ROWS) as usize, threads, read_block, |(rows, made)| take(rows, made))
}

/// One row: a distinct text. Rows are ordered by hash; where hashes are equal, by tokens, then by votes, so that
/// the order does not depend on who sorts them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// XXH3-64 of the cleaned text.
    pub hash: u64,
    /// The ids of its kept words: in a shard, places in its dictionary; in a dataset, vocabulary ids.
    pub tokens: Vec<u32>,
    /// How many reviews gave the text each rating.
    pub votes: Votes,
    /// 1 for a positive text, else 0.
    pub label: u8,
    /// From 0 to 999; decides whether the row is for training or for testing.
    pub split: u16,
    /// Which of several sources the row came from; not stored in files.
    pub source: u32,
}

impl Row {
    /// What no row made with these settings has, its tokens being ids from this range; `None` for a sound row.
    pub(crate) fn fault(&self, settings: &Settings, ids: Range<u64>) -> Option<&'static str> {
        let most = if settings.max_tokens == 0 { usize::MAX } else { settings.max_tokens as usize };
        if self.label != settings.label(self.votes) {
            Some("the label of a row")
        } else if self.tokens.is_empty() || self.tokens.len() > most {
            Some("the length of a row")
        } else if self.split >= SPLITS {
            Some("the split of a row")
        } else if self.tokens.iter().any(|&id| !ids.contains(&u64::from(id))) {
            Some("a token of a row")
        } else {
            None
        }
    }
}

/// How ids are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenType {
    /// In 16 bits.
    U16,
    /// In 32 bits.
    U32,
}

impl TokenType {
    /// The smaller type that holds every id up to this one.
    pub fn holding(largest_id: u64) -> Self {
        if largest_id <= u64::from(u16::MAX) { Self::U16 } else { Self::U32 }
    }
}

enum TokensWriter {
    U16(ColumnWriter<u16>),
    U32(ColumnWriter<u32>),
}

/// Writes rows in the order in which they come.
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

impl RowsWriter {
    pub(crate) fn create(
        file: &mut FileWriter,
        rows: u64,
        tokens: u64,
        token_type: TokenType,
    ) -> Result<Self> {
        let (n_rows, n_tokens) = (rows as usize, tokens as usize);
        let mut offsets = file.column(OFFSETS, n_rows + 1, None)?;
        offsets.push(&mut file.chunks, &[0])?;
        Ok(Self {
            tokens: match token_type {
                TokenType::U16 => TokensWriter::U16(file.column(TOKENS, n_tokens, None)?),
                TokenType::U32 => TokensWriter::U32(file.column(TOKENS, n_tokens, None)?),
            },
            offsets,
            label: file.column(LABEL, n_rows, None)?,
            votes: file.column(VOTES, n_rows, Some(5))?,
            hash: file.column(HASH, n_rows, None)?,
            split: file.column(SPLIT, n_rows, None)?,
            n_tokens: 0,
            narrow: Vec::new(),
        })
    }

    pub(crate) fn push(&mut self, file: &mut FileWriter, row: &Row) -> Result<()> {
        let chunks = &mut file.chunks;
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

/// The columns of rows of an open file. Any number of threads can read them at the same time.
#[derive(Clone, Debug)]
pub struct RowColumns {
    /// The tokens of all rows, one row after the other.
    pub tokens: TokenColumn,
    /// Where each row's tokens begin, and where the last one's end.
    pub offsets: Column<u64>,
    /// Labels.
    pub label: Column<u8>,
    /// Votes, five a row.
    pub votes: Column<u32>,
    /// Hashes.
    pub hash: Column<u64>,
    /// Splits.
    pub split: Column<u16>,
}

/// Tokens, as wide as they are stored.
#[derive(Clone, Debug)]
pub enum TokenColumn {
    /// In 16 bits.
    U16(Column<u16>),
    /// In 32 bits.
    U32(Column<u32>),
}

impl TokenColumn {
    /// The number of tokens.
    pub fn n_tokens(&self) -> usize {
        match self {
            Self::U16(column) => column.n_rows(),
            Self::U32(column) => column.n_rows(),
        }
    }

    fn reader(&self) -> TokensReader {
        match self {
            Self::U16(column) => TokensReader::U16(column.reader()),
            Self::U32(column) => TokensReader::U32(column.reader()),
        }
    }
}

impl RowColumns {
    pub(crate) fn open(file: &mut FileReader) -> Result<Self> {
        let columns = Self {
            tokens: if file.has_type::<u16>(TOKENS) {
                TokenColumn::U16(file.column(TOKENS, None)?)
            } else {
                TokenColumn::U32(file.column(TOKENS, None)?)
            },
            offsets: file.column(OFFSETS, None)?,
            label: file.column(LABEL, None)?,
            votes: file.column(VOTES, Some(5))?,
            hash: file.column(HASH, None)?,
            split: file.column(SPLIT, None)?,
        };
        let n = columns.hash.n_rows();
        let Self { offsets, label, votes, split, .. } = &columns;
        let lengths = [label.n_rows(), votes.n_rows(), split.n_rows(), offsets.n_rows().wrapping_sub(1)];
        if lengths != [n; 4] || offsets.reader().get(n)? != columns.tokens.n_tokens() as u64 {
            return Err(file.damaged(OFFSETS));
        }
        Ok(columns)
    }

    pub(crate) fn n_rows(&self) -> u64 {
        self.hash.n_rows() as u64
    }

    pub(crate) fn token_type(&self) -> TokenType {
        match self.tokens {
            TokenColumn::U16(_) => TokenType::U16,
            TokenColumn::U32(_) => TokenType::U32,
        }
    }

    /// A place among the rows, for one thread.
    pub(crate) fn reader(&self) -> RowsReader {
        RowsReader {
            tokens: self.tokens.reader(),
            offsets: self.offsets.reader(),
            label: self.label.reader(),
            votes: self.votes.reader(),
            hash: self.hash.reader(),
            split: self.split.reader(),
            n_tokens: self.tokens.n_tokens() as u64,
        }
    }
}

enum TokensReader {
    U16(ColumnReader<u16>),
    U32(ColumnReader<u32>),
}

/// One thread's reading of rows by their place. In order it is cheap; each change of place may decode chunks again.
pub struct RowsReader {
    tokens: TokensReader,
    offsets: ColumnReader<u64>,
    label: ColumnReader<u8>,
    votes: ColumnReader<u32>,
    hash: ColumnReader<u64>,
    split: ColumnReader<u16>,
    n_tokens: u64,
}

impl RowsReader {
    /// The number of rows.
    pub fn n_rows(&self) -> u64 {
        self.hash.column().n_rows() as u64
    }

    /// The hash of the row at this place.
    pub fn hash(&mut self, at: u64) -> Result<u64> {
        self.hash.get(at as usize)
    }

    /// Reads the row at this place into `row`, all but its source.
    pub fn read(&mut self, at: u64, row: &mut Row) -> Result<()> {
        let at = at as usize;
        row.hash = self.hash.get(at)?;
        row.label = self.label.get(at)?;
        row.split = self.split.get(at)?;
        row.votes.0.copy_from_slice(self.votes.row(at)?);
        let (from, to) = (self.offsets.get(at)?, self.offsets.get(at + 1)?);
        if from > to || to > self.n_tokens {
            return Err(self.offsets.column().damaged());
        }
        let (from, to) = (from as usize, to as usize);
        row.tokens.clear();
        match &mut self.tokens {
            TokensReader::U16(column) => {
                column.pieces(from, to, |ids| row.tokens.extend(ids.iter().map(|&id| u32::from(id))))
            }
            TokensReader::U32(column) => column.pieces(from, to, |ids| row.tokens.extend_from_slice(ids)),
        }
    }
}
