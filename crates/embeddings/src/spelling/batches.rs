//! Sentences to batches of positions: the words of a position's window learn to predict the word at the position and not
//! the negative samples.

use crate::skipgram::{Distribution, Sentences};
use program::random::Random;

use crate::spelling::settings::SpellingSettings;

/// Purposes of random numbers.
const SENTENCES: u64 = 0x7370_656c_0002;
const POSITIONS: u64 = 0x7370_656c_0003;
/// Number of draws in which a negative sample must differ from the other targets. Otherwise there is one less: there are
/// hardly any other words.
const DRAWS_MAX: usize = 8;

/// The words of some sentences that are kept, in batches of about equal size.
#[derive(Clone, Debug)]
pub struct Part {
    words: Vec<u32>,
    /// Per word: the beginning and the end of its sentence in `words`.
    sentences: Vec<[u32; 2]>,
    number: u64,
    n_tokens: u64,
    n_batches: usize,
}

impl Part {
    /// Leaves out frequent words at random. `number` determines the random numbers, together with the seed.
    pub(crate) fn new(
        sentences: &Sentences,
        distribution: &Distribution,
        number: u64,
        settings: &SpellingSettings,
    ) -> Self {
        let mut random = Random::of(&[SENTENCES, settings.seed, number]);
        let (mut words, mut bounds) = (Vec::new(), Vec::new());
        for sentence in sentences.iter() {
            let begin = words.len();
            words.extend(sentence.iter().filter(|&&word| distribution.keeps(word, random.bits() as u32)));
            if words.len() < begin + 2 {
                words.truncate(begin);
            }
            bounds.resize(words.len(), [begin as u32, words.len() as u32]);
        }
        let n_batches = if distribution.is_empty() { 0 } else { words.len().div_ceil(settings.batch) };
        Self { words, sentences: bounds, number, n_tokens: sentences.n_tokens(), n_batches }
    }

    /// Number of batches.
    pub fn n_batches(&self) -> usize {
        self.n_batches
    }

    /// The tokens of the sentences, including those that were left out, up to the end of a batch.
    pub(crate) fn n_tokens_to(&self, batch: usize) -> u64 {
        self.n_tokens * (batch as u64 + 1) / self.n_batches as u64
    }
}

/// A position: places in [`Batch::rows`], first of its targets, then of the words of its window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PositionRows {
    pub(crate) begin: usize,
    /// The word at the position and its negative samples.
    pub(crate) n_targets: usize,
    pub(crate) n_inputs: usize,
}

/// The positions of a batch and its distinct words.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) positions: Vec<PositionRows>,
    /// Indices of the distinct words of `outputs`, for targets, and of `inputs`.
    pub(crate) rows: Vec<u32>,
    pub(crate) inputs: Distinct,
    pub(crate) outputs: Distinct,
    pub(crate) n_pairs: u64,
    samples: Vec<u32>,
}

impl Batch {
    /// Draws the windows and samples of a batch.
    pub(crate) fn draw(
        &mut self,
        part: &Part,
        number: usize,
        distribution: &Distribution,
        settings: &SpellingSettings,
    ) {
        self.clear();
        let mut random = Random::of(&[POSITIONS, settings.seed, part.number, number as u64]);
        let bound = |batch: usize| part.words.len() * batch / part.n_batches;
        for at in bound(number)..bound(number + 1) {
            let word = part.words[at];
            self.draw_samples(word, distribution, settings.negatives, &mut random);
            let distance = 1 + random.below(u64::from(settings.window)) as usize;
            let [from, to] = part.sentences[at].map(|bound| bound as usize);
            let (from, to) = (from.max(at.saturating_sub(distance)), to.min(at + distance + 1));
            let begin = self.rows.len();
            self.rows.push(self.outputs.number(word));
            for &sample in &self.samples {
                self.rows.push(self.outputs.number(sample));
            }
            let n_targets = self.rows.len() - begin;
            for other in (from..to).filter(|&other| other != at) {
                self.rows.push(self.inputs.number(part.words[other]));
            }
            let n_inputs = self.rows.len() - begin - n_targets;
            self.positions.push(PositionRows { begin, n_targets, n_inputs });
            self.n_pairs += n_inputs as u64;
        }
    }

    fn clear(&mut self) {
        self.positions.clear();
        self.rows.clear();
        self.inputs.clear();
        self.outputs.clear();
        self.n_pairs = 0;
    }

    fn draw_samples(&mut self, word: u32, distribution: &Distribution, n: usize, random: &mut Random) {
        self.samples.clear();
        for _ in 0..n {
            let mut draws = (0..DRAWS_MAX).map(|_| distribution.draw(random));
            let sample = draws.find(|sample| *sample != word && !self.samples.contains(sample));
            self.samples.extend(sample);
        }
    }
}

/// Distinct words in order of their first occurrence.
#[derive(Debug, Default)]
pub(crate) struct Distinct {
    pub(crate) words: Vec<u32>,
    /// Index in `words` of each word of the vocabulary up to the last one that occurred.
    of_word: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Distinct {
    fn clear(&mut self) {
        for word in self.words.drain(..) {
            self.of_word[word as usize] = NONE;
        }
    }

    fn number(&mut self, word: u32) -> u32 {
        if self.of_word.len() <= word as usize {
            self.of_word.resize(word as usize + 1, NONE);
        }
        let number = &mut self.of_word[word as usize];
        if *number == NONE {
            *number = self.words.len() as u32;
            self.words.push(word);
        }
        *number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batches_of_a_part_have_each_position_once() {
        let mut sentences = Sentences::default();
        sentences.push([0, 1, 2, 3, 4, 5, 6], 9);
        sentences.push([7], 1);
        sentences.push([8, 9, 0], 3);
        let distribution = Distribution::new(&[5; 10], 1, 0.75, 0.0);
        let settings = SpellingSettings { batch: 4, window: 2, negatives: 3, ..SpellingSettings::default() };
        let part = Part::new(&sentences, &distribution, 6, &settings);
        assert_eq!((part.n_batches(), part.n_tokens_to(0), part.n_tokens_to(2)), (3, 4, 13));
        let mut batch = Batch::default();
        let mut found = Vec::new();
        for number in 0..3 {
            batch.draw(&part, number, &distribution, &settings);
            for position in &batch.positions {
                let rows = &batch.rows[position.begin..];
                let (targets, rest) = rows.split_at(position.n_targets);
                let targets: Vec<u32> =
                    targets.iter().map(|&row| batch.outputs.words[row as usize]).collect();
                let inputs = rest[..position.n_inputs].iter().map(|&row| batch.inputs.words[row as usize]);
                let mut distinct = targets.clone();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(distinct.len(), 4, "samples differ from the word and from each other");
                found.push((targets[0], inputs.collect::<Vec<u32>>()));
            }
        }
        let words: Vec<u32> = found.iter().map(|(word, _)| *word).collect();
        assert_eq!(words, [0, 1, 2, 3, 4, 5, 6, 8, 9, 0]);
        for (at, (_, window)) in found.iter().enumerate() {
            let sentence = if at < 7 { 0..7 } else { 7..10 };
            let of = |distance: usize| -> Vec<u32> {
                let near = |&other: &usize| other != at && other.abs_diff(at) <= distance;
                sentence.clone().filter(near).map(|other| words[other]).collect()
            };
            assert!(*window == of(1) || *window == of(2), "{at}: {window:?}");
        }
    }
}
