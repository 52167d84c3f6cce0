//! Saves and reads a model: adds the settings of its family to the saved folder.

use std::path::Path;

use batches::Rows;
use corpus::sample::Sample;
use corpus::settings::Settings;
use dataset::WordList;
use dataset::vocabulary::FIRST_WORD;
use program::exit::{Exit, Failed};
use runs::recipe::{
    ClassifierSettings, Family, InvalidSetting, LstmSettings, NextWordSettings, Objective, Pool, Precision,
    Recipe,
};
use runs::saved::{self, CONFIG, Config, Saved, TrainedOn};
use scoring::Scoring;
use serde::{Deserialize, Serialize};
use tch::Device;

use super::classifier::Choice;
use super::share::kind_of;
use super::{Classifier, Lstm, Model};
use crate::error::{Error, Result};

/// The value of `model` in `config.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    kind: DocumentKind,
    lstm: Sizes,
    task: Task,
    precision: Precision,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DocumentKind {
    Lstm,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sizes {
    ids: i64,
    embedding: i64,
    hidden: i64,
    layers: usize,
    bidirectional: bool,
    head: Head,
}

/// The layers after the LSTM.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Head {
    Classifier { pool: Pool, linear: i64, outputs: i64 },
    NextWord,
}

/// The purpose of the training.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Task {
    Sentiment(Objective),
    NextWord { candidates: u32 },
}

impl Document {
    fn of(lstm: &LstmSettings, family: Family, precision: Precision) -> Self {
        let (head, task) = match family {
            Family::Classifier(ClassifierSettings { objective, pool, linear }) => {
                let outputs = objective.n_outputs() as i64;
                (Head::Classifier { pool, linear, outputs }, Task::Sentiment(objective))
            }
            Family::NextWord(NextWordSettings { candidates }) => {
                (Head::NextWord, Task::NextWord { candidates })
            }
        };
        let LstmSettings { ids, embedding, hidden, layers, bidirectional } = *lstm;
        let lstm = Sizes { ids, embedding, hidden, layers, bidirectional, head };
        Self { kind: DocumentKind::Lstm, lstm, task, precision }
    }

    /// The sizes and the family. If head and task belong to different families, returns what was found and expected.
    fn settings(&self) -> std::result::Result<(LstmSettings, Family), (String, String)> {
        let Sizes { ids, embedding, hidden, layers, bidirectional, ref head } = self.lstm;
        let family = match (head, &self.task) {
            (&Head::Classifier { pool, linear, outputs }, &Task::Sentiment(objective)) => {
                let expected = objective.n_outputs() as i64;
                if outputs != expected {
                    return Err((format!("outputs {outputs}"), format!("{expected} for its task")));
                }
                Family::Classifier(ClassifierSettings { objective, pool, linear })
            }
            (Head::NextWord, &Task::NextWord { candidates }) => {
                Family::NextWord(NextWordSettings { candidates })
            }
            (head, task) => {
                return Err((format!("head {head:?}"), format!("the head of its task, {task:?}")));
            }
        };
        Ok((LstmSettings { ids, embedding, hidden, layers, bidirectional }, family))
    }
}

/// A saved classifier.
#[derive(Debug)]
pub struct SavedClassifier {
    /// The model.
    pub model: Classifier,
    /// Its words.
    pub vocabulary: WordList,
    /// Its settings without the weights.
    pub config: Config,
    /// The meaning of a row's outputs.
    pub scoring: Scoring,
    /// The rows that it was trained on, if the folder lists them.
    pub trained_on: Option<TrainedOn>,
}

/// Saves a model trained with this recipe on rows of this dataset.
pub fn save_model(
    folder: &Path,
    model: &Model,
    recipe: &Recipe,
    rows: &Rows,
    choice: Choice,
    trained_on: &TrainedOn,
) -> Result<()> {
    // The sample selects rows, and prediction has none to select.
    let preparation = Settings { sample: Sample::ALL, ..rows.settings().rows.clone() };
    let document = Document::of(model.lstm().settings(), model.family(), recipe.precision);
    let config = Config {
        scoring: model.family().scoring(&preparation.labels),
        preparation,
        tokens_max: recipe.tokens_max,
        calibration: choice.calibration,
        threshold: choice.threshold,
        dataset: rows.id_digest(),
        model: serde_json::to_value(&document).map_err(|error| Error::internal(&error))?,
    };
    let weights = |path: &Path| model.parameters().write(path);
    let words = &rows.vocabulary().words;
    Ok(saved::write_with(saved::begin(folder)?, &config, words, weights, &[trained_on.file()])?)
}

/// Reads a saved classifier onto a device.
pub fn read_classifier(folder: &Path, device: Device) -> Result<SavedClassifier> {
    let saved = saved::read(folder)?;
    let (lstm, family, precision) = settings(folder, &saved)?;
    let (Family::Classifier(settings), Some(scoring)) = (family, saved.config.scoring) else {
        let folder = folder.display();
        let remedy = format!("train one with `trainer fit DATASET --init-from {folder}`");
        let message = format!("{folder}: a next-word model, expected a classifier; {remedy}");
        return Err(Failed::new(Exit::Settings, message).into());
    };
    let model = Classifier::read(&lstm, settings, (kind_of(precision), device), &saved.weights)?;
    let Saved { config, vocabulary, trained_on, .. } = saved;
    Ok(SavedClassifier { model, vocabulary, config, scoring, trained_on })
}

/// Initializes a model with the weights of a saved model. From a classifier, it copies all weights, which must have
/// the same names and shapes. From a next-word model, it copies the embedding and the LSTM layers.
pub fn begin_with(saved: &Saved, folder: &Path, model: &mut Model) -> Result<()> {
    let (lstm, family, precision) = settings(folder, saved)?;
    let other = Model::read(&lstm, family, (kind_of(precision), Device::Cpu), &saved.weights)?;
    check_sizes(folder, &other, model)?;
    let is_of_words = matches!(other, Model::NextWord(_));
    let (other, own) = (other.parameters(), model.parameters_mut());
    if is_of_words {
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

/// Refuses initial weights whose sizes differ from the model's. The error contains the flag that sets the
/// size.
fn check_sizes(folder: &Path, saved: &Model, model: &Model) -> Result<()> {
    let differs = |setting: &'static str, found: String, expected: String| {
        let expected = format!("{expected} as in {} (--init-from)", folder.display());
        Err(training::Error::setting(setting, found, expected).into())
    };
    let (ours, theirs) = (model.lstm().settings(), saved.lstm().settings());
    for (flag, ours, theirs) in
        [("--embedding", ours.embedding, theirs.embedding), ("--hidden", ours.hidden, theirs.hidden)]
    {
        if ours != theirs {
            return differs(flag, ours.to_string(), theirs.to_string());
        }
    }
    let is_set = |is_set: bool| if is_set { "set" } else { "not set" }.to_owned();
    if ours.bidirectional != theirs.bidirectional {
        return differs("--bidirectional", is_set(ours.bidirectional), is_set(theirs.bidirectional));
    }
    // A pretrained model can have fewer layers. The other layers keep their random weights.
    let can_have_fewer = saved.classifier().is_none();
    if theirs.layers > ours.layers || (theirs.layers < ours.layers && !can_have_fewer) {
        return differs("--layers", ours.layers.to_string(), theirs.layers.to_string());
    }
    match (model.family(), saved.family()) {
        (Family::NextWord(_), Family::Classifier(_)) => Err(training::Error::setting(
            "--init-from",
            format!("{}, a classifier", folder.display()),
            "a model of `trainer pretrain`, or word vectors",
        )
        .into()),
        (Family::Classifier(ours), Family::Classifier(theirs)) if ours.linear != theirs.linear => {
            differs("--linear", ours.linear.to_string(), theirs.linear.to_string())
        }
        (Family::Classifier(ours), Family::Classifier(theirs)) if ours.pool != theirs.pool => {
            differs("--pool", name_of(&ours.pool), name_of(&theirs.pool))
        }
        (Family::Classifier(ours), Family::Classifier(theirs))
            if ours.objective.n_outputs() != theirs.objective.n_outputs()
                && [ours, theirs].iter().any(|of| matches!(of.objective, Objective::Classes { .. })) =>
        {
            let described = |objective: Objective| match objective {
                Objective::Classes { class_weights } => format!("{} classes", class_weights.all().len()),
                objective => format!("two labels and --loss {}", name_of(&objective)),
            };
            Err(training::Error::setting(
                "--init-from",
                format!("{}, a model of {}", folder.display(), described(theirs.objective)),
                format!(
                    "a model of {}, or of `trainer pretrain`; the --labels of the dataset set the classes",
                    described(ours.objective)
                ),
            )
            .into())
        }
        (Family::Classifier(ours), Family::Classifier(theirs))
            if ours.objective.n_outputs() != theirs.objective.n_outputs() =>
        {
            differs("--loss", name_of(&ours.objective), name_of(&theirs.objective))
        }
        _ => Ok(()),
    }
}

/// The name of a setting's value, as in flags and documents.
fn name_of(setting: &impl Serialize) -> String {
    match serde_json::to_value(setting) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(serde_json::Value::Object(kinds)) => kinds.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

/// The sizes and the family from the model's configuration. Contradictions are an error.
fn settings(folder: &Path, saved: &Saved) -> Result<(LstmSettings, Family, Precision)> {
    let path = folder.join(CONFIG);
    let no_model = |found: String, expected: String| Error::Weights {
        path: path.clone(),
        found,
        expected: format!("{expected}; copy or train the model again"),
    };
    let document: Document = serde_json::from_value(saved.config.model.clone())
        .map_err(|error| no_model(error.to_string(), "the sizes of a model".to_owned()))?;
    let (lstm, family) = document.settings().map_err(|(found, expected)| no_model(found, expected))?;
    let ids = saved.vocabulary.len() as u64 + u64::from(FIRST_WORD);
    let refused = |(name, found, expected): InvalidSetting| no_model(format!("{name} {found}"), expected);
    lstm.check(ids).map_err(refused)?;
    family.check().map_err(refused)?;
    let scoring = family.scoring(&saved.config.preparation.labels);
    if scoring != saved.config.scoring || scoring.is_some() != matches!(family, Family::Classifier(_)) {
        return Err(no_model(
            format!("scoring {:?}", saved.config.scoring),
            format!("{scoring:?} for its task"),
        ));
    }
    Ok((lstm, family, document.precision))
}
