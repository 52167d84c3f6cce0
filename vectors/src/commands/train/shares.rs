//! The sentences of a worker or rank, in steps.

use std::sync::Arc;

use embeddings::skipgram::{Distribution, Sentences, Subwords, Vocabulary, Work};
use sha2::{Digest, Sha256};
use training::Result;

use super::input;
use super::kept::Kept;
use crate::arguments::{ModelName, Place, Train};

/// Longer sentences are split, so that a long line does not make a step that needs much memory. word2vec has this limit too.
pub(super) const WORDS_MAX: usize = 1000;

/// Number of words of a step.
pub(super) fn words_per_step(arguments: &Train) -> u64 {
    match arguments.model {
        // The mean number of words of a window is one more than half of its largest distance, on both sides.
        ModelName::SkipGram => (arguments.step_pairs() / (u64::from(arguments.window) + 1)).max(1),
        ModelName::CharLstm => arguments.char_lstm.batch as u64,
    }
}

/// The sentences of a worker or rank.
#[derive(Debug)]
pub(super) struct Share {
    /// A part is the sentences of a step.
    steps: Kept,
    /// Words of the steps before each step of an epoch, and at the end those of the epoch.
    n_words: Vec<u64>,
    /// Of the sentences of all workers, in their order.
    digest: [u8; 32],
    /// Steps of an epoch of the worker that has the most.
    n_most: u64,
    place: Place,
}

/// The steps of a worker.
#[derive(Clone, Copy, Debug, Default)]
struct WorkerSteps {
    n_complete: u64,
    /// Words of the next step.
    n_words: u64,
}

impl WorkerSteps {
    fn add(&mut self, n_words: u64, words_per_step: u64) {
        self.n_words += n_words;
        if self.n_words >= words_per_step {
            *self = Self { n_complete: self.n_complete + 1, n_words: 0 };
        }
    }

    fn n_steps(&self) -> u64 {
        self.n_complete + u64::from(self.n_words > 0)
    }
}

impl Share {
    /// Reads the input. Returns its words, and the share of a worker or rank; `who` names it for the user.
    pub(super) fn read(arguments: &Train, place: Place, who: &str) -> Result<(Vocabulary, Self)> {
        let input = input::read(arguments)?;
        input.tell(&format!("; {who}"));
        let share = Self::of(&input.sentences, arguments, place)?;
        Ok((input.vocabulary, share))
    }

    /// Takes every Nth sentence.
    fn of(sentences: &Kept, arguments: &Train, place: Place) -> Result<Self> {
        let words_per_step = words_per_step(arguments);
        // A sentence that is longer than a step of char-lstm would make it longer.
        let words_max = match arguments.model {
            ModelName::SkipGram => WORDS_MAX,
            ModelName::CharLstm => arguments.char_lstm.batch.clamp(2, WORDS_MAX),
        };
        let steps = Kept::new(arguments.memory);
        let mut share = Self { steps, n_words: vec![0], digest: [0; 32], n_most: 0, place };
        let mut of_all = vec![WorkerSteps::default(); place.of as usize];
        let mut digest = Sha256::new();
        let mut step = Sentences::default();
        let mut number = 0;
        for part in 0..sentences.len() {
            let part = sentences.get(part)?;
            for sentence in part.iter().flat_map(|sentence| sentence.chunks(words_max)) {
                // Sentences without a pair have no effect.
                if sentence.len() < 2 {
                    continue;
                }
                digest.update((sentence.len() as u64).to_le_bytes());
                sentence.iter().for_each(|word| digest.update(word.to_le_bytes()));
                if number % place.of == place.number {
                    step.push(sentence.iter().copied(), sentence.len() as u64);
                }
                of_all[number as usize].add(sentence.len() as u64, words_per_step);
                number = (number + 1) % place.of;
                if step.n_words() as u64 >= words_per_step {
                    share.push(std::mem::take(&mut step))?;
                }
            }
        }
        if step.n_words() > 0 {
            share.push(step)?;
        }
        share.n_most = of_all.iter().map(WorkerSteps::n_steps).max().unwrap_or_default();
        share.digest = digest.finalize().into();
        Ok(share)
    }

    fn push(&mut self, step: Sentences) -> Result<()> {
        let before = self.n_words.last().copied().unwrap_or_default();
        self.n_words.push(before + step.n_words() as u64);
        self.steps.push(step)
    }

    /// Digest of the sentences of all workers, in their order.
    pub(super) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Number of steps of all epochs.
    pub(super) fn n_steps(&self, epochs: u32) -> u64 {
        self.steps.len() as u64 * u64::from(epochs)
    }

    /// Number of steps of all epochs of the worker that has the most. Others have no sentences in their last ones, so that
    /// nobody waits for a step that a worker does not have.
    pub(super) fn n_most_steps(&self, epochs: u32) -> u64 {
        self.n_most * u64::from(epochs)
    }

    /// Steps of an epoch.
    pub(super) fn n_steps_of_epoch(&self) -> u64 {
        self.steps.len() as u64
    }

    /// The work of a step, which has no sentences after the last own one.
    pub(super) fn work(
        &self,
        step: u64,
        epochs: u32,
        distribution: &Arc<Distribution>,
        subwords: Option<&Arc<Subwords>>,
    ) -> Result<Work> {
        let sentences = match step < self.n_steps(epochs) {
            true => self.steps.get((step % self.n_steps_of_epoch()) as usize)?,
            false => Arc::default(),
        };
        let number = step * u64::from(self.place.of) + u64::from(self.place.number);
        let (distribution, subwords) = (Arc::clone(distribution), subwords.cloned());
        Ok(Work { sentences, distribution, subwords, number })
    }

    /// Number of words before a step.
    pub(super) fn n_words_before(&self, step: u64) -> u64 {
        if self.steps.len() == 0 {
            return 0;
        }
        let (epoch, step) = (step / self.n_steps_of_epoch(), step % self.n_steps_of_epoch());
        epoch * self.n_words[self.steps.len()] + self.n_words[step as usize]
    }
}
