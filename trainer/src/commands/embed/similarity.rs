//! Similarities of words during a training: each file at a moment to a line of the metrics.

use std::borrow::Cow;
use std::path::PathBuf;

use embeddings::lower_case;
use embeddings::similarity::{Pairs, Similarity};
use skipgram::Vocabulary;

use super::progress::Progress;
use crate::error::Result;

/// The files of `--similarity`, and their last results.
pub(super) struct Similarities {
    files: Vec<Pairs>,
    /// Number of tokens at the last comparison, and its results.
    last: Option<(u64, Vec<Similarity>)>,
}

impl Similarities {
    /// Reads the files, so that a damaged one is refused before the training.
    pub(super) fn read(files: &[PathBuf]) -> Result<Self> {
        let files = files.iter().map(|file| Pairs::read(file)).collect::<embeddings::Result<_>>()?;
        Ok(Self { files, last: None })
    }

    /// Compares the vectors of this moment with each file, unless nothing was trained since the last time.
    /// `of` returns the vector of a word as it is.
    pub(super) fn compare(
        &mut self,
        n_tokens: u64,
        vocabulary: &Vocabulary,
        of: impl Fn(&[u8]) -> Option<Vec<f32>>,
        progress: &mut Progress,
    ) {
        if self.files.is_empty() || self.last.as_ref().is_some_and(|(last, _)| *last == n_tokens) {
            return;
        }
        let is_known = |word: &[u8]| vocabulary.find(word).is_some();
        // As in `trainer vectors similarity`: as it is, then in lower case, then by character n-grams.
        let find = |word: &[u8]| {
            let lower = lower_case(word);
            let found = if is_known(word) || !is_known(&lower) { of(word) } else { of(&lower) };
            found.map(Cow::Owned)
        };
        let found: Vec<Similarity> = self.files.iter().map(|pairs| pairs.compare(find)).collect();
        found.iter().for_each(|similarity| progress.write_similarity(n_tokens, similarity));
        self.last = Some((n_tokens, found));
    }

    /// The last results.
    pub(super) fn into_last(self) -> Vec<Similarity> {
        self.last.map_or_else(Vec::new, |(_, found)| found)
    }
}
