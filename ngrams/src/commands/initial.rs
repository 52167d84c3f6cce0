//! The initial weights of a training: random ones, those of a model (`--init-from`), or word vectors
//! (`--pretrained-vectors`).

use std::path::PathBuf;

use classifiers::fasttext::{Counted, FastTextModel, FastTextSettings, Loss};
use classifiers::linear::{LinearModel, LinearSettings, NgramTable, Weighting};
use classifiers::{Dictionary, Model, Texts, Words, fasttext};
use serde_json::{Value, json};
use training::initial::{WordVectors, digest, word_vectors};
use training::model::{folder_at, is_of_ngrams};
use training::{Error, Result, places};

use super::settings::ModelSettings;
use crate::arguments::{ModelName, Train};
use crate::classifier::Labels;

const FLAG: &str = "--init-from";

/// Where initial weights are read.
pub enum Initial {
    /// Nowhere: they are random, or 0.
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

    /// Refuses a model of another kind, or of words and n-grams that these settings do not have.
    pub fn check_settings(&self, settings: &ModelSettings, words: Words) -> Result<()> {
        let Self::Model(path, model) = self else { return Ok(()) };
        let differences = match (model, settings) {
            (Model::Linear(model), ModelSettings::Linear(settings, _)) => of_linear(model, settings, words),
            (Model::FastText(model), ModelSettings::FastText(settings)) => of_fasttext(model, settings),
            (Model::Linear(_), _) => kinds(ModelName::Linear, ModelName::FastText),
            (Model::FastText(_), _) => kinds(ModelName::FastText, ModelName::Linear),
        };
        match differences.into_iter().find(|(_, found, expected)| found != expected) {
            Some((flag, found, expected)) => Err(Error::setting(
                FLAG,
                format!("{}, a model of {flag} {found}", path.display()),
                format!("a model of {flag} {expected}, or {flag} {found}"),
            )),
            None => Ok(()),
        }
    }

    /// Refuses a model of other labels than those of the texts, and adds the words of an embedding model to the vocabulary. Reads
    /// the vectors of the words of the texts, of dimension `dim`.
    pub fn meet(&mut self, texts: &mut Texts, dim: usize) -> Result<()> {
        if let Self::Vectors(path, found) = self {
            let words = texts.dictionary.words().iter();
            *found = Some(word_vectors(path, words, dim, ["--pretrained-vectors", "--dim", "texts"])?);
        }
        let Self::Model(path, model) = self else { return Ok(()) };
        let names = |dictionary: &Dictionary| {
            let mut names = Labels::of(dictionary).names();
            names.sort();
            names.join(", ")
        };
        let (found, expected) = (names(model.dictionary()), names(&texts.dictionary));
        if found != expected {
            return Err(Error::setting(
                FLAG,
                format!("{}, a model of the labels {found}", path.display()),
                format!("a model of the labels of the texts: {expected}"),
            ));
        }
        if let Model::FastText(model) = model {
            texts.dictionary.add_words(model.dictionary());
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

/// Flags with their values in a model and in this training.
type Compared = Vec<(&'static str, String, String)>;

fn kinds(found: ModelName, expected: ModelName) -> Compared {
    vec![("--model", found.name().to_owned(), expected.name().to_owned())]
}

fn of_linear(model: &LinearModel, settings: &LinearSettings, words: Words) -> Compared {
    let stored = model.stored();
    let buckets = |table: NgramTable| match table {
        NgramTable::Hashed { bits } => (1_u64 << bits).to_string(),
        NgramTable::Exact => "0".to_owned(),
    };
    let weights = |weighting: Weighting| match weighting {
        Weighting::NaiveBayes { .. } => "nb",
        Weighting::TfIdf => "tf-idf",
        Weighting::None => "none",
    };
    let hashed = match settings.table {
        NgramTable::Exact => "above 0".to_owned(),
        table @ NgramTable::Hashed { .. } => buckets(table),
    };
    let theirs = weights(stored.settings.weighting).to_owned();
    // The factors of a text's n-grams depend on all texts.
    let weights = match settings.weighting {
        Weighting::TfIdf => "nb or none".to_owned(),
        // Their weights include these factors.
        Weighting::NaiveBayes { .. } | Weighting::None if theirs != "tf-idf" => theirs.clone(),
        weighting => weights(weighting).to_owned(),
    };
    vec![
        ("--words", stored.words.name().to_owned(), words.name().to_owned()),
        ("--ngrams", stored.settings.ngrams.to_string(), settings.ngrams.to_string()),
        ("--buckets", buckets(stored.settings.table), hashed),
        ("--weights", theirs, weights),
    ]
}

fn of_fasttext(model: &FastTextModel, settings: &FastTextSettings) -> Compared {
    let (theirs, ours) = (model.features(), settings.features);
    let characters = |of: classifiers::Features| match of.characters_max {
        0 => "none".to_owned(),
        max => format!("{}-{max}", of.characters_min),
    };
    let loss = |of: Loss| {
        if of == Loss::HierarchicalSoftmax { "hierarchical-softmax" } else { "softmax or bce" }.to_owned()
    };
    let set = |is_set: bool| if is_set { "set" } else { "not set" }.to_owned();
    vec![
        ("--words", model.words().name().to_owned(), settings.words.name().to_owned()),
        ("--dim", model.dim().to_string(), settings.dim.to_string()),
        ("--ngrams", theirs.ngrams.to_string(), ours.ngrams.to_string()),
        ("--buckets", theirs.buckets.to_string(), ours.buckets.to_string()),
        ("--char-ngrams", characters(theirs), characters(ours)),
        ("--words-max", set(theirs.hashes_unknown), set(ours.hashes_unknown)),
        // The tree of other texts has other nodes.
        ("--loss", loss(model.loss()), loss(Loss::Softmax)),
        ("--loss", loss(Loss::Softmax), loss(settings.loss)),
        ("pruned rows,", set(model.counted() == Counted::Met), set(false)),
    ]
}
