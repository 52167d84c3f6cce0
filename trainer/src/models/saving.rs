//! A model as a folder: what its own code adds to what every saved model has.

use std::path::Path;

use corpus::digest::Digest;
use corpus::settings::Settings;
use dataset::WordList;
use serde::{Deserialize, Serialize};
use tch::Device;

use super::lstm::{Lstm, LstmSettings};
use crate::error::{Error, Result};
use crate::loss::Objective;
use crate::saved::{self, Config, Existing};
use crate::train::Precision;

/// What stands under `model` in the folder's configuration.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    kind: Kind,
    lstm: LstmSettings,
    objective: Objective,
    precision: Precision,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Lstm,
}

/// A trained model.
#[derive(Debug)]
pub struct SavedModel {
    /// The model.
    pub lstm: Lstm,
    /// What it was trained for.
    pub objective: Objective,
    /// How its numbers were held.
    pub precision: Precision,
}

/// Saves a model that was trained on the dataset of this digest, whose rows were made so.
pub fn save_model(
    folder: &Path,
    model: &SavedModel,
    preparation: &Settings,
    tokens_max: u32,
    dataset: Digest,
    vocabulary: &WordList,
    existing: Existing,
) -> Result<()> {
    let document = Document {
        kind: Kind::Lstm,
        lstm: model.lstm.settings().clone(),
        objective: model.objective,
        precision: model.precision,
    };
    let config = Config {
        preparation: preparation.clone(),
        tokens_max,
        scoring: model.objective.scoring(preparation.positive_from),
        dataset,
        model: serde_json::to_value(&document).map_err(|error| Error::internal(&error))?,
    };
    let weights = |path: &Path| model.lstm.parameters().write(path);
    Ok(saved::write(folder, &config, vocabulary, existing, weights)?)
}

/// Reads a saved model onto a device, with its words and what it needs to know beside its weights.
pub fn read_model(folder: &Path, device: Device) -> Result<(SavedModel, WordList, Config)> {
    let saved = saved::read(folder)?;
    let document: Document = serde_json::from_value(saved.config.model.clone())
        .map_err(|error| Error::Unreadable { path: folder.join("config.json"), found: error.to_string() })?;
    let mut lstm = Lstm::new(document.lstm, 0, document.precision.kind(), device);
    lstm.parameters_mut().read(&saved.weights)?;
    let model = SavedModel { lstm, objective: document.objective, precision: document.precision };
    Ok((model, saved.vocabulary, saved.config))
}
