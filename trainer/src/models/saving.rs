//! A model as a folder: what its own code adds to what every saved model has.

use std::path::Path;

use corpus::digest::Digest;
use corpus::settings::Settings;
use dataset::WordList;
use serde::{Deserialize, Serialize};
use tch::Device;

use super::lstm::{Lstm, LstmSettings};
use crate::error::{Error, Result};
use crate::loss::{Objective, Task};
use crate::saved::{self, Config, Existing, Saved};
use crate::train::Precision;

/// What stands under `model` in the folder's configuration.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    kind: Kind,
    lstm: LstmSettings,
    task: Task,
    precision: Precision,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Lstm,
}

/// A model, and what of its training others need to know.
#[derive(Debug)]
pub struct Trained {
    /// The model.
    pub lstm: Lstm,
    /// What it was trained for.
    pub task: Task,
    /// How its numbers were held.
    pub precision: Precision,
}

/// A classifier that was saved.
#[derive(Debug)]
pub struct Classifier {
    /// The model.
    pub lstm: Lstm,
    /// What it was trained for.
    pub objective: Objective,
    /// Its words.
    pub vocabulary: WordList,
    /// What it needs to know beside its weights.
    pub config: Config,
}

/// Saves a model that was trained on the dataset of this digest, whose rows were made so.
pub fn save_model(
    folder: &Path,
    model: &Trained,
    preparation: &Settings,
    tokens_max: u32,
    dataset: Digest,
    vocabulary: &WordList,
    existing: Existing,
) -> Result<()> {
    let document = Document {
        kind: Kind::Lstm,
        lstm: model.lstm.settings().clone(),
        task: model.task,
        precision: model.precision,
    };
    let config = Config {
        preparation: preparation.clone(),
        tokens_max,
        scoring: model.task.scoring(preparation.positive_from),
        dataset,
        model: serde_json::to_value(&document).map_err(|error| Error::internal(&error))?,
    };
    let weights = |path: &Path| model.lstm.parameters().write(path);
    Ok(saved::write(folder, &config, vocabulary, existing, weights)?)
}

/// Reads a saved classifier onto a device.
pub fn read_classifier(folder: &Path, device: Device) -> Result<Classifier> {
    let saved = saved::read(folder)?;
    let document = document(folder, &saved)?;
    let Task::Sentiment(objective) = document.task else {
        return Err(Error::NoClassifier { path: folder.to_owned() });
    };
    let mut lstm = Lstm::new(document.lstm, 0, document.precision.kind(), device);
    lstm.parameters_mut().read(&saved.weights)?;
    Ok(Classifier { lstm, objective, vocabulary: saved.vocabulary, config: saved.config })
}

/// Puts the weights of a saved model in the place of a model's: all of a classifier, which has the same; and of a model
/// of next words those of words and layers.
pub fn begin_with(saved: &Saved, folder: &Path, model: &mut Lstm) -> Result<()> {
    match document(folder, saved)?.task {
        Task::Sentiment(_) => model.parameters_mut().read(&saved.weights),
        Task::NextWord { .. } => model.parameters_mut().read_some(&saved.weights, Lstm::has_in_common),
    }
}

fn document(folder: &Path, saved: &Saved) -> Result<Document> {
    serde_json::from_value(saved.config.model.clone())
        .map_err(|error| Error::Unreadable { path: folder.join("config.json"), found: error.to_string() })
}
