//! Words and labels by number, with their counts.

use std::sync::OnceLock;

use crate::names::Names;
use crate::numbers::Numbers;
use crate::texts::TextRef;

/// fastText's hash of a word: 32-bit FNV-1a whose bytes are sign-extended.
#[inline]
pub fn hash(word: &[u8]) -> u32 {
    word.iter().fold(2_166_136_261, |hash: u32, &byte| (hash ^ byte as i8 as u32).wrapping_mul(16_777_619))
}

/// Words and labels. [`crate::Builders::merge`] orders each by descending count, then by bytes; a model read from a
/// file keeps the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    words: Names,
    counts: Vec<u64>,
    hashes: Vec<u32>,
    labels: Names,
    label_counts: Vec<u64>,
    classes: Names,
    n_tokens: u64,
    /// Built by the first search.
    by_name: OnceLock<[Numbers; 2]>,
}

impl Dictionary {
    /// A dictionary of distinct words and distinct labels with the count of each.
    ///
    /// # Panics
    /// If the number of names differs from the number of counts.
    pub fn new(words: Names, counts: Vec<u64>, labels: Names, label_counts: Vec<u64>) -> Self {
        assert!(words.len() == counts.len() && labels.len() == label_counts.len(), "one count per name");
        let hashes = words.iter().map(hash).collect();
        let n_tokens = counts.iter().sum();
        let classes = Names::default();
        Self { words, counts, hashes, labels, label_counts, classes, n_tokens, by_name: OnceLock::new() }
    }

    /// Sets the order in which users see the labels, as of `--labels`. It does not affect numbers and weights.
    pub fn with_classes(self, classes: Names) -> Self {
        Self { classes, ..self }
    }

    /// Adds the words of another dictionary that this one does not have, with the count 0.
    pub fn add_words(&mut self, other: &Self) {
        let new: Vec<u32> =
            (0..other.n_words() as u32).filter(|&word| self.word(other.name(word)).is_none()).collect();
        for word in new {
            self.words.push(other.name(word));
            self.counts.push(0);
            self.hashes.push(other.hash_of(word));
        }
        self.by_name = OnceLock::new();
    }

    /// The number of a word.
    #[inline]
    pub fn word(&self, word: &[u8]) -> Option<u32> {
        if word.is_empty() { None } else { self.by_name()[0].find(word) }
    }

    /// The number of a label, given without prefix.
    pub fn label(&self, label: &[u8]) -> Option<u32> {
        if label.is_empty() { None } else { self.by_name()[1].find(label) }
    }

    /// The word with this number.
    #[inline]
    pub fn name(&self, word: u32) -> &[u8] {
        self.words.get(word)
    }

    /// Writes the known words of a text in place of `line`, each followed by a space.
    pub fn spell(&self, text: TextRef<'_>, line: &mut Vec<u8>) {
        line.clear();
        for word in text.words().flatten() {
            line.extend_from_slice(self.name(word));
            line.push(b' ');
        }
    }

    /// fastText's hash of the word with this number.
    #[inline]
    pub fn hash_of(&self, word: u32) -> u32 {
        self.hashes[word as usize]
    }

    /// fastText's hashes of all words.
    #[inline]
    pub fn hashes(&self) -> &[u32] {
        &self.hashes
    }

    /// Number of occurrences of a word.
    #[inline]
    pub fn count(&self, word: u32) -> u64 {
        self.counts[word as usize]
    }

    /// Number of words.
    #[inline]
    pub fn n_words(&self) -> usize {
        self.words.len()
    }

    /// The words in order of their numbers.
    pub fn words(&self) -> &Names {
        &self.words
    }

    /// The labels in order of their numbers, without prefix.
    pub fn labels(&self) -> &Names {
        &self.labels
    }

    /// The names of all labels in the order in which users see them, also of labels without a text. None: the order of
    /// their bytes.
    pub fn classes(&self) -> &Names {
        &self.classes
    }

    /// Number of texts with a label.
    pub fn label_count(&self, label: u32) -> u64 {
        self.label_counts[label as usize]
    }

    /// Number of texts with each label.
    pub fn label_counts(&self) -> Vec<u64> {
        self.label_counts.clone()
    }

    /// Number of occurrences of all words.
    pub fn n_tokens(&self) -> u64 {
        self.n_tokens
    }

    fn by_name(&self) -> &[Numbers; 2] {
        self.by_name.get_or_init(|| [Numbers::of(&self.words), Numbers::of(&self.labels)])
    }
}

impl PartialEq for Dictionary {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
            && self.counts == other.counts
            && self.labels == other.labels
            && self.label_counts == other.label_counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_hash_of_fasttext() {
        // FNV-1a of "foobar" as published by its authors; a byte above 127 is sign-extended.
        assert_eq!(hash(b"foobar"), 0xbf9c_f968);
        assert_eq!(hash(b"\xc3"), (2_166_136_261u32 ^ 0xffff_ffc3).wrapping_mul(16_777_619));
    }

    #[test]
    fn words_and_labels_are_found_by_name() {
        let names = |names: &[&'static str]| names.iter().map(|name| name.as_bytes()).collect::<Names>();
        let dictionary = Dictionary::new(names(&["the", "film"]), vec![5, 2], names(&["pos"]), vec![3]);
        assert_eq!(
            (dictionary.word(b"film"), dictionary.word(b"pos"), dictionary.word(b"")),
            (Some(1), None, None)
        );
        assert_eq!((dictionary.label(b"pos"), dictionary.label(b"the")), (Some(0), None));
        assert_eq!((dictionary.name(1), dictionary.count(1), dictionary.n_tokens()), (&b"film"[..], 2, 7));
        // The hash of an unknown word is no number.
        let text = TextRef { tokens: &[0, crate::UNKNOWN, 7, 1], labels: &[], key: None };
        let mut line = b"before".to_vec();
        dictionary.spell(text, &mut line);
        assert_eq!(line, b"the film ");
    }
}
