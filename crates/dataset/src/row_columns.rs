//! The six columns of rows shared by shards and datasets.

use std::num::NonZeroUsize;
use std::ops::{AddAssign, Range, SubAssign};
use std::sync::Arc;

use corpus::digest::{Digest, SPLITS};
use corpus::record::Votes;
use corpus::settings::Settings;

use crate::column::{Column, ColumnReader};
use crate::error::{Error, Result, Violation};
use crate::file::FileReader;
use crate::in_order::in_order;
use crate::schema::{HASH, LABEL, OFFSETS, SPLIT, TOKENS, VOTES};

/// Number of rows that a thread reads at once. In the larger columns, a chunk starts at the start of each
/// block. Therefore only small chunks are decoded twice, and the chunk of tokens at the boundary of two
/// blocks.
const BLOCK_ROWS: u64 = 32 << 10;

/// Reads `n_rows` rows with several threads, in blocks. For each block `empty` creates a value, to which
/// `read` may add while it reads the rows. `take` receives both results of every block, in order.
pub(crate) fn in_blocks<R: Send, B: Send, E: From<Error> + Send>(
    n_rows: u64,
    threads: NonZeroUsize,
    empty: impl Fn() -> B + Sync,
    read: impl Fn(Range<u64>, &mut B) -> Result<R> + Sync,
    mut take: impl FnMut(R, B) -> Result<(), E>,
) -> Result<(), E> {
    let read_block = |block: usize, put: &mut dyn FnMut((R, B))| {
        let from = block as u64 * BLOCK_ROWS;
        let mut made = empty();
        let rows = read(from..(from + BLOCK_ROWS).min(n_rows), &mut made)?;
        put((rows, made));
        Ok(())
    };
    // Nothing is queued: a thread waits until its result is taken.
    in_order(n_rows.div_ceil(BLOCK_ROWS) as usize, threads, 0, read_block, |(rows, made)| take(rows, made))
}

/// One row: a distinct text. Rows are ordered by hash. Rows with equal hashes are ordered by tokens, then by
/// votes. The order therefore does not depend on the program that sorts the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// XXH3-64 of the cleaned text.
    pub hash: u64,
    /// The ids of its tokens: in a shard, indexes into its dictionary; in a dataset, vocabulary ids.
    pub tokens: Vec<u32>,
    /// Number of reviews of the text per rating.
    pub votes: Votes,
    /// The class of the text, from 0: with two labels split at a rating, 1 for a positive text, else 0.
    pub label: u8,
    /// From 0 to 999; assigns the row to the training split or to the test split.
    pub split: u16,
    /// Number of the source of the row during a merge. It is not stored in files.
    pub source: u32,
}

/// The rule about the digest of ids, and what it is about.
pub(crate) const OF_IDS: (&str, &str) = ("F33", "the id digest of the rows");

/// The result of verifying consecutive rows.
#[derive(Default)]
pub(crate) struct VerifiedRows {
    pub(crate) id_digest: Digest,
    /// Zero if their words are not in memory.
    pub(crate) row_digest: Digest,
    pub(crate) first_at: u64,
    pub(crate) first: Row,
    pub(crate) last: Row,
}

/// Rules for every row of a file.
#[derive(Debug)]
pub(crate) struct RowRules {
    pub(crate) settings: Settings,
    /// The range of valid token ids.
    pub(crate) ids: Range<u64>,
}

impl RowRules {
    /// Checks the number of tokens of row `at`, which are between these offsets.
    fn check_length(&self, at: u64, from: u64, to: u64) -> Result<(), Violation> {
        let Some(length) = to.checked_sub(from) else {
            let expected = format!("at least {from}, where it begins");
            return Err(Violation::new("F27", format!("the end of row {at}"), to.to_string(), expected));
        };
        let most = u64::from(self.settings.max_tokens);
        if length > 0 && (most == 0 || length <= most) {
            return Ok(());
        }
        let most = if most == 0 { "any number".to_owned() } else { most.to_string() };
        let thing = format!("the number of tokens of row {at}");
        Err(Violation::new("F27", thing, length.to_string(), format!("1 to {most}, the limit of max_tokens")))
    }

    /// The rule that row `at` violates; `None` for a valid row.
    fn violation(&self, at: u64, row: &Row) -> Option<Violation> {
        let violation = |rule, thing, found: String, expected: String| {
            Some(Violation::new(rule, format!("the {thing} of row {at}"), found, expected))
        };
        // Computes both over all tokens, which is faster than stopping at the first invalid one.
        let (least, largest) =
            row.tokens.iter().fold((u32::MAX, 0), |(least, largest), &id| (least.min(id), largest.max(id)));
        if u64::from(least) < self.ids.start || u64::from(largest) >= self.ids.end {
            let found = if u64::from(least) < self.ids.start { least } else { largest };
            let expected = format!("{} to {}", self.ids.start, self.ids.end.saturating_sub(1));
            Some(Violation::new("F28", format!("a token of row {at}"), found.to_string(), expected))
        } else if row.votes.total() == 0 {
            violation("F29", "number of votes", "0".to_owned(), "1 or more".to_owned())
        } else if self.settings.label(row.votes) != Some(row.label) {
            let expected = match self.settings.label(row.votes) {
                Some(label) => format!("{label}, computed from its votes"),
                None => format!("no row, because rating {} has no class", row.votes.mode()),
            };
            violation("F30", "label", row.label.to_string(), expected)
        } else if row.split >= SPLITS {
            violation("F31", "split", row.split.to_string(), format!("less than {SPLITS}"))
        } else if !self.settings.sample.keeps(row.hash) {
            let expected = format!("a hash in the sample of {}", self.settings.sample);
            violation("F35", "hash", format!("{:016x}", row.hash), expected)
        } else {
            None
        }
    }
}

/// The violation of a row whose hash is less than the one before.
pub(crate) fn order_violation(at: u64) -> Violation {
    let thing = format!("row {at}");
    Violation::new(
        "F32",
        thing,
        "less than the previous row",
        "rows ascending by hash, then by kept words and votes",
    )
}

/// Integer type of stored ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenType {
    /// 16 bits.
    U16,
    /// 32 bits.
    U32,
}

impl TokenType {
    /// The smallest type for ids up to this one.
    pub fn holding(largest_id: u64) -> Self {
        if largest_id <= u64::from(u16::MAX) { Self::U16 } else { Self::U32 }
    }

    /// Number of bits.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::U16 => 16,
            Self::U32 => 32,
        }
    }
}

/// Number of rows and of their tokens: of a whole file or of a part, or of all rows before a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(from = "[u64; 2]", into = "[u64; 2]")]
pub struct RowsSize {
    /// Number of rows.
    pub rows: u64,
    /// Number of tokens.
    pub tokens: u64,
}

impl RowsSize {
    /// The size of these rows.
    pub fn of(rows: &[Row]) -> Self {
        Self { rows: rows.len() as u64, tokens: rows.iter().map(|row| row.tokens.len() as u64).sum() }
    }

    /// Adds a row with this number of tokens.
    #[inline]
    pub fn add_row(&mut self, n_tokens: usize) {
        self.rows += 1;
        self.tokens += n_tokens as u64;
    }
}

impl From<[u64; 2]> for RowsSize {
    fn from([rows, tokens]: [u64; 2]) -> Self {
        Self { rows, tokens }
    }
}

impl From<RowsSize> for [u64; 2] {
    fn from(RowsSize { rows, tokens }: RowsSize) -> Self {
        [rows, tokens]
    }
}

impl AddAssign for RowsSize {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.tokens += other.tokens;
    }
}

impl SubAssign for RowsSize {
    fn sub_assign(&mut self, other: Self) {
        self.rows -= other.rows;
        self.tokens -= other.tokens;
    }
}

/// The columns of rows of an open file. Any number of threads can read them at once.
#[derive(Clone, Debug)]
pub struct RowColumns {
    /// The tokens of all rows, concatenated.
    pub tokens: TokenColumn,
    /// The start of each row's tokens, and the end of the last row's.
    pub offsets: Column<u64>,
    /// Labels.
    pub label: Column<u8>,
    /// Votes, five per row.
    pub votes: Column<u32>,
    /// Hashes.
    pub hash: Column<u64>,
    /// Splits.
    pub split: Column<u16>,
    rules: Arc<RowRules>,
}

/// The tokens, in their stored width.
#[derive(Clone, Debug)]
pub enum TokenColumn {
    /// 16 bits.
    U16(Column<u16>),
    /// 32 bits.
    U32(Column<u32>),
}

impl TokenColumn {
    /// Number of tokens.
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
    pub(crate) fn open(file: &mut FileReader, rules: RowRules) -> Result<Self> {
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
            rules: Arc::new(rules),
        };
        columns.lengths_violation()?.map_or(Ok(columns), |violation| Err(file.stored.broken(violation)))
    }

    /// The violation by the lengths of columns or by the first and last offsets, if any.
    fn lengths_violation(&self) -> Result<Option<Violation>> {
        let Self { offsets, label, votes, hash, split, .. } = self;
        let n = hash.n_rows();
        let lengths = [
            (LABEL, label.n_rows(), n),
            (VOTES, votes.n_rows(), n),
            (SPLIT, split.n_rows(), n),
            (OFFSETS, offsets.n_rows(), n + 1),
        ];
        let other = lengths.into_iter().find(|(_, found, expected)| found != expected);
        if let Some((column, found, expected)) = other {
            let (thing, expected) = (format!("the length of {column}"), format!("{expected} for {n} hashes"));
            return Ok(Some(Violation::new("F25", thing, found.to_string(), expected)));
        }
        let mut reader = offsets.reader();
        let ends = [("first", reader.get(0)?, 0), ("last", reader.get(n)?, self.tokens.n_tokens() as u64)];
        Ok(ends.into_iter().find(|(_, found, expected)| found != expected).map(|(which, found, expected)| {
            Violation::new("F25", format!("the {which} of offsets"), found.to_string(), expected.to_string())
        }))
    }

    /// Checks that all rows have valid lengths and that their hashes ascend. The search for rows depends on both.
    pub(crate) fn check_places(&self) -> Result<()> {
        let (mut at, mut before) = (0, None);
        self.offsets.each_chunk(|offsets| {
            for &offset in offsets {
                if let Some(before) = before.replace(offset) {
                    let checked = self.rules.check_length(at, before, offset);
                    checked.map_err(|violation| self.offsets.broken(violation))?;
                    at += 1;
                }
            }
            Ok(())
        })?;
        let (mut at, mut before) = (0, 0);
        self.hash.each_chunk(|hashes| {
            let behind = hashes.iter().position(|&hash| std::mem::replace(&mut before, hash) > hash);
            if let Some(behind) = behind {
                return Err(self.hash.broken(order_violation(at + behind as u64)));
            }
            at += hashes.len() as u64;
            Ok(())
        })
    }

    pub(crate) fn n_rows(&self) -> u64 {
        self.hash.n_rows() as u64
    }

    /// The type of the tokens.
    pub fn token_type(&self) -> TokenType {
        match self.tokens {
            TokenColumn::U16(_) => TokenType::U16,
            TokenColumn::U32(_) => TokenType::U32,
        }
    }

    /// Prepares for readers that read at about the same time, each one of consecutive parts of these sizes after
    /// `before`: a chunk that belongs to several parts is decoded once.
    pub fn share(&mut self, before: RowsSize, parts: &[RowsSize]) {
        let (mut rows, mut tokens) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
        let mut end = before;
        for &part in parts {
            let from = end;
            end += part;
            rows.push(from.rows as usize..end.rows as usize);
            tokens.push(from.tokens as usize..end.tokens as usize);
        }
        // A part without rows reads nothing; another one also reads the offset of its end.
        let offsets = rows.iter().map(|rows| rows.start..rows.end + usize::from(!rows.is_empty())).collect();
        self.offsets.share(offsets);
        match &mut self.tokens {
            TokenColumn::U16(column) => column.share(tokens),
            TokenColumn::U32(column) => column.share(tokens),
        }
        self.label.share(rows.clone());
        self.votes.share(rows.clone());
        self.hash.share(rows.clone());
        self.split.share(rows);
    }

    /// A reader of the rows for one thread.
    pub fn reader(&self) -> RowsReader {
        RowsReader {
            tokens: self.tokens.reader(),
            offsets: self.offsets.reader(),
            label: self.label.reader(),
            votes: self.votes.reader(),
            hash: self.hash.reader(),
            split: self.split.reader(),
            n_tokens: self.tokens.n_tokens() as u64,
            rules: self.rules.clone(),
        }
    }
}

enum TokensReader {
    U16(ColumnReader<u16>),
    U32(ColumnReader<u32>),
}

/// One thread's reader of rows by index. Reading in order is cheap; other reads may decode chunks repeatedly.
pub struct RowsReader {
    tokens: TokensReader,
    offsets: ColumnReader<u64>,
    label: ColumnReader<u8>,
    votes: ColumnReader<u32>,
    hash: ColumnReader<u64>,
    split: ColumnReader<u16>,
    n_tokens: u64,
    rules: Arc<RowRules>,
}

impl RowsReader {
    /// Number of rows.
    pub fn n_rows(&self) -> u64 {
        self.hash.column().n_rows() as u64
    }

    /// The hash of the row at this index.
    pub fn hash(&mut self, at: u64) -> Result<u64> {
        self.hash.get(at as usize)
    }

    /// The split number of the row at this index.
    pub fn split(&mut self, at: u64) -> Result<u16> {
        self.split.get(at as usize)
    }

    /// Reads the row at this index into `row`, except for its source. A row that breaks a rule of the format
    /// is refused. The order of rows, and the split by words, are checked only when all rows are verified.
    pub fn read(&mut self, at: u64, row: &mut Row) -> Result<()> {
        let place = at as usize;
        row.hash = self.hash.get(place)?;
        row.label = self.label.get(place)?;
        row.split = self.split.get(place)?;
        row.votes.0.copy_from_slice(self.votes.row(place)?);
        let (from, to) = (self.offsets.get(place)?, self.offsets.get(place + 1)?);
        let broken = |violation| self.offsets.column().broken(violation);
        self.rules.check_length(at, from, to).map_err(broken)?;
        if to > self.n_tokens {
            let expected = format!("at most {}, the number of tokens", self.n_tokens);
            return Err(broken(Violation::new(
                "F27",
                format!("the end of row {at}"),
                to.to_string(),
                expected,
            )));
        }
        let (from, to) = (from as usize, to as usize);
        row.tokens.clear();
        match &mut self.tokens {
            TokensReader::U16(column) => {
                column.pieces(from, to, |ids| row.tokens.extend(ids.iter().map(|&id| u32::from(id))))?;
            }
            TokensReader::U32(column) => column.pieces(from, to, |ids| row.tokens.extend_from_slice(ids))?,
        }
        self.rules.violation(at, row).map_or(Ok(()), |violation| Err(self.hash.column().broken(violation)))
    }
}
