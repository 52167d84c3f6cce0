//! The initial weights of a training: random ones, those of a model (`--init-from`), or word vectors
//! (`--pretrained-vectors`).

use std::path::PathBuf;

use classifiers::fasttext::{Counted, FastTextModel, FastTextSettings, Loss};
use classifiers::linear::{LinearModel, LinearSettings, MarginLoss, NgramTable, Outputs, Weighting};
use classifiers::{Dictionary, Model, Texts, Words, fasttext};
use serde_json::{Value, json};
use training::initial::{WordVectors, digest, word_vectors};
use training::model::{folder_at, is_of_ngrams};
use training::{Error, Result, places};

use super::settings::ModelSettings;
use crate::arguments::{ModelName, Train};

const FLAG: &str = "--init-from";

/// The source of the initial weights.
pub enum Initial {
    /// No file: weights are random, or 0.
    None,
    /// A model of the same kind, and its path.
    Model(PathBuf, Model),
    /// Word vectors, once the words are known.
    Vectors(PathBuf, Option<WordVectors>),
}

impl Initial {
    /// Reads the model, if there is one, and adds digests to the recipe.
    pub fn of(arguments: &Train, recipe: &mut Value) -> Result<Self> {
        let s3 = arguments.storage.options();
        recipe["init_from"] = Value::Null;
        recipe["pretrained_vectors"] = Value::Null;
        if let Some(vectors) = &arguments.pretrained_vectors {
            let path = places::weights(vectors, &s3, "--pretrained-vectors")?;
            if !path.exists() {
                let found = "--pretrained-vectors is missing: no such file or folder";
                return Err(Error::unexpected(path.display(), found, "word vectors"));
            }
            recipe["pretrained_vectors"] = json!(digest(&path)?);
            return Ok(Self::Vectors(path, None));
        }
        let Some(model) = &arguments.init_from else { return Ok(Self::None) };
        let path = folder_at(&places::weights(model, &s3, FLAG)?, FLAG)?;
        if !is_of_ngrams(&path) || !path.is_dir() {
            let found = format!("{}, the model of another program", path.display());
            return Err(Error::setting(FLAG, found, "a model folder of `ngrams train`"));
        }
        recipe["init_from"] = json!(digest(&path)?);
        let model = classifiers::files::read(&path)?;
        Ok(Self::Model(path, model))
    }

    /// Refuses a model from which no training can start, and one of other settings.
    pub fn check_settings(&self, arguments: &Train, settings: &ModelSettings, words: Words) -> Result<()> {
        let Self::Model(path, model) = self else { return Ok(()) };
        if let Some((flag, found, expected)) = impossible(arguments, settings) {
            return Err(Error::setting(flag, found, format!("{expected} with {FLAG}")));
        }
        let refused = |found: &str, expected: &str| {
            Err(Error::setting(FLAG, format!("{}, a model of {found}", path.display()), expected))
        };
        if let Some((found, expected)) = unsuitable(model) {
            return refused(found, expected);
        }
        let compared = match (model, settings) {
            (Model::Linear(model), ModelSettings::Linear(settings, _)) => of_linear(model, settings, words),
            (Model::FastText(model), ModelSettings::FastText(settings)) => of_fasttext(model, settings),
            (Model::Linear(_), _) => kinds(ModelName::Linear, ModelName::FastText),
            (Model::FastText(_), _) => kinds(ModelName::FastText, ModelName::Linear),
            (Model::Program(_), _) => Vec::new(),
        };
        match compared.into_iter().find(|(_, found, expected)| found != expected) {
            Some((flag, found, expected)) => refused(
                &format!("{flag} {found}"),
                &format!("a model of {flag} {expected}, or {flag} {found} for this training"),
            ),
            None => Ok(()),
        }
    }

    /// Refuses a model of other labels than those of the texts, and adds the words of an embedding model to the
    /// vocabulary. Reads the vectors of the words of the texts, of dimension `dim`.
    pub fn meet(&mut self, texts: &mut Texts, dim: usize) -> Result<()> {
        if let Self::Vectors(path, found) = self {
            let words = texts.dictionary.words().iter();
            *found = Some(word_vectors(path, words, dim, ["--pretrained-vectors", "--dim", "texts"])?);
        }
        let Self::Model(path, model) = self else { return Ok(()) };
        let refused = |found: String, expected: String| {
            Err(Error::setting(FLAG, format!("{}, a model of {found}", path.display()), expected))
        };
        let sorted = |dictionary: &Dictionary| {
            let mut names: Vec<Vec<u8>> = dictionary.labels().iter().map(<[u8]>::to_vec).collect();
            names.sort_unstable();
            names
        };
        let of_model = match model {
            Model::Linear(model) => model.dictionary(),
            Model::FastText(model) => model.dictionary(),
            Model::Program(model) => model.entries().dictionary(),
        };
        let (found, expected) = (sorted(of_model), sorted(&texts.dictionary));
        if found != expected {
            let joined = |names: &[Vec<u8>]| {
                let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
                names.join(", ")
            };
            return refused(
                format!("the labels {}", joined(&found)),
                format!("a model of the labels of the texts: {}", joined(&expected)),
            );
        }
        match model {
            Model::FastText(model) => texts.dictionary.add_words(model.dictionary()),
            Model::Linear(model) => {
                let of = |outputs: Outputs| match outputs {
                    Outputs::AnyOf => "texts with several labels each",
                    Outputs::Two | Outputs::OneOf => "texts with one label each",
                };
                let (found, expected) = (model.stored().outputs, Outputs::of(texts));
                if found != expected {
                    return refused(
                        of(found).to_owned(),
                        format!("a model of {}, as in --input", of(expected)),
                    );
                }
            }
            Model::Program(_) => {}
        }
        Ok(())
    }

    /// The linear model.
    pub fn linear(&self) -> Option<&LinearModel> {
        match self {
            Self::Model(_, Model::Linear(model)) => Some(model),
            _ => None,
        }
    }

    /// The model of embeddings.
    pub fn embeddings(&self) -> Option<&FastTextModel> {
        match self {
            Self::Model(_, Model::FastText(model)) => Some(model),
            _ => None,
        }
    }

    /// Replaces the random embeddings of words that have a vector.
    pub fn set_vectors(&self, training: &fasttext::Training<'_>, dim: usize) {
        let Self::Vectors(_, Some(found)) = self else { return };
        for (&word, vector) in found.numbers.iter().zip(found.values.chunks_exact(dim)) {
            training.set_word(word, vector);
        }
    }
}

/// The first flag with which no training starts from a model, its value, and the expected one.
fn impossible(arguments: &Train, settings: &ModelSettings) -> Option<(&'static str, String, &'static str)> {
    let of = |flag, found: &str, expected| Some((flag, found.to_owned(), expected));
    match settings {
        ModelSettings::Linear(settings, _) if settings.table == NgramTable::Exact => {
            of("--buckets", "0", "a number above 0")
        }
        // The factors of a text's n-grams depend on all texts.
        ModelSettings::Linear(settings, _) if settings.weighting == Weighting::TfIdf => {
            of("--weights", "tf-idf", "nb or none")
        }
        ModelSettings::Linear(..) => None,
        // The tree of other texts has other nodes.
        ModelSettings::FastText(settings) if settings.loss == Loss::HierarchicalSoftmax => {
            of("--loss", "hierarchical-softmax", "softmax or bce")
        }
        // A word of the model has a row, but the texts would have it as an unknown word.
        ModelSettings::FastText(_) => match (arguments.min_count, arguments.words_max) {
            (Some(count), _) if count > 1 => Some(("--min-count", count.to_string(), "1")),
            (_, Some(max)) => Some(("--words-max", max.to_string(), "no maximum")),
            _ => None,
        },
    }
}

/// Why no training starts from a model: what it is, and what is expected.
fn unsuitable(model: &Model) -> Option<(&'static str, &'static str)> {
    match model {
        Model::Linear(model) => match (model.stored().settings.table, model.stored().settings.weighting) {
            (NgramTable::Exact, _) => {
                Some(("--buckets 0", "a model of hashed n-grams: one of --buckets above 0"))
            }
            (_, Weighting::TfIdf) => Some(("--weights tf-idf", "a model of --weights nb or none")),
            _ => None,
        },
        Model::FastText(model) if model.loss() == Loss::HierarchicalSoftmax => {
            Some(("--loss hierarchical-softmax", "a model of --loss softmax or bce"))
        }
        Model::FastText(model) if model.features().hashes_unknown => {
            Some(("--words-max", "a model with a row for each word"))
        }
        Model::FastText(model) if model.counted() == Counted::Met => {
            Some(("pruned rows", "a model as `ngrams train` writes it"))
        }
        Model::FastText(_) => None,
        Model::Program(_) => Some(("the fastText program", "a model folder of `ngrams train`")),
    }
}

/// Flags with their values in a model and in this training.
type Compared = Vec<(&'static str, String, String)>;

fn kinds(found: ModelName, expected: ModelName) -> Compared {
    vec![("--model", found.name().to_owned(), expected.name().to_owned())]
}

fn of_linear(model: &LinearModel, settings: &LinearSettings, words: Words) -> Compared {
    let theirs = &model.stored().settings;
    let buckets = |of: &LinearSettings| match of.table {
        NgramTable::Hashed { bits } => (1_u64 << bits).to_string(),
        NgramTable::Exact => "0".to_owned(),
    };
    // Scores of the other loss have another scale.
    let loss = |of: &LinearSettings| match of.loss {
        MarginLoss::Logistic => "logistic".to_owned(),
        MarginLoss::SquaredHinge => "squared-hinge".to_owned(),
    };
    vec![
        ("--words", model.stored().words.name().to_owned(), words.name().to_owned()),
        ("--ngrams", theirs.ngrams.to_string(), settings.ngrams.to_string()),
        ("--buckets", buckets(theirs), buckets(settings)),
        ("--loss", loss(theirs), loss(settings)),
    ]
}

fn of_fasttext(model: &FastTextModel, settings: &FastTextSettings) -> Compared {
    let (theirs, ours) = (model.features(), settings.features);
    let characters = |of: classifiers::Features| match of.characters_max {
        0 => "none".to_owned(),
        max => format!("{}-{max}", of.characters_min),
    };
    let loss = |of: Loss| if of == Loss::Bce { "bce" } else { "softmax" }.to_owned();
    vec![
        ("--words", model.words().name().to_owned(), settings.words.name().to_owned()),
        ("--dim", model.dim().to_string(), settings.dim.to_string()),
        ("--ngrams", theirs.ngrams.to_string(), ours.ngrams.to_string()),
        ("--char-ngrams", characters(theirs), characters(ours)),
        ("--buckets", theirs.buckets.to_string(), ours.buckets.to_string()),
        ("--loss", loss(model.loss()), loss(settings.loss)),
    ]
}
