//! The six columns of rows that shards and datasets share.

use std::ops::Range;

use corpus::digest::SPLITS;
use corpus::record::Votes;
use corpus::settings::Settings;

use crate::column::{ColumnReader, ColumnWriter};
use crate::error::{Error, Result};
use crate::file::{FileReader, FileWriter};
use crate::schema::{HASH, LABEL, OFFSETS, SPLIT, TOKENS, VOTES};

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
        offsets.push(&mut file.encoder, &[0])?;
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
        let encoder = &mut file.encoder;
        match &mut self.tokens {
            TokensWriter::U16(column) => {
                self.narrow.clear();
                self.narrow.extend(row.tokens.iter().map(|&id| id as u16));
                column.push(encoder, &self.narrow)?;
            }
            TokensWriter::U32(column) => column.push(encoder, &row.tokens)?,
        }
        self.n_tokens += row.tokens.len() as u64;
        self.offsets.push(encoder, &[self.n_tokens])?;
        self.label.push(encoder, &[row.label])?;
        self.votes.push(encoder, &row.votes.0)?;
        self.hash.push(encoder, &[row.hash])?;
        self.split.push(encoder, &[row.split])
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

enum TokensReader {
    U16(ColumnReader<u16>, Vec<u16>),
    U32(ColumnReader<u32>),
}

/// Reads rows by their place. Reading them in order is cheap; each change of place may decode chunks again.
pub(crate) struct RowsReader {
    tokens: TokensReader,
    offsets: ColumnReader<u64>,
    label: ColumnReader<u8>,
    votes: ColumnReader<u32>,
    hash: ColumnReader<u64>,
    split: ColumnReader<u16>,
    n_tokens: u64,
    damage: Box<dyn Fn() -> Error + Send>,
}

impl RowsReader {
    pub(crate) fn open(file: &mut FileReader) -> Result<Self> {
        let tokens = if file.has_type::<u16>(TOKENS) {
            TokensReader::U16(file.column(TOKENS, None)?, Vec::new())
        } else {
            TokensReader::U32(file.column(TOKENS, None)?)
        };
        let n_tokens = match &tokens {
            TokensReader::U16(column, _) => column.rows(),
            TokensReader::U32(column) => column.rows(),
        };
        let path = file.path().to_owned();
        let mut rows = Self {
            tokens,
            offsets: file.column(OFFSETS, None)?,
            label: file.column(LABEL, None)?,
            votes: file.column(VOTES, Some(5))?,
            hash: file.column(HASH, None)?,
            split: file.column(SPLIT, None)?,
            n_tokens: n_tokens as u64,
            damage: Box::new(move || Error::Damaged { path: path.clone(), part: OFFSETS.to_owned() }),
        };
        let n = rows.hash.rows();
        let lengths =
            [rows.label.rows(), rows.votes.rows(), rows.split.rows(), rows.offsets.rows().wrapping_sub(1)];
        if lengths != [n; 4] || rows.offsets.get(n)? != rows.n_tokens {
            return Err((rows.damage)());
        }
        Ok(rows)
    }

    pub(crate) fn n_rows(&self) -> u64 {
        self.hash.rows() as u64
    }

    pub(crate) fn n_tokens(&self) -> u64 {
        self.n_tokens
    }

    pub(crate) fn token_type(&self) -> TokenType {
        match self.tokens {
            TokensReader::U16(..) => TokenType::U16,
            TokensReader::U32(_) => TokenType::U32,
        }
    }

    pub(crate) fn hash(&mut self, at: u64) -> Result<u64> {
        self.hash.get(at as usize)
    }

    /// Reads the row at this place into `row`, all but its source.
    pub(crate) fn read(&mut self, at: u64, row: &mut Row) -> Result<()> {
        let at = at as usize;
        row.hash = self.hash.get(at)?;
        row.label = self.label.get(at)?;
        row.split = self.split.get(at)?;
        row.votes.0.copy_from_slice(self.votes.row(at)?);
        let (from, to) = (self.offsets.get(at)?, self.offsets.get(at + 1)?);
        if from > to || to > self.n_tokens {
            return Err((self.damage)());
        }
        let (from, to) = (from as usize, to as usize);
        row.tokens.clear();
        match &mut self.tokens {
            TokensReader::U16(column, narrow) => {
                narrow.clear();
                column.extend(from, to, narrow)?;
                row.tokens.extend(narrow.iter().map(|&id| u32::from(id)));
                Ok(())
            }
            TokensReader::U32(column) => column.extend(from, to, &mut row.tokens),
        }
    }
}
