//! Converts the flags of `ngrams train` into the settings of a model, and these into the recipe in `settings.json`.

use classifiers::fasttext::{FastTextSettings, Optimizer};
use classifiers::linear::LinearSettings;
use classifiers::{Dictionary, Features, Labels, Reading, Words, fasttext, linear};
use runs::recipe::OF_INPUT;
use serde_json::{Value, json};
use training::arguments::ClassWeight;
use training::{Error, Result};

use crate::arguments::{ModelName, NgramLossName, Train, WeightsName};

/// Default of `--buckets` for the fastText model.
const BUCKETS: u64 = 2_000_000;
/// Default of `--ngrams` for the fastText model.
const NGRAMS: u8 = 2;
/// Default of `--epochs` for the fastText model.
const EPOCHS: u32 = 5;

/// Settings of a model and its training.
#[derive(Clone, Debug)]
pub enum ModelSettings {
    /// A linear model, and the weights of labels in the loss; none if all are 1.
    Linear(LinearSettings, Vec<f32>),
    /// A mean of embeddings with a linear layer.
    FastText(Box<FastTextSettings>),
}

impl ModelSettings {
    /// The settings for these flags.
    pub fn of(arguments: &Train, model: ModelName, words: Words) -> Self {
        match model {
            ModelName::Linear => Self::Linear(of_linear(arguments), Vec::new()),
            ModelName::FastText => Self::FastText(Box::new(of_fasttext(arguments, words))),
        }
    }

    /// Sets the weights of labels in the loss, by number of the label.
    pub fn with_label_weights(self, weights: Vec<f32>) -> Self {
        match self {
            Self::Linear(settings, _) => Self::Linear(settings, weights),
            Self::FastText(mut settings) => {
                settings.label_weights = weights;
                Self::FastText(settings)
            }
        }
    }

    /// Number of epochs.
    pub fn epochs(&self) -> u32 {
        match self {
            Self::Linear(settings, _) => settings.epochs,
            Self::FastText(settings) => settings.epochs,
        }
    }

    /// Embedding dimension; 0 for a linear model.
    pub fn dim(&self) -> usize {
        match self {
            Self::Linear(..) => 0,
            Self::FastText(settings) => settings.dim,
        }
    }

    /// Number of parameters with a vocabulary of this size. A linear model of exact n-grams has an unknown number: 0.
    pub fn parameters(&self, n_words: u64, n_labels: u64) -> u64 {
        match self {
            Self::Linear(settings, _) => match settings.table {
                linear::NgramTable::Hashed { bits } => (1 << bits) * if n_labels == 2 { 1 } else { n_labels },
                linear::NgramTable::Exact => 0,
            },
            Self::FastText(settings) => {
                (settings.features.n_rows(n_words as usize) + n_labels) * settings.dim as u64
            }
        }
    }

    /// The settings by their names in `settings.json`, without those that have no effect on the model.
    pub fn recipe(&self, arguments: &Train, reading: &Reading) -> Value {
        let words = reading.words.name();
        let (kind, settings) = match self {
            Self::Linear(settings, _) => ("linear", recipe_of_linear(settings)),
            Self::FastText(settings) => ("fasttext", recipe_of_fasttext(settings)),
        };
        json!({
            "family": { "ngrams": kind },
            "test_fraction": arguments.test_fraction,
            "validation_fraction": arguments.validation_fraction,
            "epochs": self.epochs(),
            "threshold": arguments.choice.rule(),
            "calibration": arguments.choice.method(),
            "class_weight": arguments.class_weight.as_ref().map(|weight| match weight {
                ClassWeight::Balanced => json!("balanced"),
                ClassWeight::Numbers(numbers) => json!(numbers),
            }),
            "ngrams": { "words": words, "words_max": reading.words_max, "min_count": reading.count_min, kind: settings },
        })
    }
}

/// Adds what is read to a recipe: the input, the format of its lines and the labels of their ratings. `is_dataset`: the
/// input has a format and labels of its own.
pub fn add_input(recipe: &mut Value, arguments: &Train, is_dataset: bool) -> Result<()> {
    OF_INPUT.into_iter().for_each(|name| recipe[name] = Value::Null);
    recipe["input"] = json!(arguments.input);
    if is_dataset {
        return Ok(());
    }
    recipe["encoding"] = json!(arguments.format.encoding_name());
    let label_field = arguments.rated.label_field.clone();
    let format = arguments.format.clone().with_label(label_field)?;
    // The labels of fastText's format are those of its lines.
    let is_fasttext = arguments.format.is_fasttext();
    for (name, value) in if is_fasttext { format.of_texts() } else { format.of_reviews() } {
        recipe[name] = value.into();
    }
    if is_fasttext || format.has_labels() {
        return Ok(());
    }
    let labels = arguments.rated.all();
    recipe["positive-from"] = json!(labels.positive_from());
    recipe["labels"] = json!(labels.classes().map(ToString::to_string));
    Ok(())
}

/// Refuses a threshold or a calibration without a validation split, and a threshold of probabilities that do not sum to
/// 1.
pub fn check_choice(arguments: &Train) -> Result<()> {
    let choice = &arguments.choice;
    if let (Some(threshold), Some(NgramLossName::Bce)) = (choice.threshold, arguments.loss) {
        let expected = "--loss softmax: with bce, the probabilities of two labels do not sum to 1";
        return Err(Error::setting("--threshold", threshold, expected));
    }
    match choice.fitted().into_iter().next() {
        Some((flag, found)) if arguments.validation_fraction == 0.0 => {
            Err(Error::setting(flag, found, "a validation split; pass a --validation-fraction above 0"))
        }
        _ => Ok(()),
    }
}

/// The weight of each label in the loss, by number of the label; none if all are 1.
pub fn label_weights(arguments: &Train, dictionary: &Dictionary) -> Result<Vec<f32>> {
    let Some(weight) = &arguments.class_weight else { return Ok(Vec::new()) };
    let labels = Labels::of(dictionary);
    let names: Vec<&str> = labels.in_order().map(|label| labels.name(label)).collect();
    let rows: Vec<u64> = labels.in_order().map(|label| dictionary.label_count(label)).collect();
    let in_order = weight.of(&names, &rows)?;
    let numbers = 0..labels.n_labels() as u32;
    Ok(numbers.map(|label| in_order[labels.place(label) as usize] as f32).collect())
}

/// How texts are read.
pub fn reading(arguments: &Train, model: ModelName, words: Words) -> Reading {
    let count_min = match model {
        // It applies to n-grams, not to words.
        ModelName::Linear => 1,
        ModelName::FastText => arguments.min_count.unwrap_or(1),
    };
    let default = Reading::default();
    let words_max = arguments.words_max.unwrap_or(default.words_max);
    Reading { words, words_max, count_min, memory_bytes: arguments.memory, ..default }
}

/// How texts are split into words. `is_dataset`: the input has rows of cleaned words.
pub fn words(arguments: &Train, model: ModelName, is_dataset: bool) -> Words {
    match arguments.words {
        Some(words) => words,
        None if is_dataset => Words::Cleaned,
        None if model == ModelName::FastText && arguments.format.is_fasttext() => Words::Spaces,
        None => Words::Punctuation,
    }
}

/// The largest --min-count of a linear model, whose n-grams are counted in one byte each.
const TEXTS_MIN_MAX: u64 = 255;

/// Refuses a --min-count that the model cannot count.
pub fn check_min_count(arguments: &Train, model: ModelName) -> Result<()> {
    match arguments.min_count {
        Some(found) if model == ModelName::Linear && found > TEXTS_MIN_MAX => {
            Err(Error::setting("--min-count", found, format!("at most {TEXTS_MIN_MAX} with --model linear")))
        }
        _ => Ok(()),
    }
}

fn of_linear(arguments: &Train) -> LinearSettings {
    let default = LinearSettings::default();
    let (weighting, counting, is_normalized) = match arguments.weights {
        // The default is nb.
        None | Some(WeightsName::Nb) => (default.weighting, default.counting, default.is_normalized),
        Some(WeightsName::TfIdf) => (linear::Weighting::TfIdf, linear::Counting::Linear, true),
        Some(WeightsName::None) => (linear::Weighting::None, linear::Counting::Binary, false),
    };
    LinearSettings {
        ngrams: arguments.ngrams.map_or(default.ngrams, u32::from),
        table: match arguments.buckets {
            None => default.table,
            Some(0) => linear::NgramTable::Exact,
            Some(buckets) => {
                linear::NgramTable::Hashed { bits: buckets.next_power_of_two().ilog2().clamp(10, 30) }
            }
        },
        texts_min: arguments.min_count.map_or(default.texts_min, |count| count.min(TEXTS_MIN_MAX) as u32),
        counting,
        weighting,
        is_normalized,
        loss: match arguments.loss {
            Some(NgramLossName::Logistic) => linear::MarginLoss::Logistic,
            Some(NgramLossName::SquaredHinge) => linear::MarginLoss::SquaredHinge,
            _ => default.loss,
        },
        penalty: if arguments.l1 { linear::Penalty::L1 } else { default.penalty },
        cost: arguments.c.map_or(default.cost, |cost| cost as f32),
        epochs: arguments.epochs.unwrap_or(default.epochs),
        seed: arguments.seed,
        threads: arguments.n_threads().get(),
        is_deterministic: arguments.deterministic,
        memory_bytes: arguments.memory as u64,
        ..default
    }
}

fn of_fasttext(arguments: &Train, words: Words) -> FastTextSettings {
    let ngrams = arguments.ngrams.unwrap_or(NGRAMS);
    let characters = arguments.char_ngrams;
    let has_buckets = ngrams > 1 || characters.is_some() || arguments.words_max.is_some();
    let optimizer = arguments.optimizer.unwrap_or(Optimizer::Sgd);
    let rate = match optimizer {
        Optimizer::Sgd => 0.5,
        Optimizer::Adagrad => 0.1,
        Optimizer::LazyAdam => 0.005,
    };
    FastTextSettings {
        words,
        features: Features {
            ngrams: ngrams.into(),
            buckets: if has_buckets { arguments.buckets.unwrap_or(BUCKETS) as u32 } else { 0 },
            characters_min: characters.map_or(0, |of| of.min.into()),
            characters_max: characters.map_or(0, |of| of.max.into()),
            hashes_unknown: arguments.words_max.is_some(),
        },
        dim: arguments.dim.unwrap_or(10),
        loss: match arguments.loss {
            Some(NgramLossName::Bce) => fasttext::Loss::Bce,
            Some(NgramLossName::HierarchicalSoftmax) => fasttext::Loss::HierarchicalSoftmax,
            _ => fasttext::Loss::Softmax,
        },
        optimizer,
        schedule: fasttext::Schedule::Linear,
        rate: arguments.rate.map_or(rate, |rate| rate as f32),
        epochs: arguments.epochs.unwrap_or(EPOCHS),
        l2: arguments.l2.unwrap_or(0.0) as f32,
        label_weights: Vec::new(),
        dropout: arguments.dropout.unwrap_or(0.0) as f32,
        subsampling: arguments.subsample.unwrap_or(0.0) as f32,
        threads: arguments.n_threads().get(),
        is_deterministic: arguments.deterministic,
        seed: arguments.seed,
        memory_bytes: arguments.memory as u64,
        lists_bytes: arguments.memory,
    }
}

fn recipe_of_linear(settings: &LinearSettings) -> Value {
    let buckets = match settings.table {
        linear::NgramTable::Hashed { bits } => 1_u64 << bits,
        linear::NgramTable::Exact => 0,
    };
    let weights = match settings.weighting {
        linear::Weighting::NaiveBayes { .. } => "nb",
        linear::Weighting::TfIdf => "tf-idf",
        linear::Weighting::None => "none",
    };
    let loss = match settings.loss {
        linear::MarginLoss::Logistic => "logistic",
        linear::MarginLoss::SquaredHinge => "squared-hinge",
    };
    json!({
        "length": settings.ngrams,
        "gap": settings.gap,
        "ending": settings.ending,
        "buckets": buckets,
        "min_count": settings.texts_min,
        "weights": weights,
        "loss": loss,
        "l1": settings.penalty == linear::Penalty::L1,
        "c": settings.cost,
        "seed": settings.seed,
        "deterministic": settings.is_deterministic,
    })
}

fn recipe_of_fasttext(settings: &FastTextSettings) -> Value {
    let Features { ngrams, buckets, characters_min, characters_max, .. } = settings.features;
    let characters = (characters_max > 0).then(|| format!("{characters_min}-{characters_max}"));
    // The bits of a repeatable training depend on the number of threads.
    let threads = settings.is_deterministic.then_some(settings.threads);
    json!({
        "length": ngrams,
        "buckets": buckets,
        "char_ngrams": characters,
        "dim": settings.dim,
        "loss": settings.loss,
        "optimizer": settings.optimizer,
        "rate": settings.rate,
        "l2": settings.l2,
        "dropout": settings.dropout,
        "subsample": settings.subsampling,
        "seed": settings.seed,
        "deterministic": settings.is_deterministic,
        "threads": threads,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use classifiers::Names;

    use super::*;
    use crate::arguments::{Arguments, Command};

    #[test]
    fn weights_in_the_order_of_the_classes_are_those_of_their_labels() {
        let words = ["ngrams", "train", "--input", "a", "--class-weight", "1,2,3,4,5"];
        let Command::Train(arguments) = Arguments::try_parse_from(words).unwrap().command else {
            panic!("another command")
        };
        let names = |names: [&str; 5]| -> Names { names.iter().map(|name| name.as_bytes()).collect() };
        let (labels, counts) = (names(["fair", "good", "poor", "best", "worst"]), vec![9, 8, 7, 6, 5]);
        let dictionary = Dictionary::new(Names::default(), Vec::new(), labels, counts);
        // By name: best, fair, good, poor, worst.
        assert_eq!(label_weights(&arguments, &dictionary).unwrap(), [2.0, 3.0, 4.0, 1.0, 5.0]);
        let dictionary = dictionary.with_classes(names(["worst", "poor", "fair", "good", "best"]));
        assert_eq!(label_weights(&arguments, &dictionary).unwrap(), [3.0, 4.0, 2.0, 5.0, 1.0]);
    }
}
