//! Cleaned lines to sentences of numbered words.

use std::sync::Arc;

use crate::skipgram::characters::Subwords;
use crate::skipgram::distribution::Distribution;
use crate::skipgram::sentences::Sentences;
use crate::skipgram::settings::SkipGramSettings;
use crate::skipgram::training::{SkipGramTraining, Work};
use crate::skipgram::vocabulary::{Counted, Vocabulary};

/// The distribution is computed anew when the number of tokens has grown by this share,
const GROWTH: u64 = 4;
/// but not before this number of tokens,
const TOKENS_MIN: u64 = 1 << 15;
/// and after this number at the latest, because frequencies can change.
const TOKENS_MAX: u64 = 1 << 24;

/// Counts and numbers the words of a stream while its vectors are trained. The vocabulary grows, and the distribution of
/// negative samples follows its counts.
#[derive(Debug)]
pub struct Counting {
    vocabulary: Vocabulary,
    distribution: Arc<Distribution>,
    /// Number of tokens at which the distribution is computed anew.
    rebuilt_at: u64,
    min_count: u64,
    power: f64,
    sample: f64,
}

/// A word whose number is new, or that has just occurred often enough to be part of sentences.
#[derive(Clone, Copy, Debug)]
pub struct Begun<'a> {
    /// The vocabulary, which has the word.
    pub vocabulary: &'a Vocabulary,
    /// Its number.
    pub number: u32,
    /// Whether the number is new, or was that of another word.
    pub is_new: bool,
    /// Whether it occurred at least as often as the minimum count.
    pub is_frequent: bool,
}

impl Counting {
    /// Continues with a vocabulary. Words that occurred less than `min_count` are not part of sentences; `power` and `sample`
    /// are those of the distribution.
    pub fn new(vocabulary: Vocabulary, min_count: u64, power: f64, sample: f64) -> Self {
        let distribution = Arc::new(Distribution::new(&[], 1, 1.0, 0.0));
        Self { vocabulary, distribution, rebuilt_at: 0, min_count, power, sample }
    }

    /// Counts and numbers the words of cleaned lines. `begin` is called before a word is in a sentence.
    pub fn work(&mut self, lines: &[u8], mut begin: impl FnMut(Begun<'_>)) -> Work {
        let number = self.vocabulary.n_tokens();
        let mut sentences = Sentences::default();
        let mut sentence = Vec::new();
        for line in lines_of(lines) {
            let mut n_tokens = 0;
            sentence.clear();
            for word in words_of(line) {
                n_tokens += 1;
                let (number, is_new) = match self.vocabulary.count(word) {
                    Counted::Known(number) => (number, false),
                    Counted::New(number) | Counted::Replaced(number) => (number, true),
                    Counted::Rare => continue,
                };
                let count = self.vocabulary.count_of(number);
                let is_frequent = count >= self.min_count;
                if is_new || count == self.min_count {
                    begin(Begun { vocabulary: &self.vocabulary, number, is_new, is_frequent });
                }
                if is_frequent {
                    sentence.push(number);
                }
            }
            sentences.push(sentence.iter().copied(), n_tokens);
        }
        let n_tokens = self.vocabulary.n_tokens();
        if n_tokens >= self.rebuilt_at {
            let counts = self.vocabulary.counts();
            self.distribution = Arc::new(Distribution::new(&counts, self.min_count, self.power, self.sample));
            self.rebuilt_at = rebuilt_after(n_tokens);
        }
        let distribution = Arc::clone(&self.distribution);
        Work { sentences: Arc::new(sentences), distribution, subwords: None, number }
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The vocabulary, at the end of the stream.
    pub fn into_vocabulary(self) -> Vocabulary {
        self.vocabulary
    }
}

/// A stream from which a training by skip-gram learns.
#[derive(Debug)]
pub struct Growing {
    counting: Counting,
    /// The character n-grams of the words that occurred at least as often as the minimum count.
    subwords: Option<Arc<Subwords>>,
    /// Reused for the rows of a word.
    rows: Vec<u32>,
}

impl Growing {
    /// Continues with the vocabulary of a training.
    pub fn new(vocabulary: Vocabulary, training: &SkipGramTraining) -> Self {
        let subwords = training.subwords(&vocabulary).map(Arc::new);
        let &SkipGramSettings { min_count, power, sample, .. } = training.settings();
        Self { counting: Counting::new(vocabulary, min_count, power, sample), subwords, rows: Vec::new() }
    }

    /// Counts and numbers the words of cleaned lines, and draws the vectors of new words. A word that occurred less than the
    /// minimum count is not part of a sentence.
    pub fn work(&mut self, training: &SkipGramTraining, lines: &[u8]) -> Work {
        let Self { counting, subwords, rows } = self;
        let work = counting.work(lines, |Begun { vocabulary, number, is_new, is_frequent }| {
            if is_new {
                training.draw(number);
            }
            let Some(subwords) = subwords else { return };
            rows.clear();
            // Rare words have no n-grams, so that they use no rows.
            if is_frequent {
                training.draw_characters(vocabulary.word(number), rows);
            }
            Arc::make_mut(subwords).set(number, rows);
        });
        Work { subwords: self.subwords.clone(), ..work }
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        self.counting.vocabulary()
    }

    /// The vocabulary, at the end of the stream.
    pub fn into_vocabulary(self) -> Vocabulary {
        self.counting.into_vocabulary()
    }
}

/// The number of tokens at which a distribution is computed anew that was computed at this one.
pub fn rebuilt_after(n_tokens: u64) -> u64 {
    n_tokens + (n_tokens / GROWTH).clamp(TOKENS_MIN, TOKENS_MAX)
}

/// Counts the words of cleaned lines and appends their sentences. Words without a number are not part of a sentence.
pub fn count(vocabulary: &mut Vocabulary, lines: &[u8], sentences: &mut Sentences) {
    push(lines, sentences, |word| match vocabulary.count(word) {
        Counted::Known(number) | Counted::New(number) | Counted::Replaced(number) => Some(number),
        Counted::Rare => None,
    });
}

/// Appends the sentences of cleaned lines with the numbers of a vocabulary. Other words are not part of a sentence.
pub fn number(vocabulary: &Vocabulary, lines: &[u8], sentences: &mut Sentences) {
    push(lines, sentences, |word| vocabulary.find(word));
}

fn push(lines: &[u8], sentences: &mut Sentences, mut number: impl FnMut(&[u8]) -> Option<u32>) {
    let mut sentence = Vec::new();
    for line in lines_of(lines) {
        let mut n_tokens = 0;
        sentence.clear();
        sentence.extend(words_of(line).inspect(|_| n_tokens += 1).filter_map(&mut number));
        sentences.push(sentence.iter().copied(), n_tokens);
    }
}

fn lines_of(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
}

fn words_of(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_part_of_sentences_from_its_minimum_count_on() {
        let settings = SkipGramSettings { dim: 4, min_count: 2, ..SkipGramSettings::default() };
        let training = SkipGramTraining::new(settings, 10).unwrap();
        let mut growing = Growing::new(Vocabulary::new(10), &training);
        let work = growing.work(&training, b"a b a\n\nb  c a\n");
        let found: Vec<&[u32]> = work.sentences.iter().collect();
        assert_eq!(found, [&[0][..], &[1, 0]]);
        assert_eq!((work.sentences.n_tokens(), work.number), (6, 0));
        let mut vector = [0.0; 4];
        training.input().read(2, 0, &mut vector);
        assert!(vector.iter().all(|value| *value != 0.0 && value.abs() <= 0.125), "{vector:?}");
        assert_eq!(growing.work(&training, b"c").number, 6);
    }

    #[test]
    fn lines_are_counted_and_then_numbered_by_the_ranked_vocabulary() {
        let (mut vocabulary, mut sentences) = (Vocabulary::new(10), Sentences::default());
        let lines = b"x y z\ny\nz y";
        count(&mut vocabulary, lines, &mut sentences);
        let (ranked, numbers) = vocabulary.ranked(2);
        sentences.renumber(|word| numbers[word as usize]);
        let mut again = Sentences::default();
        number(&ranked, lines, &mut again);
        assert_eq!(sentences, again);
        let found: Vec<&[u32]> = again.iter().collect();
        assert_eq!((found, again.n_tokens()), (vec![&[0, 1][..], &[0], &[1, 0]], 6));
    }
}
