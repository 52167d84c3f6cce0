//! The vectors of a training, which threads share without locks.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use kernels::simd::{Processor, Table};
use program::random::Random;
use program::threads::locked;

use crate::error::{Error, Result};
use crate::skipgram::characters::{NgramBuckets, Subwords};
use crate::skipgram::distribution::Distribution;
use crate::skipgram::sentences::Sentences;
use crate::skipgram::settings::SkipGramSettings;
use crate::skipgram::vocabulary::Vocabulary;

/// Purposes of random numbers.
const WEIGHTS: u64 = 0x736b_6970_0002;
const BUCKETS: u64 = 0x736b_6970_0004;

/// Sentences that are to be trained on.
#[derive(Clone, Debug)]
pub struct Work {
    /// The sentences.
    pub sentences: Arc<Sentences>,
    /// The distribution of negative samples.
    pub distribution: Arc<Distribution>,
    /// The character n-grams of the words, if the training has some.
    pub subwords: Option<Arc<Subwords>>,
    /// Determines the random numbers, together with the seed: a different number for each work of a training.
    pub number: u64,
}

/// A training: the vectors, and the number of tokens so far.
#[derive(Debug)]
pub struct SkipGramTraining {
    settings: SkipGramSettings,
    pub(crate) processor: Processor,
    input: Table,
    output: Table,
    /// The rows of character n-grams, if the training has some.
    buckets: Option<Buckets>,
    n_tokens: AtomicU64,
    /// Number of positions whose loss was computed since it was last taken, and its sum.
    recent: Mutex<(u64, f64)>,
}

/// The rows of character n-grams. A bucket has a row from its first use on, and rows are in the order of first uses, so
/// that those of frequent words are close together and buckets without n-grams use no memory.
#[derive(Debug)]
pub(crate) struct Buckets {
    characters: NgramBuckets,
    pub rows: Table,
    /// Per bucket: 0, or the number of its row plus 1. Only one thread at a time changes it.
    numbers: Vec<AtomicU32>,
    n_used: AtomicU32,
}

impl Buckets {
    fn new(settings: &SkipGramSettings, characters: NgramBuckets) -> Result<Self> {
        let n_buckets = characters.buckets as usize;
        let numbers = (0..n_buckets).map(|_| AtomicU32::new(0)).collect();
        Ok(Self { characters, rows: new_table(settings, n_buckets, 1)?, numbers, n_used: AtomicU32::new(0) })
    }

    /// The row of a bucket, if it has one.
    pub fn row(&self, bucket: u32) -> Option<u32> {
        self.numbers[bucket as usize].load(Relaxed).checked_sub(1)
    }

    /// Gives a bucket the next row.
    pub fn begin(&self, bucket: u32) -> u32 {
        let row = self.n_used.fetch_add(1, Relaxed);
        self.numbers[bucket as usize].store(row + 1, Relaxed);
        row
    }

    /// The bucket of each row.
    pub fn used(&self) -> Vec<u32> {
        let mut used = vec![0; self.n_used.load(Relaxed) as usize];
        for (bucket, number) in (0..).zip(&self.numbers) {
            if let Some(row) = number.load(Relaxed).checked_sub(1) {
                used[row as usize] = bucket;
            }
        }
        used
    }
}

/// What some work has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Done {
    /// Number of tokens, including those that are not in the vocabulary.
    pub n_tokens: u64,
    /// Number of pairs of a word and the word at a position.
    pub n_pairs: u64,
    /// Number of losses that were computed, of pairs or of means over a position, and their sum.
    pub loss: (u64, f64),
}

impl Done {
    /// The mean loss of a pair with its negative samples, of a sample of the positions; `None` without positions.
    pub fn loss(&self) -> Option<f64> {
        (self.loss.0 > 0).then(|| self.loss.1 / self.loss.0 as f64)
    }

    /// Adds other work.
    pub fn add(&mut self, other: &Self) {
        self.n_tokens += other.n_tokens;
        self.n_pairs += other.n_pairs;
        self.loss = (self.loss.0 + other.loss.0, self.loss.1 + other.loss.1);
    }
}

impl SkipGramTraining {
    /// A training with vectors for at most `n_words` words. Output vectors are 0; [`SkipGramTraining::draw`] draws
    /// input vectors.
    ///
    /// # Errors
    /// If the system has no address space of this size.
    pub fn new(settings: SkipGramSettings, n_words: usize) -> Result<Self> {
        let table = |n_rows| new_table(&settings, n_rows, 1);
        let (input, output) = (table(n_words)?, table(n_words)?);
        let buckets =
            settings.characters.map(|characters| Buckets::new(&settings, characters)).transpose()?;
        Ok(Self {
            settings,
            processor: Processor::best(),
            input,
            output,
            buckets,
            n_tokens: AtomicU64::new(0),
            recent: Mutex::default(),
        })
    }

    /// Draws the first input vector of a word, uniform from -1/(2 dim) to 1/(2 dim), and clears its output vector.
    pub fn draw(&self, word: u32) {
        self.draw_row(&self.input, word, WEIGHTS);
        self.output.write(word, 0, &vec![0.0; self.settings.dim]);
    }

    /// Replaces the content of `rows` with the rows of the character n-grams of a word. New ones are drawn in the same way.
    /// Call it by one thread at a time.
    pub fn draw_characters(&self, word: &[u8], rows: &mut Vec<u32>) {
        self.each_bucket(word, rows, |buckets, bucket| {
            Some(buckets.row(bucket).unwrap_or_else(|| {
                let row = buckets.begin(bucket);
                self.draw_row(&buckets.rows, row, BUCKETS);
                row
            }))
        });
    }

    /// Replaces the content of `rows` with the rows of those character n-grams of a word that have one.
    pub fn characters_of(&self, word: &[u8], rows: &mut Vec<u32>) {
        self.each_bucket(word, rows, Buckets::row);
    }

    fn each_bucket(&self, word: &[u8], rows: &mut Vec<u32>, row: impl Fn(&Buckets, u32) -> Option<u32>) {
        rows.clear();
        if let Some(buckets) = &self.buckets {
            buckets.characters.buckets_of(word, rows);
            rows.retain_mut(|number| {
                let found = row(buckets, *number);
                *number = found.unwrap_or_default();
                found.is_some()
            });
        }
    }

    /// The rows of the character n-grams of all words of a vocabulary that occur often enough; `None` if the training has
    /// no character n-grams.
    pub fn subwords(&self, vocabulary: &Vocabulary) -> Option<Subwords> {
        self.buckets.as_ref()?;
        let (mut subwords, mut rows) = (Subwords::default(), Vec::new());
        for (number, (word, count)) in (0..).zip(vocabulary.iter()) {
            rows.clear();
            if count >= self.settings.min_count {
                self.draw_characters(word, &mut rows);
            }
            subwords.set(number, &rows);
        }
        Some(subwords)
    }

    fn draw_row(&self, table: &Table, row: u32, purpose: u64) {
        let dim = self.settings.dim;
        let mut random = Random::of(&[purpose, self.settings.seed, u64::from(row)]);
        let values: Vec<f32> = (0..dim).map(|_| (random.uniform() - 0.5) / dim as f32).collect();
        table.write(row, 0, &values);
    }

    /// Writes the vector of a word: its input vector or, with the rows of its character n-grams, the mean of all.
    pub fn read_vector(&self, word: u32, rows: &[u32], vector: &mut [f32]) {
        self.input.read(word, 0, vector);
        let Some(buckets) = &self.buckets else { return };
        let mut row = vec![0.0; vector.len()];
        for &number in rows {
            buckets.rows.read(number, 0, &mut row);
            vector.iter_mut().zip(&row).for_each(|(sum, value)| *sum += value);
        }
        let share = (1.0 / (rows.len() + 1) as f64) as f32;
        vector.iter_mut().for_each(|value| *value *= share);
    }

    /// The vector of a word of a vocabulary that occurs often enough; of another word the mean of the rows of its character
    /// n-grams, if it has some.
    pub fn vector_of(&self, vocabulary: &Vocabulary, word: &[u8]) -> Option<Vec<f32>> {
        let (mut rows, mut vector) = (Vec::new(), vec![0.0; self.settings.dim]);
        if let Some(number) = vocabulary.find(word)
            && vocabulary.count_of(number) >= self.settings.min_count
        {
            self.characters_of(word, &mut rows);
            self.read_vector(number, &rows, &mut vector);
            return Some(vector);
        }
        self.buckets.as_ref()?.characters.buckets_of(word, &mut rows);
        let share = (1.0 / rows.len() as f64) as f32;
        let mut row = vector.clone();
        for &bucket in &rows {
            self.read_bucket(bucket, &mut row);
            vector.iter_mut().zip(&row).for_each(|(sum, value)| *sum += value * share);
        }
        (!rows.is_empty()).then_some(vector)
    }

    /// Writes the row of a bucket of character n-grams; zeros if no word has used it.
    pub fn read_bucket(&self, bucket: u32, vector: &mut [f32]) {
        match self.buckets.as_ref().and_then(|buckets| Some((&buckets.rows, buckets.row(bucket)?))) {
            Some((rows, row)) => rows.read(row, 0, vector),
            None => vector.fill(0.0),
        }
    }

    /// The keys of the random numbers of first input vectors and first rows of character n-grams, without the row at their
    /// end.
    pub fn keys(&self) -> [[u64; 2]; 2] {
        [WEIGHTS, BUCKETS].map(|purpose| [purpose, self.settings.seed])
    }

    /// A table of vectors of the dimension of the training.
    pub(crate) fn table(&self, n_rows: usize, parts: usize) -> Result<Table> {
        new_table(&self.settings, n_rows, parts)
    }

    /// The rows of character n-grams, if the training has some.
    pub(crate) fn buckets(&self) -> Option<&Buckets> {
        self.buckets.as_ref()
    }

    /// The settings.
    pub fn settings(&self) -> &SkipGramSettings {
        &self.settings
    }

    /// Number of tokens so far.
    pub fn n_tokens(&self) -> u64 {
        self.n_tokens.load(Relaxed)
    }

    /// The mean loss of a pair since the last call, as [`Done::loss`].
    pub fn take_loss(&self) -> Option<f64> {
        let (n, sum) = std::mem::take(&mut *locked(&self.recent));
        (n > 0).then(|| sum / n as f64)
    }

    pub(crate) fn add_loss(&self, n: u64, sum: f64) {
        let mut recent = locked(&self.recent);
        *recent = (recent.0 + n, recent.1 + sum);
    }

    /// Counts tokens. Returns the number of tokens so far.
    pub(crate) fn add_tokens(&self, n: u64) -> u64 {
        self.n_tokens.fetch_add(n, Relaxed) + n
    }

    /// Continues after this number of tokens, which determines the learning rate.
    pub fn set_n_tokens(&mut self, n_tokens: u64) {
        *self.n_tokens.get_mut() = n_tokens;
    }

    /// The tables of [`SkipGramTraining::rows`]: input vectors, output vectors and, if the training has some, rows of character
    /// n-grams.
    pub fn tables(&self) -> Vec<&Table> {
        let of_ngrams = self.buckets.as_ref().map(|buckets| &buckets.rows);
        [&self.input, &self.output].into_iter().chain(of_ngrams).collect()
    }

    /// Number of rows of character n-grams that words have.
    pub fn n_ngram_rows(&self) -> u32 {
        self.buckets.as_ref().map_or(0, |buckets| buckets.n_used.load(Relaxed))
    }

    /// The input vectors, which are the result if there are no character n-grams.
    pub fn input(&self) -> &Table {
        &self.input
    }

    /// The output vectors.
    pub fn output(&self) -> &Table {
        &self.output
    }
}

fn new_table(settings: &SkipGramSettings, n_rows: usize, parts: usize) -> Result<Table> {
    let dim = settings.dim;
    Table::new(n_rows, dim, parts).map_err(|source| Error::Memory { n_rows, dim, source })
}
