//! Models of `fasttext skipgram` and `fasttext cbow`, with character n-grams and output vectors, and the words of
//! `fasttext supervised`.

use std::path::Path;

use classifiers::files::bin::word_vectors::{self, WordVectors};
use classifiers::files::bin::{self, Args, BinLoss, Dense, Kind};
use classifiers::{Dictionary, Names};

use super::Content;
use crate::embedding::{CharacterNgrams, Embedding};
use crate::error::Result;

/// Reads a model and its output vectors. Those of hierarchical softmax and of a classifier do not belong to words, so they
/// are omitted.
pub(super) fn read(content: Content<'_>) -> Result<(Embedding, Option<Vec<f32>>)> {
    let path = content.path;
    let is_classifier = bin::is_supervised(&content.beginning);
    let (file, n_bytes) = content.into_file()?;
    if is_classifier {
        return Ok((of_classifier(bin::BinModel::parse(file, n_bytes, path)?), None));
    }
    let WordVectors { args, entries, input, output } = word_vectors::parse(file, n_bytes, path)?;
    let outputs = (args.loss != BinLoss::HierarchicalSoftmax).then(|| output.into_values());
    Ok((of_rows(&args, entries.dictionary(), input), outputs))
}

/// The vectors of the words of a classifier. Those of a quantised one are approximate, and it has none for other words.
fn of_classifier(model: bin::BinModel) -> Embedding {
    let (args, words) = (model.args().clone(), model.entries().dictionary().clone());
    match model.into_dense_input() {
        Ok(rows) => of_rows(&args, &words, rows),
        Err(model) => {
            let mut vectors = vec![0.0; words.n_words() * args.dim];
            let rows = vectors.chunks_exact_mut(args.dim);
            (0..).zip(rows).for_each(|(word, vector)| model.add_vector(word, vector));
            Embedding::new(words.words().clone(), Some(counts(&words)), args.dim, vectors)
        }
    }
}

/// The vectors of the words of an input matrix.
fn of_rows(args: &Args, words: &Dictionary, input: Dense) -> Embedding {
    let (names, counts) = (words.words().clone(), Some(counts(words)));
    let mut own = input.into_values();
    let rows = own.split_off(words.n_words() * args.dim);
    match args.longest {
        0 => Embedding::new(names, counts, args.dim, own),
        max => {
            let characters = CharacterNgrams { min: args.shortest, max, buckets: args.n_buckets, rows, own };
            Embedding::with_characters(names, counts, args.dim, characters)
        }
    }
}

fn counts(words: &Dictionary) -> Vec<u64> {
    (0..words.n_words() as u32).map(|word| words.count(word)).collect()
}

/// Writes a model of the kind skip-gram. Missing output vectors are 0.
pub(super) fn write(path: &Path, embedding: &Embedding, outputs: Option<&[f32]>) -> Result<()> {
    let Embedding { words, dim, vectors, characters, generator: _ } = embedding;
    let sizes = characters.as_ref().map_or([0; 3], |found| [found.min, found.max, found.buckets]);
    let args = Args {
        kind: Kind::SkipGram,
        loss: BinLoss::NegativeSampling,
        dim: *dim,
        shortest: sizes[0],
        longest: sizes[1],
        n_buckets: sizes[2],
        ..Args::default()
    };
    let copy = |values: &[f32], row: usize, to: &mut [f32]| to.copy_from_slice(&values[row * dim..][..*dim]);
    let input = |row: u32, to: &mut [f32]| {
        let row = row as usize;
        match (characters, row.checked_sub(words.n_words())) {
            (Some(characters), Some(bucket)) => copy(&characters.rows, bucket, to),
            (Some(characters), None) => copy(&characters.own, row, to),
            (None, _) => copy(vectors, row, to),
        }
    };
    let output = |row: u32, to: &mut [f32]| match outputs {
        Some(outputs) => copy(outputs, row as usize, to),
        None => to.fill(0.0),
    };
    Ok(word_vectors::write(path, &args, counted(words), input, output)?)
}

/// The words with counts of at least 1: gensim drops words whose count is 0.
fn counted(words: &Dictionary) -> Dictionary {
    let counts = (0..words.n_words() as u32).map(|word| words.count(word).max(1)).collect();
    Dictionary::new(words.words().clone(), counts, Names::default(), Vec::new())
}
