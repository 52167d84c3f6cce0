//! Trains vectors on sentences, with threads that share the tables without locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use random::Random;
use vectors::{Processor, Table};

use crate::distribution::Distribution;
use crate::draws::{Draws, Position};
use crate::error::{Error, Result};
use crate::kernel::{self, Errors, TARGETS, Targets, WORDS_MAX};
use crate::sentences::Sentences;
use crate::settings::{Decay, Settings};

/// Purposes of random numbers.
pub(crate) const SENTENCES: u64 = 0x736b_6970_0001;
const WEIGHTS: u64 = 0x736b_6970_0002;
/// The learning rate is computed anew after this number of tokens of a thread.
const TOKENS_PER_RATE: u64 = 2000;
/// The loss of one of this number of positions is computed.
const LOSS_EVERY: u64 = 61;

/// Sentences that are to be trained on.
#[derive(Clone, Debug)]
pub struct Work {
    /// The sentences.
    pub sentences: Arc<Sentences>,
    /// The distribution of negative samples.
    pub distribution: Arc<Distribution>,
    /// Determines the random numbers, together with the seed: a different number for each work of a training.
    pub number: u64,
}

/// A training: the vectors, and the number of tokens so far.
#[derive(Debug)]
pub struct Training {
    settings: Settings,
    processor: Processor,
    input: Table,
    output: Table,
    n_tokens: AtomicU64,
}

/// What some work has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Done {
    /// Number of tokens, including those that are not in the vocabulary.
    pub n_tokens: u64,
    /// Number of pairs of a word and the word at a position.
    pub n_pairs: u64,
    /// Number of positions whose loss was computed, and its sum.
    loss: (u64, f64),
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

impl Training {
    /// A training with vectors for at most `n_words` words. Output vectors are 0; [`Training::draw`] draws input vectors.
    ///
    /// # Errors
    /// If the system has no address space of this size.
    pub fn new(settings: Settings, n_words: usize) -> Result<Self> {
        let table = || {
            Table::new(n_words, settings.dim, 1).map_err(|source| Error::Memory {
                n_words,
                dim: settings.dim,
                source,
            })
        };
        let (input, output) = (table()?, table()?);
        Ok(Self { settings, processor: Processor::best(), input, output, n_tokens: AtomicU64::new(0) })
    }

    /// Draws the first input vector of a word, uniform from -1/(2 dim) to 1/(2 dim), and clears its output vector.
    pub fn draw(&self, word: u32) {
        let dim = self.settings.dim;
        let mut random = Random::of(&[WEIGHTS, self.settings.seed, u64::from(word)]);
        let values: Vec<f32> = (0..dim).map(|_| (random.uniform() - 0.5) / dim as f32).collect();
        self.input.write(word, 0, &values);
        self.output.write(word, 0, &vec![0.0; dim]);
    }

    /// The key of the random numbers of [`Training::draw`], without the word at its end.
    pub fn key(&self) -> [u64; 2] {
        [WEIGHTS, self.settings.seed]
    }

    /// Trains on work until there is no more. `next` is called by `threads` threads.
    pub fn run(&self, threads: usize, decay: Decay, next: &(impl Fn() -> Option<Work> + Sync)) -> Done {
        let run = || Worker::new(self, decay).run(next);
        let mut sum = Done::default();
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
            sum.add(&run());
            for other in others {
                sum.add(&other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
        });
        sum
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Number of tokens so far.
    pub fn n_tokens(&self) -> u64 {
        self.n_tokens.load(Relaxed)
    }

    /// Continues after this number of tokens, which determines the learning rate.
    pub fn set_n_tokens(&mut self, n_tokens: u64) {
        *self.n_tokens.get_mut() = n_tokens;
    }

    /// The input vectors, which are the result.
    pub fn input(&self) -> &Table {
        &self.input
    }

    /// The output vectors.
    pub fn output(&self) -> &Table {
        &self.output
    }
}

/// A thread of a training.
struct Worker<'a> {
    training: &'a Training,
    decay: Decay,
    rate: f32,
    done: Done,
    /// Tokens that are not yet in the number of all tokens.
    n_uncounted: u64,
    draws: Draws,
    errors: Errors,
}

impl<'a> Worker<'a> {
    fn new(training: &'a Training, decay: Decay) -> Self {
        Self {
            training,
            decay,
            rate: decay.rate(training.settings.rate, training.n_tokens()),
            done: Done::default(),
            n_uncounted: 0,
            draws: Draws::default(),
            errors: [0.0; TARGETS * WORDS_MAX],
        }
    }

    fn run(mut self, next: &impl Fn() -> Option<Work>) -> Done {
        while let Some(work) = next() {
            self.train(&work);
        }
        self.count(0);
        self.done
    }

    fn train(&mut self, work: &Work) {
        let Work { sentences, distribution, number } = work;
        // So that the rates do not depend on where a training was interrupted.
        self.count(0);
        self.done.n_tokens += sentences.n_tokens();
        // Tokens that are not in the vocabulary are counted with the words of the same work.
        let tokens_per_word = sentences.n_tokens() as f64 / sentences.n_words().max(1) as f64;
        let mut n_counted = 0;
        if !distribution.is_empty() {
            let mut random = Random::of(&[SENTENCES, self.training.settings.seed, *number]);
            let mut n_words = 0;
            for sentence in sentences.iter() {
                self.sentence(sentence, distribution, &mut random);
                n_words += sentence.len();
                let n_tokens = (n_words as f64 * tokens_per_word) as u64;
                if n_tokens - n_counted >= TOKENS_PER_RATE {
                    self.count(n_tokens - n_counted);
                    n_counted = n_tokens;
                }
            }
        }
        self.n_uncounted += sentences.n_tokens().saturating_sub(n_counted);
    }

    /// Adds tokens to those of all threads, and computes the learning rate.
    fn count(&mut self, n_tokens: u64) {
        let n = n_tokens + std::mem::take(&mut self.n_uncounted);
        let n_done = self.training.n_tokens.fetch_add(n, Relaxed) + n;
        self.rate = self.decay.rate(self.training.settings.rate, n_done);
    }

    fn sentence(&mut self, sentence: &[u32], distribution: &Distribution, random: &mut Random) {
        let training = self.training;
        let mut draws = std::mem::take(&mut self.draws);
        // Loads the vectors of samples into the caches before they are used.
        let prefetch = |sample| training.output.prefetch(sample);
        let position = |position: Position<'_>| self.position(&position);
        draws.sentence(&training.settings, sentence, distribution, random, prefetch, position);
        self.draws = draws;
    }

    /// Trains the words before and after a position.
    fn position(&mut self, position: &Position<'_>) {
        let Position { before, after, .. } = position;
        let mut words = [0; WORDS_MAX];
        let n_words = before.len() + after.len();
        for together in (0..n_words).step_by(WORDS_MAX) {
            let n = (n_words - together).min(WORDS_MAX);
            let all = before.iter().chain(*after).skip(together);
            words.iter_mut().zip(all).for_each(|(to, &word)| *to = word);
            self.step(&words[..n], position);
        }
    }

    fn step(&mut self, words: &[u32], position: &Position<'_>) {
        let Training { input, output, processor, .. } = self.training;
        self.done.n_pairs += words.len() as u64;
        let is_sampled = self.done.n_pairs % LOSS_EVERY < words.len() as u64;
        let mut has_word = true;
        let mut rest = position.samples;
        let mut loss = 0.0;
        // The first targets include the word; samples that do not fit beside it take further steps.
        while has_word || !rest.is_empty() {
            let n_before = usize::from(has_word);
            let n = (n_before + rest.len()).min(TARGETS);
            let first = if has_word { position.word } else { rest[0] };
            let mut targets = Targets { rows: [first; TARGETS], n, has_word };
            targets.rows[n_before..n].copy_from_slice(&rest[..n - n_before]);
            rest = &rest[n - n_before..];
            kernel::step_on(*processor, input, output, words, &targets, self.rate, &mut self.errors);
            if is_sampled {
                loss += kernel::loss(&self.errors, words.len(), &targets, self.rate);
            }
            has_word = false;
        }
        if is_sampled {
            self.done.loss = (self.done.loss.0 + 1, self.done.loss.1 + f64::from(loss));
        }
    }
}
