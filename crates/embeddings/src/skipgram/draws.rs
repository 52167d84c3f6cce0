//! The random decisions of a training: which words of a sentence are kept, how large windows are, and which samples are
//! drawn. They do not depend on vectors, so that the rows of some work are known before it is trained on.

use std::ops::Range;

use program::random::Random;

use crate::skipgram::distribution::Distribution;
use crate::skipgram::settings::SkipGramSettings;
use crate::skipgram::training::{SkipGramTraining, Work};

/// Purpose of random numbers.
pub(crate) const SENTENCES: u64 = 0x736b_6970_0001;
/// Number of draws in which a negative sample must differ from the other targets. Otherwise there is one less: there are
/// hardly any other words.
const DRAWS_MAX: usize = 8;

/// A position of a sentence.
pub(crate) struct Position<'a> {
    /// The words of the sentence that are kept.
    pub(crate) words: &'a [u32],
    /// The place of the position among them.
    pub(crate) at: usize,
    /// The places of its window, which includes it.
    window: Range<usize>,
    /// Negative samples.
    pub(crate) samples: &'a [u32],
}

impl Position<'_> {
    /// The word at the position.
    pub(crate) fn word(&self) -> u32 {
        self.words[self.at]
    }

    /// What these values, one per word, are before and after the position.
    #[inline]
    pub(crate) fn around<'b>(&self, of_words: &'b [u32]) -> (&'b [u32], &'b [u32]) {
        (&of_words[self.window.start..self.at], &of_words[self.at + 1..self.window.end])
    }
}

/// Memory for the decisions of a sentence.
#[derive(Debug, Default)]
pub(crate) struct Draws {
    /// The words of a sentence that are kept.
    kept: Vec<u32>,
    samples: Vec<u32>,
    next_samples: Vec<u32>,
}

/// The rows of the tables that some work reads and writes, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableRows {
    /// Rows of the input table.
    pub input: Vec<u32>,
    /// Rows of the output table.
    pub output: Vec<u32>,
    /// Rows of character n-grams, if the training has some.
    pub ngrams: Vec<u32>,
}

impl Draws {
    /// Passes the positions of a sentence to `position`, and samples to `prefetch` when they are drawn.
    #[inline]
    pub(crate) fn sentence(
        &mut self,
        settings: &SkipGramSettings,
        sentence: &[u32],
        distribution: &Distribution,
        random: &mut Random,
        prefetch: impl Fn(u32),
        mut position: impl FnMut(Position<'_>),
    ) {
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        kept.extend(sentence.iter().filter(|&&word| distribution.keeps(word, random.bits() as u32)));
        if kept.len() > 1 {
            self.draw_samples(settings, kept[0], distribution, random, &prefetch);
            for at in 0..kept.len() {
                std::mem::swap(&mut self.samples, &mut self.next_samples);
                if let Some(&next) = kept.get(at + 1) {
                    self.draw_samples(settings, next, distribution, random, &prefetch);
                }
                let distance = 1 + random.below(u64::from(settings.window)) as usize;
                let (from, to) = (at.saturating_sub(distance), (at + distance + 1).min(kept.len()));
                position(Position { words: &kept, at, window: from..to, samples: &self.samples });
            }
        }
        self.kept = kept;
    }

    /// The words of the last sentence that are kept.
    pub(crate) fn words(&self) -> &[u32] {
        &self.kept
    }

    /// Draws the negative samples of a word.
    #[inline]
    fn draw_samples(
        &mut self,
        settings: &SkipGramSettings,
        word: u32,
        distribution: &Distribution,
        random: &mut Random,
        prefetch: &impl Fn(u32),
    ) {
        self.next_samples.clear();
        for _ in 0..settings.negatives {
            for _ in 0..DRAWS_MAX {
                let sample = distribution.draw(random);
                if sample != word && !self.next_samples.contains(&sample) {
                    prefetch(sample);
                    self.next_samples.push(sample);
                    break;
                }
            }
        }
    }
}

impl SkipGramTraining {
    /// The rows that [`SkipGramTraining::run`] reads and writes for some work.
    pub fn rows(&self, work: &Work) -> TableRows {
        let mut rows = TableRows::default();
        if work.distribution.is_empty() {
            return rows;
        }
        let mut random = Random::of(&[SENTENCES, self.settings().seed, work.number]);
        let mut draws = Draws::default();
        let mut add = |position: Position<'_>| {
            let (before, after) = position.around(position.words);
            rows.input.extend(before.iter().chain(after));
            rows.output.push(position.word());
            rows.output.extend(position.samples);
        };
        for sentence in work.sentences.iter() {
            draws.sentence(self.settings(), sentence, &work.distribution, &mut random, |_| (), &mut add);
        }
        for rows in [&mut rows.input, &mut rows.output] {
            rows.sort_unstable();
            rows.dedup();
        }
        if let Some(subwords) = &work.subwords {
            rows.ngrams = rows.input.iter().flat_map(|&word| subwords.rows(word)).copied().collect();
            rows.ngrams.sort_unstable();
            rows.ngrams.dedup();
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::skipgram::{Decay, NgramBuckets, Sentences, Vocabulary};

    #[test]
    fn the_rows_of_work_are_those_that_training_changes() {
        for characters in [None, Some(NgramBuckets { min: 2, max: 3, buckets: 400 })] {
            let settings = SkipGramSettings {
                dim: 3,
                sample: 0.01,
                min_count: 1,
                characters,
                ..SkipGramSettings::default()
            };
            let words: Vec<String> = (0..500).map(|number| format!("w{number}")).collect();
            let vocabulary = Vocabulary::of(500, words.iter().map(|word| (word.as_bytes(), 10)), 5000, 0);
            let training = SkipGramTraining::new(settings, 500).unwrap();
            let subwords = training.subwords(&vocabulary).map(Arc::new);
            let mut random = Random::of(&[3]);
            let mut sentences = Sentences::default();
            for _ in 0..10 {
                let words: Vec<u32> = (0..12).map(|_| random.below(500) as u32).collect();
                sentences.push(words, 12);
            }
            let tables = training.tables();
            for table in &tables {
                (0..table.n_rows() as u32).for_each(|row| table.write(row, 0, &[1.0; 3]));
            }
            let distribution = Arc::new(Distribution::new(&vocabulary.counts(), 1, 0.75, 0.01));
            let work = Work { sentences: Arc::new(sentences), distribution, subwords, number: 7 };
            let TableRows { input, output, ngrams } = training.rows(&work);
            training.run_once(Decay::Constant, &work).unwrap();
            for (table, rows) in tables.iter().zip([&input, &output, &ngrams]) {
                let mut values = [0.0; 3];
                let changed = (0..table.n_rows() as u32).filter(|&row| {
                    table.read(row, 0, &mut values);
                    values != [1.0; 3]
                });
                assert_eq!(&changed.collect::<Vec<_>>(), rows);
            }
            assert!(input.len() < 500 && output.len() < 500);
            assert_eq!(ngrams.is_empty(), characters.is_none());
        }
    }
}
