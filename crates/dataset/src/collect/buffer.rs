//! Rows in memory, with their words.

use std::hint::black_box;

use corpus::record::Votes;
use corpus::words::{CountedWord, Dictionary, Span};

use crate::error::Result;
use crate::row_columns::Row;

/// Rows in order of arrival, whose words are numbered by first appearance. After [`Buffer::sort`], rows and
/// words are in the order of a shard.
pub struct Buffer {
    dictionary: Dictionary,
    rows: Vec<BufferedRow>,
    tokens: Vec<u32>,
    /// The numbers of words in byte order, after sorting.
    order: Vec<u32>,
    /// The counts of words by number, after sorting.
    counts: Vec<u64>,
}

/// Number of rows whose tokens are fetched together.
const TOGETHER: usize = 32;

/// A row whose tokens are in the buffer's list of all tokens.
struct BufferedRow {
    hash: u64,
    first_token: usize,
    n_tokens: u32,
    votes: Votes,
    label: u8,
    split: u16,
}

impl BufferedRow {
    fn tokens<'a>(&self, all: &'a [u32]) -> &'a [u32] {
        &all[self.first_token..self.first_token + self.n_tokens as usize]
    }
}

impl Buffer {
    /// Creates a buffer with these stop words.
    pub fn new(stop_words: &[String]) -> Self {
        Self {
            dictionary: Dictionary::new(stop_words),
            rows: Vec::new(),
            tokens: Vec::new(),
            order: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Looks up and counts these words of `text`. Replaces the content of `counted` with those that are not
    /// stop words.
    pub fn count(&mut self, text: &[u8], words: &[Span], counted: &mut Vec<CountedWord>) {
        self.dictionary.count(text, words, counted);
    }

    /// Appends a row whose tokens are word numbers. The tokens in `row` itself are ignored.
    pub fn push(&mut self, row: &Row, tokens: impl Iterator<Item = u32>) {
        let first_token = self.tokens.len();
        self.tokens.extend(tokens);
        self.rows.push(BufferedRow {
            hash: row.hash,
            first_token,
            n_tokens: (self.tokens.len() - first_token) as u32,
            votes: row.votes,
            label: row.label,
            split: row.split,
        });
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether another text could have more new words than there are free numbers.
    pub fn is_full(&self) -> bool {
        self.dictionary.is_full()
    }

    /// Memory of rows and words in bytes, including what sorting them will need.
    pub fn memory_bytes(&self) -> usize {
        self.dictionary.memory_bytes()
            + self.dictionary.n_words() * (2 * size_of::<u32>() + size_of::<u64>())
            + self.rows.len() * size_of::<BufferedRow>()
            + self.tokens.len() * size_of::<u32>()
    }

    /// Sorts words by bytes and rows by row order, and converts tokens from numbers to indexes of sorted
    /// words.
    pub fn sort(&mut self) {
        self.order = self.dictionary.in_byte_order();
        self.counts = self.dictionary.counts();
        let mut places = vec![0; self.order.len()];
        for (place, &number) in self.order.iter().enumerate() {
            places[number as usize] = place as u32;
        }
        self.tokens.iter_mut().for_each(|token| *token = places[*token as usize]);
        let tokens = &self.tokens;
        self.rows.sort_unstable_by(|a, b| {
            (a.hash.cmp(&b.hash))
                .then_with(|| a.tokens(tokens).cmp(b.tokens(tokens)))
                .then_with(|| a.votes.cmp(&b.votes))
        });
    }

    /// Number of words.
    pub fn n_words(&self) -> u64 {
        self.dictionary.n_words() as u64
    }

    /// The words in byte order, with their counts.
    pub fn words(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.order.iter().map(|&number| (self.dictionary.get(number), self.counts[number as usize]))
    }

    /// Visits the rows in row order.
    pub fn each_row(&self, mut visit: impl FnMut(&Row) -> Result<()>) -> Result<()> {
        let mut row = Row::default();
        for together in self.rows.chunks(TOGETHER) {
            self.touch(together);
            for buffered in together {
                (row.hash, row.votes, row.label, row.split) =
                    (buffered.hash, buffered.votes, buffered.label, buffered.split);
                row.tokens.clear();
                row.tokens.extend_from_slice(buffered.tokens(&self.tokens));
                visit(&row)?;
            }
        }
        Ok(())
    }

    /// Reads one element per cache line of these rows' tokens. The tokens are scattered in memory, and here
    /// the processor can wait for many lines at once. Copying row by row would wait for one line after the
    /// other.
    fn touch(&self, rows: &[BufferedRow]) {
        const TOKENS_A_LINE: usize = 64 / size_of::<u32>();
        let lines = rows.iter().flat_map(|row| row.tokens(&self.tokens).iter().step_by(TOKENS_A_LINE));
        black_box(lines.fold(0, |any, token| any | token));
    }

    /// Removes all rows and words. The lists keep their memory; the table of words shrinks.
    pub fn clear(&mut self) {
        self.dictionary.clear();
        self.rows.clear();
        self.tokens.clear();
        self.order.clear();
        self.counts.clear();
    }
}
