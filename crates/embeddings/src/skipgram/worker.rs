//! The threads of a training: sentences to steps of the kernel.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use kernels::simd::Table;
use program::random::Random;
use program::threads::spawn;

use crate::error::Result;
use crate::skipgram::draws::{Draws, Position, SENTENCES};
use crate::skipgram::kernel::{self, Errors, TARGETS, Targets, WORDS_MAX};
use crate::skipgram::settings::Decay;
use crate::skipgram::training::{Done, SkipGramTraining, Work};
use crate::skipgram::windows::Windows;

/// The learning rate is computed anew after this number of tokens of a thread.
const TOKENS_PER_RATE: u64 = 2000;
/// The loss of one of this number of positions is computed.
const LOSS_EVERY: u64 = 61;

/// A thread of a training.
struct Worker<'a> {
    training: &'a SkipGramTraining,
    decay: Decay,
    rate: f32,
    done: Done,
    /// Tokens that are not yet in the number of all tokens.
    n_uncounted: u64,
    /// The part of the loss that was passed on.
    counted_loss: (u64, f64),
    draws: Draws,
    errors: Errors,
    /// The means of words with character n-grams.
    windows: Option<Windows>,
}

impl SkipGramTraining {
    /// Trains on one work, by one thread.
    ///
    /// # Errors
    /// If the system has no memory for the thread.
    pub fn run_once(&self, decay: Decay, work: &Work) -> Result<Done> {
        let is_taken = AtomicBool::new(false);
        self.run(1, decay, &|| (!is_taken.swap(true, Relaxed)).then(|| work.clone()))
    }

    /// Trains on work until there is no more. `next` is called by `threads` threads.
    ///
    /// # Errors
    /// If the system has no memory for the threads.
    pub fn run(
        &self,
        threads: usize,
        decay: Decay,
        next: &(impl Fn() -> Option<Work> + Sync),
    ) -> Result<Done> {
        let workers: Result<Vec<Worker<'_>>> = (0..threads).map(|_| Worker::new(self, decay)).collect();
        let mut sum = Done::default();
        thread::scope(|scope| {
            let threads: Vec<_> =
                workers?.into_iter().map(|worker| spawn(scope, || worker.run(next))).collect();
            for thread in threads {
                sum.add(&thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            Ok(sum)
        })
    }
}

impl<'a> Worker<'a> {
    /// # Errors
    /// If the system has no memory for it.
    fn new(training: &'a SkipGramTraining, decay: Decay) -> Result<Self> {
        let windows = training.buckets().map(|_| Windows::new(training)).transpose()?;
        Ok(Self {
            training,
            decay,
            rate: decay.rate(training.settings().rate, training.n_tokens()),
            done: Done::default(),
            n_uncounted: 0,
            counted_loss: (0, 0.0),
            draws: Draws::default(),
            errors: [0.0; TARGETS * WORDS_MAX],
            windows,
        })
    }

    /// Trains on work until there is no more.
    fn run(mut self, next: &impl Fn() -> Option<Work>) -> Done {
        while let Some(work) = next() {
            self.train(&work);
        }
        self.count(0);
        self.done
    }

    fn train(&mut self, work: &Work) {
        let Work { sentences, distribution, number, .. } = work;
        // So that the rates do not depend on where a training was interrupted.
        self.count(0);
        self.done.n_tokens += sentences.n_tokens();
        // Tokens that are not in the vocabulary are counted with the words of the same work.
        let tokens_per_word = sentences.n_tokens() as f64 / sentences.n_words().max(1) as f64;
        let mut n_counted = 0;
        if !distribution.is_empty() {
            let mut random = Random::of(&[SENTENCES, self.training.settings().seed, *number]);
            let mut n_words = 0;
            for sentence in sentences.iter() {
                self.sentence(sentence, work, &mut random);
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
        let n_done = self.training.add_tokens(n);
        let (before, loss) = (self.counted_loss, self.done.loss);
        self.training.add_loss(loss.0 - before.0, loss.1 - before.1);
        self.counted_loss = loss;
        self.rate = self.decay.rate(self.training.settings().rate, n_done);
    }

    fn sentence(&mut self, sentence: &[u32], work: &Work, random: &mut Random) {
        let (training, distribution) = (self.training, &*work.distribution);
        let mut draws = std::mem::take(&mut self.draws);
        // Loads the vectors of samples into the caches before they are used.
        let prefetch = |sample| training.output().prefetch(sample);
        match (self.windows.take(), &work.subwords) {
            (Some(mut windows), Some(subwords)) => {
                let position = |position: Position<'_>| {
                    if position.at == 0 {
                        windows.begin(position.words.len());
                    }
                    windows.move_to(position.at, training, subwords, position.words);
                    self.window(&windows.means, &windows.slots, &position);
                };
                draws.sentence(training.settings(), sentence, distribution, random, prefetch, position);
                windows.finish(training, subwords, draws.words());
                self.windows = Some(windows);
            }
            _ => {
                let position =
                    |position: Position<'_>| self.window(training.input(), position.words, &position);
                draws.sentence(training.settings(), sentence, distribution, random, prefetch, position);
            }
        }
        self.draws = draws;
    }

    /// Trains the words before and after a position. The vectors of the words of the sentence are these rows of a table.
    #[inline]
    fn window(&mut self, input: &Table, rows: &[u32], position: &Position<'_>) {
        let mut words = [0; WORDS_MAX];
        let (before, after) = position.around(rows);
        let n_words = before.len() + after.len();
        for together in (0..n_words).step_by(WORDS_MAX) {
            let n = (n_words - together).min(WORDS_MAX);
            let all = before.iter().chain(after).skip(together);
            words.iter_mut().zip(all).for_each(|(to, &word)| *to = word);
            self.step(input, &words[..n], position);
        }
    }

    fn step(&mut self, input: &Table, words: &[u32], position: &Position<'_>) {
        let (output, processor) = (self.training.output(), self.training.processor);
        self.done.n_pairs += words.len() as u64;
        let is_sampled = self.done.n_pairs % LOSS_EVERY < words.len() as u64;
        let mut has_word = true;
        let mut rest = position.samples;
        let mut loss = 0.0;
        // The first targets include the word; samples that do not fit beside it take further steps.
        while has_word || !rest.is_empty() {
            let n_before = usize::from(has_word);
            let n = (n_before + rest.len()).min(TARGETS);
            let first = if has_word { position.word() } else { rest[0] };
            let mut targets = Targets { rows: [first; TARGETS], n, has_word };
            targets.rows[n_before..n].copy_from_slice(&rest[..n - n_before]);
            rest = &rest[n - n_before..];
            kernel::step_on(processor, input, output, words, &targets, self.rate, &mut self.errors);
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
