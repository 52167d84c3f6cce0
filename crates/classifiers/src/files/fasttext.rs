//! Converts a mean of embeddings with a linear layer to its folder, to a model of the fastText program, and back.
//!
//! Arrays of the folder:
//!
//! ```text
//! met     u64 [rows / 64]         bit `row % 64` of element `row / 64`: whether a row has weights
//! input   f32 [rows met, dim]     the rows with weights in increasing order
//! output  f32 [labels, dim]
//! ```

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bin::{self, Args, Dense, Entries, Matrix};
use super::folder::{self, Folder, Written};
use super::tensors::{ElementType, Tensor};
use super::{N_SUBWORDS_MAX, n_subwords};
use crate::fasttext::{Counted, FastTextModel, Loss, RowSet};
use crate::{FeatureRows, Features, Words};
use durable::output::WriteNumbers;
use durable::{Error, Result};
use kernels::simd::Table;

/// Longer rows do not occur: 4 MiB per word.
const DIM_MAX: usize = 1 << 20;
/// The same limit as in a file of the program.
const NGRAMS_MAX: u32 = 255;

/// The settings in `config.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSettings {
    words: Words,
    ngrams: u32,
    buckets: u32,
    characters_min: u32,
    characters_max: u32,
    hashes_unknown: bool,
    dim: usize,
    loss: Loss,
    /// Whether rows without weights count in the mean.
    counts_all: bool,
}

/// What is written of a model.
pub(super) fn written(model: &FastTextModel) -> Written<'_> {
    let Features { ngrams, buckets, characters_min, characters_max, hashes_unknown } = model.features();
    let settings = StoredSettings {
        words: model.words(),
        ngrams,
        buckets,
        characters_min,
        characters_max,
        hashes_unknown,
        dim: model.dim(),
        loss: model.loss(),
        counts_all: model.counted() == Counted::All,
    };
    let met = model.met();
    let tensors = vec![
        Tensor {
            name: "met",
            kind: ElementType::U64,
            shape: vec![met.bits().len() as u64],
            write: Box::new(move |out| met.bits().try_for_each(|bits| out.u64s(&[bits]))),
        },
        table("input", model.input()),
        table("output", model.output()),
    ];
    let settings = serde_json::to_value(&settings).expect("plain values are JSON");
    let (kind, dictionary, choice) = (folder::ModelKind::FastText, model.dictionary(), model.choice());
    Written { kind, settings, dictionary, choice, weights: tensors }
}

/// The weights of a table.
fn table<'a>(name: &'static str, table: &'a Table) -> Tensor<'a> {
    let shape = vec![table.n_rows() as u64, table.dim() as u64];
    let write = |out: &mut dyn io::Write| {
        let mut row = vec![0.0; table.dim()];
        (0..table.n_rows() as u32).try_for_each(|at| {
            table.read(at, 0, &mut row);
            out.floats(&row)
        })
    };
    Tensor { name, kind: ElementType::F32, shape, write: Box::new(write) }
}

/// Reads the weights of a folder.
pub(super) fn read(folder: Folder) -> Result<FastTextModel> {
    let settings: StoredSettings = folder.settings()?;
    let features = features(&folder, &settings)?;
    let dictionary = &folder.dictionary;
    let n_rows = features.n_rows(dictionary.n_words());
    let (dim, n_labels) = (settings.dim as u64, dictionary.labels().len() as u64);
    let (met, tables) = folder.weights(|tensors| {
        let bits = tensors.u64s("met", &[n_rows.div_ceil(64)])?;
        let spare = (n_rows.next_multiple_of(64) - n_rows) as u32;
        if bits.last().is_some_and(|last| last.leading_zeros() < spare) {
            return Err(tensors.refused("met", "a row behind the last", format!("{n_rows} rows")));
        }
        let met = RowSet::of_bits(&bits, n_rows as usize);
        let table = |name: &'static str, n_rows: u64| {
            let made = Table::new(n_rows as usize, settings.dim, 1);
            let table = made.map_err(|error| tensors.refused(name, error, "a table that fits in memory"))?;
            tensors.rows(name, [n_rows, dim], |row, values| table.write(row as u32, 0, values))?;
            Ok(Arc::new(table))
        };
        let tables = [table("input", met.len() as u64)?, table("output", n_labels)?];
        Ok((met, tables))
    })?;
    let counted = if settings.counts_all { Counted::All } else { Counted::Met };
    let rows = FeatureRows::new(features, dictionary);
    let mut model = FastTextModel::with_weights(
        settings.words,
        settings.loss,
        folder.dictionary,
        rows,
        tables,
        met,
        counted,
    );
    model.choose(folder.choice);
    Ok(model)
}

fn features(folder: &Folder, settings: &StoredSettings) -> Result<Features> {
    let &StoredSettings { ngrams, buckets, characters_min, characters_max, hashes_unknown, dim, .. } =
        settings;
    let features = Features { ngrams, buckets, characters_min, characters_max, hashes_unknown };
    if !(1..=DIM_MAX).contains(&dim) {
        return Err(folder.refused("dim", dim, format!("1 to {DIM_MAX}")));
    }
    for (name, found) in
        [("ngrams", ngrams), ("characters_min", characters_min), ("characters_max", characters_max)]
    {
        if found > NGRAMS_MAX {
            return Err(folder.refused(name, found, format!("0 to {NGRAMS_MAX}")));
        }
    }
    let n_rows = features.n_rows(folder.dictionary.n_words());
    if n_rows >= u64::from(u32::MAX) {
        return Err(folder.refused("buckets", buckets, format!("at most {} rows", u32::MAX - 1)));
    }
    if folder.dictionary.labels().is_empty() {
        return Err(folder.refused("labels", "empty", "one label or more"));
    }
    match n_subwords(features, &folder.dictionary) {
        n if n > N_SUBWORDS_MAX => {
            let expected = format!("at most {N_SUBWORDS_MAX} n-grams");
            Err(folder.refused("characters_max", format!("{characters_max}, {n} n-grams"), expected))
        }
        _ => Ok(features),
    }
}

/// Writes the model as a file `.bin`, from which the program gives the same answers. The file must not exist.
///
/// # Errors
/// If the program cannot split lines or number words as the model does.
pub fn write_bin(path: &Path, model: &FastTextModel) -> Result<()> {
    let (args, entries) = parts(path, model)?;
    bin::write_rows(
        path,
        &args,
        &entries,
        [entries.dictionary().n_words() + args.n_buckets, entries.n_labels()],
        |row, values| input_row(model, row, values),
        |row, values| model.output().read(row, 0, values),
    )
}

/// The model as one of the program, for quantisation and word vectors. `path` is the file that is to be written, for
/// messages.
///
/// # Errors
/// As [`write_bin`].
pub fn to_program(path: &Path, model: &FastTextModel) -> Result<bin::BinModel> {
    let (args, entries) = parts(path, model)?;
    let matrix = |n_rows: usize, read: &dyn Fn(u32, &mut [f32])| {
        let mut values = vec![0.0; n_rows * args.dim];
        values.chunks_exact_mut(args.dim).zip(0..).for_each(|(values, row)| read(row, values));
        Matrix::Dense(Dense::new(args.dim, values).expect("whole rows"))
    };
    let n_rows = entries.dictionary().n_words() + args.n_buckets;
    let input = matrix(n_rows, &|row, values| input_row(model, row, values));
    let output = matrix(entries.n_labels(), &|row, values| model.output().read(row, 0, values));
    bin::BinModel::new(args, entries, input, output).map_err(|mismatch| Error::Unstorable {
        path: path.to_owned(),
        field: mismatch.field,
        found: mismatch.found.to_string(),
        allowed: mismatch.expected.to_string(),
        remedy: "train a smaller model",
    })
}

fn input_row(model: &FastTextModel, row: u32, values: &mut [f32]) {
    match model.met().position(row) {
        Some(at) => model.input().read(at, 0, values),
        None => values.fill(0.0),
    }
}

/// Settings and dictionary of the model in the format of the program.
fn parts(path: &Path, model: &FastTextModel) -> Result<(Args, Entries)> {
    let refused = |field, found: String, allowed: &str, remedy| {
        Err(Error::Unstorable { path: path.to_owned(), field, found, allowed: allowed.to_owned(), remedy })
    };
    if model.words() != Words::Spaces {
        let found = format!("by {:?}", model.words()).to_lowercase();
        return refused("the split of lines", found, "by spaces", "train with --words spaces");
    }
    let features = model.features();
    if features.hashes_unknown {
        let remedy = "train with a vocabulary of all words";
        return refused("the row of an unknown word", "its hash".to_owned(), "none", remedy);
    }
    if model.counted() != Counted::All {
        let remedy = "use the file from which the model was read";
        return refused("the mean", "of the rows with weights".to_owned(), "all rows", remedy);
    }
    let longest = features.ngrams.max(features.characters_max);
    if longest > NGRAMS_MAX {
        return refused(
            "the longest n-gram",
            longest.to_string(),
            "at most 255",
            "train with shorter n-grams",
        );
    }
    let has_ngrams = features.buckets > 0 && (features.ngrams > 1 || features.characters_max > 0);
    let of_ngrams = |size: u32| if has_ngrams { size as usize } else { 0 };
    let args = Args {
        dim: model.dim(),
        word_ngrams: of_ngrams(features.ngrams).max(1),
        loss: match model.loss() {
            Loss::Softmax => bin::BinLoss::Softmax,
            Loss::HierarchicalSoftmax => bin::BinLoss::HierarchicalSoftmax,
            Loss::Bce => bin::BinLoss::OneVersusAll,
        },
        n_buckets: of_ngrams(features.buckets),
        shortest: of_ngrams(features.characters_min),
        longest: of_ngrams(features.characters_max),
        ..Args::default()
    };
    Ok((args, Entries::from(model.dictionary().clone())))
}
