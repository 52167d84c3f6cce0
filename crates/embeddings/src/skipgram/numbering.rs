//! Cleaned lines to sentences of numbered words.

use std::sync::Arc;

use crate::skipgram::characters::Subwords;
use crate::skipgram::distribution::Distribution;
use crate::skipgram::sentences::Sentences;
use crate::skipgram::training::{SkipGramTraining, Work};
use crate::skipgram::vocabulary::{Counted, Vocabulary};

/// The distribution is computed anew when the number of tokens has grown by this share,
const GROWTH: u64 = 4;
/// but not before this number of tokens,
const TOKENS_MIN: u64 = 1 << 15;
/// and after this number at the latest, because frequencies can change.
const TOKENS_MAX: u64 = 1 << 24;

/// Numbers the words of a stream while its vectors are trained. The vocabulary grows, and the distribution of negative
/// samples follows its counts.
#[derive(Debug)]
pub struct Growing {
    vocabulary: Vocabulary,
    distribution: Arc<Distribution>,
    /// The character n-grams of the words that occurred at least as often as the minimum count.
    subwords: Option<Arc<Subwords>>,
    /// Number of tokens at which the distribution is computed anew.
    rebuilt_at: u64,
    /// Reused for the rows of a word.
    rows: Vec<u32>,
}

impl Growing {
    /// Continues with the vocabulary of a training.
    pub fn new(vocabulary: Vocabulary, training: &SkipGramTraining) -> Self {
        let subwords = training.subwords(&vocabulary).map(Arc::new);
        let distribution = Arc::new(Distribution::new(&[], 1, 1.0, 0.0));
        Self { vocabulary, distribution, subwords, rebuilt_at: 0, rows: Vec::new() }
    }

    /// Counts and numbers the words of cleaned lines, and draws the vectors of new words. A word that occurred less than the
    /// minimum count is not part of a sentence.
    pub fn work(&mut self, training: &SkipGramTraining, lines: &[u8]) -> Work {
        let settings = training.settings();
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
                if is_new {
                    training.draw(number);
                }
                // Rare words have no n-grams, so that they use no rows.
                if is_new || count == settings.min_count {
                    self.list_characters(number, word, count >= settings.min_count, training);
                }
                if count >= settings.min_count {
                    sentence.push(number);
                }
            }
            sentences.push(sentence.iter().copied(), n_tokens);
        }
        let n_tokens = self.vocabulary.n_tokens();
        if n_tokens >= self.rebuilt_at {
            let counts = self.vocabulary.counts();
            let distribution =
                Distribution::new(&counts, settings.min_count, settings.power, settings.sample);
            self.distribution = Arc::new(distribution);
            self.rebuilt_at = n_tokens + (n_tokens / GROWTH).clamp(TOKENS_MIN, TOKENS_MAX);
        }
        let (distribution, subwords) = (Arc::clone(&self.distribution), self.subwords.clone());
        Work { sentences: Arc::new(sentences), distribution, subwords, number }
    }

    /// Lists and draws the character n-grams of a word, or none.
    fn list_characters(&mut self, number: u32, word: &[u8], has_some: bool, training: &SkipGramTraining) {
        let Some(subwords) = &mut self.subwords else { return };
        self.rows.clear();
        if has_some {
            training.draw_characters(word, &mut self.rows);
        }
        Arc::make_mut(subwords).set(number, &self.rows);
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
    use crate::skipgram::SkipGramSettings;

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
