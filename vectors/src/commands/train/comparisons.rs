//! Comparisons of the vectors during a training, with scores of people and with other vectors: lines of the metrics.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use classifiers::Names;
use embeddings::pip::{self, Pip};
use embeddings::similarity::{Pairs, Similarity};
use embeddings::skipgram::{Distribution, SkipGramSettings, SkipGramTraining, Vocabulary, Work};
use embeddings::{Embedding, files, lower_case, spelling};
use serde::Serialize;
use training::Result;

use super::input::held_out;
use super::progress::Progress;
use crate::arguments::Train;

/// The number of the held-out sentences among the works of a training, which are fewer.
const HELD_OUT: u64 = u64::MAX;

/// What the vectors are compared with.
pub(super) struct Comparisons {
    files: Vec<Pairs>,
    /// The vectors of `--reference`, and their name.
    reference: Option<(String, Embedding)>,
    /// The sentences of `--held-out`, when the vocabulary is known.
    held_out: Option<Work>,
    seed: u64,
    /// Number of tokens at the last comparison, and its results.
    last: Option<(u64, Compared)>,
}

/// Results of a comparison.
#[derive(Debug, Default, Serialize)]
pub(super) struct Compared {
    /// With each file of `--similarity`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    similarity: Vec<Similarity>,
    /// With `--reference`; `None` if no word of it has a vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pip: Option<Pip>,
    /// Of the sentences of `--held-out`.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out_loss: Option<f64>,
}

impl Comparisons {
    /// Reads the files, so that a damaged one is refused before the training.
    pub(super) fn read(arguments: &Train) -> Result<Self> {
        let pairs = arguments.similarity.iter().map(|file| Pairs::read(file));
        let read = |path: &PathBuf| -> Result<_> { Ok((path.display().to_string(), files::read(path)?)) };
        Ok(Self {
            files: pairs.collect::<embeddings::Result<_>>()?,
            reference: arguments.reference.as_ref().map(read).transpose()?,
            held_out: None,
            seed: arguments.seed,
            last: None,
        })
    }

    /// Whether there is something to compare with.
    pub(super) fn is_asked(&self) -> bool {
        !self.files.is_empty() || self.reference.is_some() || self.held_out.is_some()
    }

    /// Reads the sentences of `--held-out`.
    pub(super) fn read_held_out(
        &mut self,
        arguments: &Train,
        training: &SkipGramTraining,
        vocabulary: &Vocabulary,
    ) -> Result<()> {
        if arguments.held_out.is_empty() {
            return Ok(());
        }
        let SkipGramSettings { power, sample, .. } = *training.settings();
        self.held_out = Some(Work {
            sentences: Arc::new(held_out(arguments, vocabulary)?),
            distribution: Arc::new(Distribution::new(&vocabulary.counts(), 1, power, sample)),
            subwords: training.subwords(vocabulary).map(Arc::new),
            number: HELD_OUT,
        });
        Ok(())
    }

    /// Compares the vectors of a training by skip-gram, as [`Comparisons::compare`].
    pub(super) fn compare_tables(
        &mut self,
        training: &SkipGramTraining,
        vocabulary: &Vocabulary,
        progress: &mut Progress,
    ) {
        let of = |word: &[u8]| training.vector_of(vocabulary, word);
        if !self.compare(training.n_tokens(), vocabulary, of, progress) {
            return;
        }
        if let (Some(work), Some((_, last))) = (&self.held_out, &mut self.last) {
            last.held_out_loss = training.held_out_loss(work);
            last.held_out_loss.iter().for_each(|loss| progress.write_held_out(training.n_tokens(), *loss));
        }
    }

    /// Compares the vectors of a training by characters, as [`Comparisons::compare`].
    pub(super) fn compare_spelled(
        &mut self,
        training: &spelling::SpellingTraining,
        vocabulary: &Vocabulary,
        progress: &mut Progress,
    ) {
        let generator = training.generator();
        let of = |word: &[u8]| (!word.is_empty()).then(|| generator.vector(word));
        self.compare(training.n_tokens(), vocabulary, of, progress);
    }

    /// Compares the vectors of this moment, unless nothing was trained since the last time. `of` returns the vector of a
    /// word as it is. Returns whether they were compared.
    pub(super) fn compare(
        &mut self,
        n_tokens: u64,
        vocabulary: &Vocabulary,
        of: impl Fn(&[u8]) -> Option<Vec<f32>>,
        progress: &mut Progress,
    ) -> bool {
        if !self.is_asked() || self.last.as_ref().is_some_and(|(last, _)| *last == n_tokens) {
            return false;
        }
        let is_known = |word: &[u8]| vocabulary.find(word).is_some();
        // As in `vectors similarity`: as it is, then in lower case, then by character n-grams.
        let find = |word: &[u8]| {
            let lower = lower_case(word);
            let found = if is_known(word) || !is_known(&lower) { of(word) } else { of(&lower) };
            found.map(Cow::Owned)
        };
        let similarity: Vec<Similarity> = self.files.iter().map(|pairs| pairs.compare(find)).collect();
        similarity.iter().for_each(|similarity| progress.write_similarity(n_tokens, similarity));
        let pip = self.reference.as_ref().and_then(|(name, reference)| {
            let pip = self.distance(reference, |word| is_known(word).then(|| of(word)).flatten());
            progress.write_pip(n_tokens, name, pip.as_ref());
            pip
        });
        self.last = Some((n_tokens, Compared { similarity, pip, held_out_loss: None }));
        true
    }

    /// The PIP loss against the reference, over the words that both have.
    fn distance(&self, reference: &Embedding, of: impl Fn(&[u8]) -> Option<Vec<f32>>) -> Option<Pip> {
        let (mut words, mut vectors) = (Names::default(), Vec::new());
        for word in reference.words.words().iter() {
            if let Some(vector) = of(word) {
                words.push(word);
                vectors.extend(vector);
            }
        }
        let dim = vectors.len().checked_div(words.len())?;
        pip::between(&Embedding::new(words, None, dim, vectors), reference, self.seed).ok()
    }

    /// The last results.
    pub(super) fn into_last(self) -> Compared {
        self.last.map_or_else(Compared::default, |(_, found)| found)
    }
}
