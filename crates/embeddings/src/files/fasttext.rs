//! Models of `fasttext skipgram` and `fasttext cbow`, with character n-grams and output vectors.

use std::path::Path;

use ngrams::files::bin::word_vectors::{self, WordVectors};
use ngrams::files::bin::{Args, Kind, Loss};
use ngrams::{Dictionary, Names};

use crate::embedding::{CharacterNgrams, Embedding};
use crate::error::Result;

/// Reads a model and its output vectors. Those of hierarchical softmax do not belong to words, so they are omitted.
pub(super) fn read(path: &Path) -> Result<(Embedding, Option<Vec<f32>>)> {
    let WordVectors { args, entries, input, output } = word_vectors::read(path)?;
    let words = entries.dictionary();
    let counts: Vec<u64> = (0..words.n_words() as u32).map(|word| words.count(word)).collect();
    let names = words.words().clone();
    let mut own = input.into_values();
    let rows = own.split_off(words.n_words() * args.dim);
    let embedding = match args.longest {
        0 => Embedding::new(names, Some(counts), args.dim, own),
        max => {
            let characters = CharacterNgrams { min: args.shortest, max, buckets: args.n_buckets, rows, own };
            Embedding::with_characters(names, Some(counts), args.dim, characters)
        }
    };
    let outputs = (args.loss != Loss::HierarchicalSoftmax).then(|| output.into_values());
    Ok((embedding, outputs))
}

/// Writes a model of the kind skip-gram. Missing output vectors are 0.
pub(super) fn write(path: &Path, embedding: &Embedding, outputs: Option<&[f32]>) -> Result<()> {
    let Embedding { words, dim, vectors, characters, generator: _ } = embedding;
    let sizes = characters.as_ref().map_or([0; 3], |found| [found.min, found.max, found.buckets]);
    let args = Args {
        kind: Kind::SkipGram,
        loss: Loss::NegativeSampling,
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
