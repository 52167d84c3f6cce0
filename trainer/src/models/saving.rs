//! A model as a folder: what its own code adds to what every saved model has.

use std::path::Path;

use dataset::WordList;
use dataset::vocabulary::FIRST_WORD;
use serde::{Deserialize, Serialize};
use tch::Device;

use super::lstm::{Head, Lstm, LstmSettings};
use crate::error::{Error, Result};
use crate::loss::{Objective, Task};
use crate::train::Precision;
use batches::Rows;
use runs::saved::{self, Config, Existing, Saved, TrainedOn};

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
    /// What it was trained on, where it says so.
    pub trained_on: Option<TrainedOn>,
}

/// Saves a model that was trained on such rows of this dataset.
pub fn save_model(
    folder: &Path,
    model: &Trained,
    tokens_max: u32,
    rows: &Rows,
    trained_on: &TrainedOn,
) -> Result<()> {
    let preparation = &rows.settings().rows;
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
        dataset: rows.id_digest(),
        model: serde_json::to_value(&document).map_err(|error| Error::internal(&error))?,
    };
    let weights = |path: &Path| model.lstm.parameters().write(path);
    let words = &rows.vocabulary().words;
    Ok(saved::write_with(folder, &config, words, Existing::Refuse, weights, &[trained_on.file()])?)
}

/// Reads a saved classifier onto a device.
pub fn read_classifier(folder: &Path, device: Device) -> Result<Classifier> {
    let saved = saved::read(folder)?;
    let document = document(folder, &saved)?;
    let Task::Sentiment(objective) = document.task else {
        return Err(Error::NoClassifier { path: folder.to_owned() });
    };
    let lstm = Lstm::read(document.lstm, document.precision.kind(), device, &saved.weights)?;
    let Saved { config, vocabulary, trained_on, .. } = saved;
    Ok(Classifier { lstm, objective, vocabulary, config, trained_on })
}

/// Puts the weights of a saved model in the place of a model's: all of a classifier, which has the same; and of a model
/// of next words those of words and layers.
pub fn begin_with(saved: &Saved, folder: &Path, model: &mut Lstm) -> Result<()> {
    let Document { lstm, task, precision, .. } = document(folder, saved)?;
    let other = Lstm::read(lstm, precision.kind(), Device::Cpu, &saved.weights)?;
    let (other, own) = (other.parameters(), model.parameters_mut());
    if let Task::NextWord { .. } = task {
        return own.put_some(other, &saved.weights, Lstm::has_in_common);
    }
    match own.names().iter().find(|name| !other.names().contains(name)) {
        None => own.put_some(other, &saved.weights, |_| true),
        Some(missing) => Err(Error::Weights {
            path: saved.weights.clone(),
            found: "no such tensor".to_owned(),
            expected: missing.clone(),
        }),
    }
}

/// The configuration that only models know, if all of it fits together.
fn document(folder: &Path, saved: &Saved) -> Result<Document> {
    let path = folder.join("config.json");
    let no_model = |found: String, expected: String| Error::Weights {
        path: path.clone(),
        found,
        expected: format!("{expected}; copy or export the model again"),
    };
    let document: Document = serde_json::from_value(saved.config.model.clone())
        .map_err(|error| no_model(error.to_string(), "the sizes of a model".to_owned()))?;
    let ids = saved.vocabulary.len() as u64 + u64::from(FIRST_WORD);
    let refused =
        |(name, found, expected): (&str, String, String)| no_model(format!("{name} {found}"), expected);
    document.lstm.check(ids).map_err(refused)?;
    document.task.check().map_err(refused)?;
    let scoring = document.task.scoring(saved.config.preparation.positive_from);
    if scoring != saved.config.scoring {
        return Err(no_model(
            format!("scoring {:?}", saved.config.scoring),
            format!("{scoring:?}, as its task has it"),
        ));
    }
    let n_outputs = match document.lstm.head {
        Head::Classifier { outputs, .. } => Some(outputs),
        Head::NextWord => None,
    };
    let expected = scoring.map(|scoring| scoring.n_outputs() as i64);
    if n_outputs != expected {
        return Err(no_model(
            format!("outputs {n_outputs:?}"),
            format!("{expected:?}, as its task has them"),
        ));
    }
    Ok(document)
}
