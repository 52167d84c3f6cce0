//! A linear classifier of n-grams: probabilities of the labels of a line, and what each n-gram contributes.

use std::collections::BTreeMap;

use scoring::Choice;
use serde::{Deserialize, Serialize};

use super::calibration::Sigmoid;
use super::distinct::Distinct;
use super::keys::{self, Ngram};
use super::matrix::value;
use super::row_index::{RowIndex, RowKeys, Word, row_of_hash, rows_of_hashes};
use super::settings::{LinearSettings, NgramTable, Weighting};
use crate::dictionary::{Dictionary, hash};
use crate::names::Names;
use crate::texts::Texts;
use crate::words::Words;

/// A trained model.
#[derive(Clone, Debug)]
pub struct LinearModel {
    pub(super) stored: StoredModel,
    pub(super) rows: RowIndex,
    /// The labels, and the words of exact n-grams, without counts.
    pub(super) dictionary: Dictionary,
}

/// All of a model, as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredModel {
    /// The settings of the training.
    pub settings: LinearSettings,
    /// How a line is split.
    pub words: Words,
    /// The labels.
    pub labels: Names,
    /// Number of texts of each label.
    pub label_counts: Vec<u64>,
    /// The order of labels for users, as [`Dictionary::classes`].
    pub classes: Names,
    /// What the classifiers answer.
    pub outputs: Outputs,
    /// The n-grams with weights.
    pub rows: RowKeys,
    /// The words of exact n-grams, by number; empty for hashed ones.
    pub vocabulary: Names,
    /// Inverse document frequency of each row, if a text is divided by its TF-IDF norm; otherwise empty.
    pub frequencies: Vec<f32>,
    /// `[rows, classifiers]`
    pub weights: Vec<f32>,
    /// By classifier.
    pub biases: Vec<f32>,
    /// By classifier.
    pub sigmoids: Vec<Sigmoid>,
    /// How these probabilities become those of answers, and labels.
    pub choice: Choice,
    /// The strongest n-grams of each label.
    pub named: Vec<Named>,
}

/// What the classifiers answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outputs {
    /// One classifier, of the first of two labels.
    Two,
    /// One classifier per label, of texts with one label each: probabilities are divided by their sum.
    OneOf,
    /// One classifier per label, of texts with any number of labels.
    AnyOf,
}

impl StoredModel {
    pub(super) fn dictionary(&self) -> Dictionary {
        let counts = vec![0; self.vocabulary.len()];
        let (labels, label_counts) = (self.labels.clone(), self.label_counts.clone());
        Dictionary::new(self.vocabulary.clone(), counts, labels, label_counts)
            .with_classes(self.classes.clone())
    }
}

impl Outputs {
    /// What classifiers answer that are trained on these texts.
    pub fn of(texts: &Texts) -> Self {
        match (texts.has_one_label_each(), texts.dictionary.labels().len()) {
            (true, 2) => Self::Two,
            (true, _) => Self::OneOf,
            (false, _) => Self::AnyOf,
        }
    }

    /// Number of classifiers for this number of labels.
    pub fn n_classifiers(self, n_labels: usize) -> usize {
        if self == Self::Two { 1 } else { n_labels }
    }
}

/// An n-gram with its weight for a label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Number of the label.
    pub label: u32,
    /// Words of the n-gram. The words of a pair are separated by ` … `. ` (at the end)` follows the words of an n-gram of
    /// the end of texts.
    pub ngram: String,
    /// Positive if it raises the score of the label.
    pub weight: f32,
    /// Number of texts with the n-gram, or with another one of the same hash.
    pub count: u64,
}

/// What an n-gram of a text contributes to the score of a label.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// Words of the n-gram, as in [`Named`].
    pub ngram: String,
    /// Whether it is one of the end of the text.
    pub is_ending: bool,
    /// Positive if it spoke for the label.
    pub weight: f32,
}

/// Reusable lists of [`LinearModel`].
#[derive(Clone, Debug, Default)]
pub struct LinearScratch {
    word: Vec<u8>,
    hashes: Vec<u32>,
    numbers: Vec<Option<u32>>,
    found: TextNgrams,
}

impl LinearScratch {
    /// Whether the model knows an n-gram of the last line.
    pub fn has_known(&self) -> bool {
        self.found.rows.iter().any(Option::is_some)
    }
}

/// The distinct n-grams of a text.
#[derive(Clone, Debug, Default)]
struct TextNgrams {
    /// Hashes, or numbers of exact n-grams.
    ngrams: Vec<u32>,
    counts: Vec<f32>,
    rows: Vec<Option<u32>>,
    /// The words of the table of hashes.
    words: Vec<Word>,
    distinct: Distinct,
}

impl LinearModel {
    /// A model from its stored form; `None` if its lists do not belong together.
    pub fn of(stored: StoredModel) -> Option<Self> {
        let rows = RowIndex::of(&stored.rows)?;
        let n = stored.outputs.n_classifiers(stored.labels.len());
        let is_two = stored.outputs != Outputs::Two || stored.labels.len() == 2;
        let is_table = match (stored.settings.table, &stored.rows) {
            (NgramTable::Hashed { bits }, RowKeys::Hashed { bits: found, .. }) => bits == *found,
            (NgramTable::Exact, RowKeys::Exact(_)) => true,
            _ => false,
        };
        let has_frequencies = stored.settings.is_normalized && stored.settings.weighting == Weighting::TfIdf;
        let is_whole = stored.settings.check().is_ok()
            && is_two
            && stored.label_counts.len() == stored.labels.len()
            && is_table
            && Some(stored.weights.len()) == rows.n_rows().checked_mul(n)
            && stored.biases.len() == n
            && stored.sigmoids.len() == n
            && stored.frequencies.len() == if has_frequencies { rows.n_rows() } else { 0 }
            && stored.named.iter().all(|named| (named.label as usize) < stored.labels.len());
        is_whole.then(|| Self { dictionary: stored.dictionary(), stored, rows })
    }

    /// Alters the stored form without the table of rows.
    #[cfg(test)]
    pub(crate) fn change(&mut self, change: &dyn Fn(&mut StoredModel)) {
        change(&mut self.stored);
    }

    /// The stored form.
    pub fn stored(&self) -> &StoredModel {
        &self.stored
    }

    /// Sets how probabilities become those of answers, and labels.
    pub fn choose(&mut self, choice: Choice) {
        self.stored.choice = choice;
    }

    /// The labels, in the order of probabilities.
    pub fn labels(&self) -> &Names {
        &self.stored.labels
    }

    /// The labels, and the words of exact n-grams, which have no counts.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// Whether a hashed n-gram has weights.
    pub(super) fn has_hash(&self, hash: u32) -> bool {
        match &self.rows {
            RowIndex::Hashed { words, .. } => row_of_hash(words, hash).is_some(),
            RowIndex::Exact { .. } => false,
        }
    }

    /// Number of n-grams with weights.
    pub fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    /// Number of weights that are not zero.
    pub fn n_weights(&self) -> usize {
        self.stored.weights.iter().filter(|weight| **weight != 0.0).count()
    }

    /// Writes the probability of each label of a line. Unknown n-grams contribute nothing, so a line without known
    /// n-grams has the probabilities of the biases.
    pub fn probabilities(&self, line: &[u8], scratch: &mut LinearScratch, probabilities: &mut Vec<f32>) {
        self.scores(line, scratch, probabilities);
        self.convert(probabilities);
    }

    /// Converts the score of each classifier to the probability of each label.
    pub fn convert(&self, probabilities: &mut Vec<f32>) {
        let stored = &self.stored;
        for (score, sigmoid) in probabilities.iter_mut().zip(&stored.sigmoids) {
            *score = sigmoid.probability(*score);
        }
        match stored.outputs {
            Outputs::Two => probabilities.push(1.0 - probabilities[0]),
            Outputs::OneOf => {
                let sum: f32 = probabilities.iter().sum();
                if sum > 0.0 {
                    probabilities.iter_mut().for_each(|probability| *probability /= sum);
                }
            }
            Outputs::AnyOf => {}
        }
    }

    /// Writes the score of each classifier.
    pub fn scores(&self, line: &[u8], scratch: &mut LinearScratch, scores: &mut Vec<f32>) {
        let LinearScratch { word, hashes, numbers, found } = scratch;
        self.find(line, word, hashes, numbers, found, |_, _| ());
        self.score(found, scores);
    }

    /// Writes the score of each classifier for a text whose words have these hashes, which [`hash`] computes. Only hashed
    /// n-grams are found.
    pub fn scores_of_hashes(&self, words: &[u32], scratch: &mut LinearScratch, scores: &mut Vec<f32>) {
        let found = &mut scratch.found;
        found.clear();
        self.find_hashed(words, found, |_, _| ());
        self.score(found, scores);
    }

    fn score(&self, found: &TextNgrams, scores: &mut Vec<f32>) {
        let stored = &self.stored;
        let n = stored.biases.len();
        scores.clear();
        scores.resize(n, 0.0);
        let scale = self.scale(found);
        let known =
            found.rows.iter().zip(&found.counts).filter_map(|(row, count)| Some((((*row)?) as usize, count)));
        if let [score] = &mut scores[..] {
            let weighted = known
                .map(|(row, &count)| scale * value(stored.settings.counting, count) * stored.weights[row]);
            *score = weighted.fold(0.0, |sum, term| sum + term) + stored.biases[0];
            return;
        }
        for (row, &count) in known {
            let value = scale * value(stored.settings.counting, count);
            for (score, weight) in scores.iter_mut().zip(&stored.weights[row * n..][..n]) {
                *score += value * weight;
            }
        }
        scores.iter_mut().zip(&stored.biases).for_each(|(score, bias)| *score += bias);
    }

    /// What each distinct n-gram of a line contributes to the score of a label, the strongest first.
    pub fn explain(&self, line: &[u8], label: u32) -> Vec<Contribution> {
        let mut words = Vec::new();
        self.stored.words.each(line, &mut Vec::new(), |word| words.push(word.to_vec()));
        let mut firsts = BTreeMap::new();
        let LinearScratch { mut word, mut hashes, mut numbers, mut found } = LinearScratch::default();
        self.find(line, &mut word, &mut hashes, &mut numbers, &mut found, |position, ngram| {
            firsts.entry(position).or_insert(ngram);
        });
        let stored = &self.stored;
        let n = stored.biases.len();
        let (classifier, sign) = match stored.outputs {
            Outputs::Two => (0, if label == 0 { 1.0 } else { -1.0 }),
            Outputs::OneOf | Outputs::AnyOf => (label as usize, 1.0),
        };
        let scale = self.scale(&found);
        let contribution = |(position, ngram): (u32, Ngram)| {
            let row = found.rows[position as usize]? as usize;
            let value = scale * value(stored.settings.counting, found.counts[position as usize]);
            let weight = sign * value * stored.weights[row * n + classifier];
            let is_ending = ngram.is_ending;
            let ngram = ngram.name(|index| words.get(index).map(Vec::as_slice))?;
            (weight != 0.0).then_some(Contribution { ngram, is_ending, weight })
        };
        let mut all: Vec<_> = firsts.into_iter().filter_map(contribution).collect();
        all.sort_by(|a, b| b.weight.abs().total_cmp(&a.weight.abs()));
        all
    }

    /// Lists the distinct n-grams of a line. Calls `each` with the position of each n-gram in the list.
    fn find(
        &self,
        line: &[u8],
        word: &mut Vec<u8>,
        hashes: &mut Vec<u32>,
        numbers: &mut Vec<Option<u32>>,
        found: &mut TextNgrams,
        mut each: impl FnMut(u32, Ngram),
    ) {
        let settings = &self.stored.settings;
        found.clear();
        match &self.rows {
            RowIndex::Hashed { .. } => {
                hashes.clear();
                self.stored.words.each(line, word, |word| hashes.push(hash(word)));
                self.find_hashed(hashes, found, each);
            }
            RowIndex::Exact { rows } => {
                numbers.clear();
                self.stored.words.each(line, word, |word| numbers.push(self.dictionary.word(word)));
                found.distinct.begin(keys::n_ngrams(settings, numbers.len()));
                let mut numbering = keys::NgramNumbering::default();
                keys::each_exact(settings, numbers, |ngram, words| {
                    let position = found.add(numbering.number(ngram));
                    if position as usize == found.rows.len() {
                        found.rows.push(rows.get(&ngram).copied());
                    }
                    each(position, words);
                });
            }
        }
    }

    /// Lists the distinct n-grams of words with these hashes, if n-grams are hashed.
    fn find_hashed(&self, hashes: &[u32], found: &mut TextNgrams, mut each: impl FnMut(u32, Ngram)) {
        let RowIndex::Hashed { bits, words, .. } = &self.rows else { return };
        let settings = &self.stored.settings;
        found.distinct.begin(keys::n_ngrams(settings, hashes.len()));
        keys::each_hash(settings, *bits, hashes, |hash, ngram| each(found.add(hash), ngram));
        rows_of_hashes(words, &found.ngrams, &mut found.words, &mut found.rows);
    }

    /// The factor of all values of a text.
    fn scale(&self, found: &TextNgrams) -> f32 {
        let settings = &self.stored.settings;
        if !settings.is_normalized {
            return 1.0;
        }
        let value = |count: &f32| value(settings.counting, *count);
        let frequencies = &self.stored.frequencies;
        let of = |(row, count): (&Option<u32>, &f32)| {
            let frequency = |row: u32| frequencies.get(row as usize).copied().unwrap_or(1.0);
            row.map_or(0.0, |row| (value(count) * frequency(row)).powi(2))
        };
        let squares: f32 = found.rows.iter().zip(&found.counts).map(of).sum();
        if squares > 0.0 { squares.sqrt().recip() } else { 1.0 }
    }
}

impl TextNgrams {
    fn clear(&mut self) {
        self.ngrams.clear();
        self.counts.clear();
        self.rows.clear();
    }

    /// Adds an n-gram and returns its position.
    #[inline]
    fn add(&mut self, number: u32) -> u32 {
        let next = self.ngrams.len() as u32;
        let position = self.distinct.position(number, next);
        if position == next {
            self.ngrams.push(number);
            self.counts.push(1.0);
        } else {
            self.counts[position as usize] += 1.0;
        }
        position
    }
}
