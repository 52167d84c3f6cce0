//! The words and n-grams that speak most for a label.

use std::cmp::Ordering;

use super::kernel;
use super::model::FastTextModel;
use crate::error::Result;
use crate::features::FeatureScratch;
use crate::texts::{Block, Texts, Tokens};

impl FastTextModel {
    /// Words and n-grams with positive weights for a label, at most `n`, the largest weight first. N-grams are hashed, so
    /// they are searched in the first texts, of `tokens_max` tokens. The weight is what an n-gram adds to the logit of a
    /// text that has nothing else; the mean of the other labels is subtracted as in [`FastTextModel::explain`]. The
    /// texts are those of the training. An n-gram with a word that is not in the dictionary has no name, so it is left
    /// out.
    ///
    /// # Errors
    /// If the temporary file of the texts cannot be read.
    ///
    /// # Panics
    /// If the label does not exist.
    pub fn top(&self, texts: &Texts, label: u32, n: usize, tokens_max: usize) -> Result<Vec<(String, f32)>> {
        let direction = self.direction(label);
        let weight = |row: u32| match self.met().position(row) {
            Some(position) => kernel::dot_on(self.processor(), self.input(), position, &direction),
            None => 0.0,
        };
        let mut best = Best { n, ngrams: Vec::new() };
        let (mut block, mut scratch) = (Block::default(), FeatureScratch::default());
        let (mut words, mut rows) = (Vec::new(), Vec::new());
        let mut n_tokens = 0;
        for index in 0..texts.n_blocks() {
            for text in texts.block(index, &mut block)?.texts() {
                if n_tokens > tokens_max {
                    return Ok(best.ngrams);
                }
                n_tokens += text.tokens.len();
                words.clear();
                words.extend(Tokens(text.tokens));
                let named = |words: &[std::result::Result<u32, u32>]| {
                    let names = words.iter().map(|word| word.ok().map(|word| self.dictionary().name(word)));
                    let names: Option<Vec<&[u8]>> = names.collect();
                    names.map(|names| String::from_utf8_lossy(&names.join(&b' ')).into_owned())
                };
                for (at, word) in words.iter().enumerate() {
                    rows.clear();
                    if let Ok(word) = *word {
                        self.rows().of_tokens(self.dictionary(), &[word], &mut scratch, &mut rows);
                        let mean = rows.iter().map(|&row| weight(row)).sum::<f32>() / rows.len() as f32;
                        best.offer(mean, || named(&words[at..=at]));
                    }
                }
                self.rows().each_ngram_of_tokens(
                    self.dictionary(),
                    text.tokens,
                    &mut scratch,
                    |row, span| {
                        best.offer(weight(row), || named(&words[span]));
                    },
                );
            }
        }
        Ok(best.ngrams)
    }
}

/// The n-grams with the largest weights, in descending order.
struct Best {
    n: usize,
    ngrams: Vec<(String, f32)>,
}

impl Best {
    /// Inserts an n-gram, unless its weight is too small or it has no name. Most weights are too small, so a name is
    /// composed only when it is needed.
    fn offer(&mut self, weight: f32, name: impl FnOnce() -> Option<String>) {
        let is_too_small = |last: &(String, f32)| weight < last.1;
        if weight.is_nan()
            || weight <= 0.0
            || (self.ngrams.len() >= self.n && self.ngrams.last().is_none_or(is_too_small))
        {
            return;
        }
        let Some(name) = name() else { return };
        let found = self.ngrams.binary_search_by(|(other, of_other)| match weight.total_cmp(of_other) {
            Ordering::Equal => other.cmp(&name),
            unequal => unequal,
        });
        // The same n-gram has the same weight.
        if let Err(at) = found {
            self.ngrams.insert(at, (name, weight));
            self.ngrams.truncate(self.n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lines, settings, train};
    use super::super::{FastTextSettings, Scores};
    use crate::words::Words;
    use crate::{Builders, Reading};

    #[test]
    fn the_largest_weights_are_those_of_explanations_and_unknown_words_have_none() {
        let lines = lines(200).replace("own0x1", "rare") + "__label__l0 own0x2 seldom own0x2\n";
        let reading = Reading { words: Words::Cleaned, count_min: 3, ..Reading::default() };
        let builders = Builders::new(reading);
        let mut builder = builders.builder();
        crate::add_lines(&mut builder, lines.as_bytes()).unwrap();
        let texts = builders.merge(vec![builder]).unwrap();
        assert!(texts.counts().n_unknown > 0);
        let settings = FastTextSettings { words: Words::Cleaned, epochs: 10, rate: 0.5, ..settings() };
        let model = train(&texts, settings);
        assert!(model.scores(b"own0x2", &mut Scores::default())[0] > 0.4);
        for label in 0..3 {
            let mut expected: Vec<(String, f32)> = Vec::new();
            for line in lines.lines() {
                let words: Vec<&str> = line.split(' ').skip(1).collect();
                let ngrams = words.windows(1).chain(words.windows(2));
                for ngram in ngrams.filter(|ngram| {
                    ngram.iter().all(|word| model.dictionary().word(word.as_bytes()).is_some())
                }) {
                    // A word has one row; a pair has three, of which the last is its own.
                    let n_rows = 2 * ngram.len() - 1;
                    let explained = model.explain(ngram.join(" ").as_bytes(), label);
                    let (name, share) = explained.last().unwrap().clone();
                    expected.push((name, share * n_rows as f32));
                }
            }
            expected.retain(|(_, weight)| *weight > 0.0);
            expected.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
            expected.dedup_by(|one, other| one.0 == other.0);
            let found = model.top(&texts, label, 7, usize::MAX).unwrap();
            assert_eq!(found.len(), 7);
            for ((name, weight), (expected_name, expected)) in found.iter().zip(&expected) {
                assert_eq!(name, expected_name);
                assert!((weight - expected).abs() < 1e-5, "{name}: {weight}, {expected}");
            }
            assert!(
                model.top(&texts, label, 7, 10).unwrap().iter().all(|(name, _)| lines[..400].contains(name))
            );
        }
    }
}
