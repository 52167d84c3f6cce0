//! Rows in memory, with the words they are made of.

use std::hint::black_box;

use corpus::record::Votes;
use dataset::{Result, Row};
use words::{Counted, Dictionary, Span};

/// Rows as they come, with the numbers that words were given as they appeared; after [`Buffer::sort`], rows and words
/// in the order of a shard.
pub struct Buffer {
    dictionary: Dictionary,
    rows: Vec<BufferedRow>,
    tokens: Vec<u32>,
    /// The words' numbers in byte order, once sorted.
    order: Vec<u32>,
    /// The words' counts by number, once sorted.
    counts: Vec<u64>,
}

/// The tokens of so many rows are fetched together.
const TOGETHER: usize = 32;

/// A row whose tokens lie in the buffer's list of all tokens.
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
    /// A buffer that knows these stop words.
    pub fn new(stop_words: &[String]) -> Self {
        Self {
            dictionary: Dictionary::new(stop_words),
            rows: Vec::new(),
            tokens: Vec::new(),
            order: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Looks up these words of `text`, and counts them; puts those that are no stop words into `counted`, in place of
    /// what was there.
    pub fn count(&mut self, text: &[u8], words: &[Span], counted: &mut Vec<Counted>) {
        self.dictionary.count(text, words, counted);
    }

    /// Takes a row whose tokens are numbers of words; those in `row` itself are not looked at.
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

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether another text might not find numbers for its words.
    pub fn is_full(&self) -> bool {
        self.dictionary.is_full()
    }

    /// The memory that rows and words take, and that sorting them will take besides.
    pub fn memory_bytes(&self) -> usize {
        self.dictionary.memory_bytes()
            + self.dictionary.n_words() * (2 * size_of::<u32>() + size_of::<u64>())
            + self.rows.len() * size_of::<BufferedRow>()
            + self.tokens.len() * size_of::<u32>()
    }

    /// Brings words into byte order and rows into row order, and turns their tokens from numbers into places.
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

    /// The number of words.
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

    /// Reads something of every line of a cache that these rows' tokens lie in. They lie anywhere, and here the
    /// processor waits for many of them at once; where a row is copied it would wait for one after the other.
    fn touch(&self, rows: &[BufferedRow]) {
        const TOKENS_A_LINE: usize = 64 / size_of::<u32>();
        let lines = rows.iter().flat_map(|row| row.tokens(&self.tokens).iter().step_by(TOKENS_A_LINE));
        black_box(lines.fold(0, |any, token| any | token));
    }

    /// Forgets all rows and words. The memory of lists stays; the table of words becomes small again.
    pub fn clear(&mut self) {
        self.dictionary.clear();
        self.rows.clear();
        self.tokens.clear();
        self.order.clear();
        self.counts.clear();
    }
}
