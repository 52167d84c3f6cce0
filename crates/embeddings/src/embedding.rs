//! The vectors of words, and of their character n-grams.

use std::borrow::Cow;

use crate::spelling::Generator;
use classifiers::{Dictionary, Features, Names};

/// Word vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// The words in order of their numbers, with their counts; all counts are 0 if they are unknown. There are no
    /// labels.
    pub words: Dictionary,
    /// Dimension.
    pub dim: usize,
    /// `[V, D]`, row by row: the vectors of words.
    pub vectors: Vec<f32>,
    /// Character n-grams, from which words outside of the vocabulary have vectors.
    pub characters: Option<CharacterNgrams>,
    /// Computes the vectors of words outside of the vocabulary from their characters.
    pub generator: Option<Generator>,
}

/// The rows of which the vector of a word is the mean: its own row, and those of its character n-grams. A word that is
/// not in the vocabulary has the mean of the rows of its n-grams. N-grams are hashed as in fastText.
#[derive(Clone, Debug, PartialEq)]
pub struct CharacterNgrams {
    /// Characters of the shortest n-gram.
    pub min: usize,
    /// Characters of the longest n-gram.
    pub max: usize,
    /// Number of buckets of hashes.
    pub buckets: usize,
    /// `[B, D]`: the rows of buckets.
    pub rows: Vec<f32>,
    /// `[V, D]`: the own rows of words.
    pub own: Vec<f32>,
}

impl Embedding {
    /// Vectors `[V, D]` of words, without character n-grams and generator.
    ///
    /// # Panics
    /// If there is not one vector and one count per word.
    pub fn new(words: Names, counts: Option<Vec<u64>>, dim: usize, vectors: Vec<f32>) -> Self {
        assert_eq!(words.len() * dim, vectors.len(), "one vector per word");
        let counts = counts.unwrap_or_else(|| vec![0; words.len()]);
        let words = Dictionary::new(words, counts, Names::default(), Vec::new());
        Self { words, dim, vectors, characters: None, generator: None }
    }

    /// The vectors of words with character n-grams: the mean of the rows of each.
    ///
    /// # Panics
    /// If the rows do not have the dimension, or there is not one own row and one count per word.
    pub fn with_characters(
        words: Names,
        counts: Option<Vec<u64>>,
        dim: usize,
        characters: CharacterNgrams,
    ) -> Self {
        assert_eq!(characters.rows.len(), characters.buckets * dim, "one row per bucket");
        let mut embedding = Self::new(words, counts, dim, characters.own.clone());
        let mut rows = Vec::new();
        for (word, vector) in embedding.words.words().iter().zip(embedding.vectors.chunks_exact_mut(dim)) {
            characters.buckets_of(word, &mut rows);
            characters.add(&rows, vector);
            scale(vector, rows.len() + 1);
        }
        Self { characters: Some(characters), ..embedding }
    }

    /// Number of words.
    pub fn n_words(&self) -> usize {
        self.words.n_words()
    }

    /// The vector of the word with this number.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn vector(&self, word: u32) -> &[f32] {
        &self.vectors[word as usize * self.dim..][..self.dim]
    }

    /// The vector of a word. A word outside of the vocabulary has one if it has character n-grams or there is a generator.
    pub fn vector_of(&self, word: &[u8]) -> Option<Cow<'_, [f32]>> {
        if let Some(number) = self.words.word(word) {
            return Some(Cow::Borrowed(self.vector(number)));
        }
        if let Some(generator) = &self.generator {
            return (!word.is_empty()).then(|| Cow::Owned(generator.vector(word)));
        }
        let characters = self.characters.as_ref()?;
        let mut rows = Vec::new();
        characters.buckets_of(word, &mut rows);
        if word.is_empty() || rows.is_empty() {
            return None;
        }
        let mut vector = vec![0.0; self.dim];
        characters.add(&rows, &mut vector);
        scale(&mut vector, rows.len());
        Some(Cow::Owned(vector))
    }

    /// The number of a word of the vocabulary, as it is or in lower case.
    pub fn number_of(&self, word: &[u8]) -> Option<u32> {
        self.words.word(word).or_else(|| self.words.word(&lower_case(word)))
    }

    /// The vector of a word as it is or in lower case. The vocabulary precedes characters.
    pub fn find(&self, word: &[u8]) -> Option<Cow<'_, [f32]>> {
        match self.number_of(word) {
            Some(number) => Some(Cow::Borrowed(self.vector(number))),
            None => self.vector_of(word),
        }
    }

    /// The count of each word, by number; `None` if they are unknown.
    pub fn counts(&self) -> Option<Vec<u64>> {
        let counts: Vec<u64> = (0..self.n_words() as u32).map(|word| self.words.count(word)).collect();
        counts.iter().any(|&count| count > 0).then_some(counts)
    }
}

impl CharacterNgrams {
    /// The buckets of the character n-grams of a word, replacing `rows`.
    pub fn buckets_of(&self, word: &[u8], rows: &mut Vec<u32>) {
        rows.clear();
        features(self.min, self.max, self.buckets).characters(0, word, rows);
    }

    /// Adds the rows of buckets to a vector.
    fn add(&self, rows: &[u32], vector: &mut [f32]) {
        let dim = vector.len();
        for &row in rows {
            let row = &self.rows[row as usize * dim..][..dim];
            vector.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// The character n-grams as features of the crate `classifiers`, which hashes them.
pub(crate) fn features(min: usize, max: usize, buckets: usize) -> Features {
    let [characters_min, characters_max, buckets] = [min, max, buckets].map(|size| size as u32);
    Features { ngrams: 1, buckets, characters_min, characters_max, hashes_unknown: false }
}

/// Divides a sum by the number of its rows, as fastText does.
fn scale(vector: &mut [f32], n_rows: usize) {
    let share = (1.0 / n_rows as f64) as f32;
    vector.iter_mut().for_each(|value| *value *= share);
}

/// A word in lower case. Bytes that are not UTF-8 have none.
pub fn lower_case(word: &[u8]) -> Vec<u8> {
    std::str::from_utf8(word).map_or_else(|_| word.to_vec(), |word| word.to_lowercase().into_bytes())
}
