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
use scoring::{Choice, Scoring};
use serde::{Deserialize, Serialize};
use tch::Device;

use super::classifier::{Head, Wide};
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
    /// The factors of the LSTM and of the n-grams, if the model has n-grams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<Head>,
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
    head: Layers,
}

/// The layers after the LSTM.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Layers {
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
                (Layers::Classifier { pool, linear, outputs }, Task::Sentiment(objective))
            }
            Family::NextWord(NextWordSettings { candidates }) => {
                (Layers::NextWord, Task::NextWord { candidates })
            }
        };
        let LstmSettings { ids, embedding, hidden, layers, bidirectional } = *lstm;
        let lstm = Sizes { ids, embedding, hidden, layers, bidirectional, head };
        Self { kind: DocumentKind::Lstm, lstm, task, precision, head: None }
    }

    /// The sizes and the family. If head and task belong to different families, returns what was found and expected.
    fn settings(&self) -> std::result::Result<(LstmSettings, Family), (String, String)> {
        let Sizes { ids, embedding, hidden, layers, bidirectional, ref head } = self.lstm;
        let family = match (head, &self.task) {
            (&Layers::Classifier { pool, linear, outputs }, &Task::Sentiment(objective)) => {
                let expected = objective.n_outputs() as i64;
                if outputs != expected {
                    return Err((format!("outputs {outputs}"), format!("{expected} for its task")));
                }
                Family::Classifier(ClassifierSettings { objective, pool, linear })
            }
            (Layers::NextWord, &Task::NextWord { candidates }) => {
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
    let wide = model.classifier().and_then(Classifier::wide);
    let document = Document::of(model.lstm().settings(), model.family(), recipe.precision);
    let document = Document { head: wide.map(Wide::head), ..document };
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
    let mut place = saved::begin(folder)?;
    if let Some(wide) = wide {
        wide.write(&mut place)?;
    }
    Ok(saved::write_with(place, &config, words, weights, &[trained_on.file()])?)
}

/// Reads a saved classifier onto a device.
pub fn read_classifier(folder: &Path, device: Device) -> Result<SavedClassifier> {
    let saved = saved::read(folder)?;
    let (document, lstm, family) = settings(folder, &saved)?;
    let (Family::Classifier(settings), Some(scoring)) = (family, saved.config.scoring) else {
        let folder = folder.display();
        let remedy = format!("train one with `trainer fit DATASET --init-from {folder}`");
        let message = format!("{folder}: a next-word model, expected a classifier; {remedy}");
        return Err(Failed::new(Exit::Settings, message).into());
    };
    let mut model = Classifier::read(&lstm, settings, (kind_of(document.precision), device), &saved.weights)?;
    if let Some(wide) = read_wide(folder, document.head, &saved)? {
        model.widen(wide);
    }
    let Saved { config, vocabulary, trained_on, .. } = saved;
    Ok(SavedClassifier { model, vocabulary, config, scoring, trained_on })
}

/// Reads the n-grams of a model, if it has any.
fn read_wide(folder: &Path, head: Option<Head>, saved: &Saved) -> Result<Option<Wide>> {
    let refused = |found: String, expected: String| no_model(folder, found, &expected);
    let (head, ngrams) = match (head, classifiers::files::read_part(folder)?) {
        (None, None) => return Ok(None),
        (Some(head), Some(ngrams)) if head.is_finite() => (head, ngrams),
        (head, ngrams) => {
            let found =
                format!("head {head:?} {} n-grams", if ngrams.is_some() { "with" } else { "without" });
            return Err(refused(found, "two finite factors, and n-grams".to_owned()));
        }
    };
    let names = saved.config.preparation.labels.names();
    let wide = Wide::of(ngrams, head, &saved.vocabulary, &names);
    wide.map(Some).map_err(|(found, expected)| refused(found, expected))
}

/// Initializes a model with the weights of a saved model. From a classifier, it copies all weights, which must have
/// the same names and shapes. From a next-word model, it copies the embedding and the LSTM layers.
pub fn begin_with(saved: &Saved, folder: &Path, model: &mut Model) -> Result<()> {
    let (document, lstm, family) = settings(folder, saved)?;
    let other = Model::read(&lstm, family, (kind_of(document.precision), Device::Cpu), &saved.weights)?;
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

/// The settings of the model, with sizes and family. Contradictions are an error.
fn settings(folder: &Path, saved: &Saved) -> Result<(Document, LstmSettings, Family)> {
    let document: Document = serde_json::from_value(saved.config.model.clone())
        .map_err(|error| no_model(folder, error.to_string(), "the sizes of a model"))?;
    let (lstm, family) =
        document.settings().map_err(|(found, expected)| no_model(folder, found, &expected))?;
    let ids = saved.vocabulary.len() as u64 + u64::from(FIRST_WORD);
    let refused =
        |(name, found, expected): InvalidSetting| no_model(folder, format!("{name} {found}"), &expected);
    lstm.check(ids).map_err(refused)?;
    family.check().map_err(refused)?;
    let scoring = family.scoring(&saved.config.preparation.labels);
    if scoring != saved.config.scoring || scoring.is_some() != matches!(family, Family::Classifier(_)) {
        return Err(no_model(
            folder,
            format!("scoring {:?}", saved.config.scoring),
            &format!("{scoring:?} for its task"),
        ));
    }
    Ok((document, lstm, family))
}

/// The error of a configuration.
fn no_model(folder: &Path, found: String, expected: &str) -> Error {
    let expected = format!("{expected}; copy or train the model again");
    Error::Weights { path: folder.join(CONFIG), found, expected }
}
