//! Converts a linear classifier to its folder and back.
//!
//! Arrays of the folder:
//!
//! ```text
//! met          u64 [2^bits / 64]      hashed n-grams: bit `hash % 64` of element `hash / 64`, whether a hash has a row
//! ngrams       u64 [rows, 2]          exact n-grams: the key of each row, its low half first
//! weights      f32 [rows, classifiers]
//! biases       f32 [1, classifiers]
//! frequencies  f32 [rows, 1]          only with normalised TF-IDF
//! ```
//!
//! Rows of hashed n-grams are in increasing order of their hashes. The words of exact n-grams are in `words.txt`.

use serde::{Deserialize, Serialize};

use super::folder::{self, Folder, Written};
use super::tensors::{ElementType, Tensor, Tensors};
use crate::Words;
use crate::linear::{LinearModel, LinearSettings, Named, NgramTable, Outputs, RowKeys, Sigmoid, StoredModel};
use durable::output::WriteNumbers;
use durable::{NewFolder, Result};

/// The settings in `config.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    words: Words,
    training: LinearSettings,
    outputs: Outputs,
    rows: u64,
    sigmoids: Vec<Sigmoid>,
    has_frequencies: bool,
    strongest: Vec<Named>,
}

/// Writes the files of a model into the folder of a model that it is a part of.
pub(super) fn add(folder: &mut NewFolder, model: &LinearModel) -> Result<()> {
    folder::add(folder, folder::OF_A_PART, written(model))
}

/// What is written of a model.
pub(super) fn written(model: &LinearModel) -> Written<'_> {
    let stored = model.stored();
    let config = Config {
        words: stored.words,
        training: stored.settings,
        outputs: stored.outputs,
        rows: model.n_rows() as u64,
        sigmoids: stored.sigmoids.clone(),
        has_frequencies: !stored.frequencies.is_empty(),
        strongest: stored.named.clone(),
    };
    let (name, shape, integers) = match &stored.rows {
        RowKeys::Hashed { bits, hashes } => {
            let mut met = vec![0; (1usize << bits) / 64];
            hashes.iter().for_each(|&hash| met[hash as usize / 64] |= 1 << (hash % 64));
            ("met", vec![met.len() as u64], met)
        }
        RowKeys::Exact(keys) => {
            let halves = keys.iter().flat_map(|&key| [key as u64, (key >> 64) as u64]);
            ("ngrams", vec![keys.len() as u64, 2], halves.collect())
        }
    };
    let (n_rows, n) = (model.n_rows() as u64, stored.biases.len() as u64);
    let floats = |name, shape: [u64; 2], floats| Tensor {
        name,
        kind: ElementType::F32,
        shape: shape.to_vec(),
        write: Box::new(move |out| out.floats(floats)),
    };
    let mut tensors = vec![
        Tensor { name, kind: ElementType::U64, shape, write: Box::new(move |out| out.u64s(&integers)) },
        floats("weights", [n_rows, n], &stored.weights),
        floats("biases", [1, n], &stored.biases),
    ];
    if config.has_frequencies {
        tensors.push(floats("frequencies", [n_rows, 1], &stored.frequencies));
    }
    let settings = serde_json::to_value(&config).expect("plain values are JSON");
    let (kind, dictionary, choice) = (folder::ModelKind::Linear, model.dictionary(), stored.choice);
    Written { kind, settings, dictionary, choice, weights: tensors }
}

/// Reads the weights of a folder.
pub(super) fn read(folder: &Folder) -> Result<LinearModel> {
    let config: Config = folder.settings()?;
    if let Err(error) = config.training.check() {
        return Err(folder.refused("settings.training", error, "valid settings"));
    }
    let (labels, n_rows) = (folder.dictionary.labels().clone(), config.rows);
    let n = config.outputs.n_classifiers(labels.len()) as u64;
    let (rows, [weights, biases, frequencies]) = folder.weights(|tensors| {
        let rows = match config.training.table {
            NgramTable::Hashed { bits } => hashed(tensors, bits, n_rows)?,
            NgramTable::Exact => {
                let halves = tensors.u64s("ngrams", &[n_rows, 2])?;
                let keys = halves.as_chunks().0.iter();
                RowKeys::Exact(keys.map(|&[low, high]| u128::from(high) << 64 | u128::from(low)).collect())
            }
        };
        let floats = |name: &str, shape: [u64; 2]| {
            let mut all = Vec::new();
            tensors.rows(name, shape, |_, row| all.extend_from_slice(row)).map(|()| all)
        };
        let frequencies =
            if config.has_frequencies { floats("frequencies", [n_rows, 1])? } else { Vec::new() };
        Ok((rows, [floats("weights", [n_rows, n])?, floats("biases", [1, n])?, frequencies]))
    })?;
    let stored = StoredModel {
        settings: config.training,
        words: config.words,
        label_counts: folder.dictionary.label_counts(),
        labels,
        classes: folder.dictionary.classes().clone(),
        outputs: config.outputs,
        rows,
        vocabulary: folder.dictionary.words().clone(),
        frequencies,
        weights,
        biases,
        sigmoids: config.sigmoids,
        choice: folder.choice,
        named: config.strongest,
    };
    LinearModel::of(stored).ok_or_else(|| {
        folder.refused("settings", "values that contradict each other", "those of a trained model")
    })
}

fn hashed(tensors: &Tensors, bits: u32, n_rows: u64) -> Result<RowKeys> {
    let met = tensors.u64s("met", &[(1 << bits) / 64])?;
    let n_met: u64 = met.iter().map(|bits| u64::from(bits.count_ones())).sum();
    if n_met != n_rows {
        return Err(tensors.refused("met", format!("{n_met} rows"), format!("{n_rows} rows")));
    }
    let hashes = (0..).zip(&met).flat_map(|(index, &bits): (u32, _)| {
        (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| index * 64 + bit)
    });
    Ok(RowKeys::Hashed { bits, hashes: hashes.collect() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files::{self, ModelRef};
    use crate::linear::{MarginLoss, Weighting, train};
    use crate::{Builders, Reading, Words};

    fn model(settings: LinearSettings, labels: &[&str]) -> LinearModel {
        let builders = Builders::new(Reading { words: Words::Punctuation, ..Reading::default() });
        let mut builder = builders.builder();
        for n in 0..60 {
            let line = format!("the film {} was {} good {}", n % 7, ["not", "very"][n % 2], n % 3);
            builder.add_line(line.as_bytes(), &[labels[n % labels.len()].as_bytes()]).unwrap();
        }
        train(&builders.merge(vec![builder]).unwrap(), Words::Punctuation, &settings, |_| ()).unwrap()
    }

    fn all_settings() -> [LinearSettings; 3] {
        let default = LinearSettings { table: NgramTable::Hashed { bits: 16 }, ..LinearSettings::default() };
        let weighting = Weighting::TfIdf;
        [
            default,
            LinearSettings { table: NgramTable::Exact, loss: MarginLoss::SquaredHinge, ..default },
            LinearSettings { weighting, is_normalized: true, ..default },
        ]
    }

    #[test]
    fn a_written_linear_model_is_read_back_bit_for_bit() {
        for settings in all_settings() {
            for labels in [&["pos", "neg"][..], &["a", "b", "c"]] {
                let model = model(settings, labels);
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("model");
                files::write(&path, ModelRef::Linear(&model)).unwrap();
                let found = files::read(&path).unwrap();
                let crate::Model::Linear(linear) = &found else { panic!("another kind") };
                assert_eq!(linear.stored(), model.stored());
                let (mut answers, mut expected) = (Vec::new(), Vec::new());
                for line in ["the film was not good", ""] {
                    model.probabilities(line.as_bytes(), &mut Default::default(), &mut expected);
                    linear.probabilities(line.as_bytes(), &mut Default::default(), &mut answers);
                    assert_eq!(answers, expected);
                }
            }
        }
    }

    #[test]
    fn a_linear_model_whose_arrays_contradict_its_settings_is_refused() {
        let model = model(all_settings()[0], &["pos", "neg"]);
        let refused = |change: &dyn Fn(&mut StoredModel)| {
            let mut altered = model.clone();
            altered.change(change);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("model");
            files::write(&path, ModelRef::Linear(&altered)).unwrap();
            let error = files::read(&path).expect_err("the folder is refused").to_string();
            assert!(fs::exists(&path).unwrap());
            error
        };
        assert!(refused(&|stored| stored.outputs = Outputs::OneOf).contains("weights"));
        assert!(refused(&|stored| stored.settings.table = NgramTable::Exact).contains("ngrams"));
        assert!(refused(&|stored| stored.settings.epochs = 0).contains("epochs: 0; expected at least 1"));
        assert!(refused(&|stored| stored.sigmoids.clear()).contains("contradict"));
        assert!(refused(&|stored| stored.weights[0] = f32::NAN).contains("value 0 of weights"));
    }
}
