//! `settings.json`: the settings of a training and its dataset.

use std::collections::BTreeMap;

use corpus::settings::Settings;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use batches::{Fold, Part, Rows};

use super::FORMAT_VERSION;

/// The settings of a training and its dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    /// Format version of the training folder.
    pub version: u32,
    /// The version of the program.
    pub sentimill: String,
    /// The settings with which reviews were made into rows. `None` for older folders.
    #[serde(default)]
    pub preparation: Option<Settings>,
    /// The training dataset.
    pub dataset: DatasetRecord,
    /// The validation dataset, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<DatasetRecord>,
    /// The dataset without labels, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlabelled: Option<UnlabelledRecord>,
    /// Paths or URLs of soft labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub soft_labels: Vec<String>,
    /// The test dataset, if it is another one.
    pub test: Option<DatasetRecord>,
    /// Path of the initial weights (`--init-from`), if they were not random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_from: Option<String>,
    /// How texts and ratings were found in the input of the dataset, by the names of flags, if the manifest of the dataset
    /// says so. A model of n-grams has it in its recipe.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input: BTreeMap<String, String>,
    /// The recipe, by the names of its settings.
    pub recipe: serde_json::Value,
    /// Number of trained parameters.
    pub parameters: u64,
    /// Number of steps per epoch.
    pub steps_of_epoch: u64,
    /// World size.
    pub world_size: usize,
    /// Device of rank 0.
    pub device: String,
}

/// A dataset of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetRecord {
    /// Its absolute path, or its URL.
    pub path: String,
    /// Number of rows in the training, validation and test split.
    pub rows: [u64; 3],
    /// Number of those with label 1.
    pub positive: [u64; 3],
    /// The named classes of the dataset, with their rows in each split; none without `--labels`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<(String, [u64; 3])>,
    /// The data card: names and values.
    pub card: Vec<(String, String)>,
}

/// A dataset without labels, whose rows are only trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnlabelledRecord {
    /// Its absolute path, or its URL.
    pub path: String,
    /// Number of its rows in the training split.
    pub rows: u64,
}

impl RunSettings {
    /// The settings of a model of texts that are read in order, on one process. The number of its parameters is unknown.
    pub fn of_texts(dataset: DatasetRecord, recipe: serde_json::Value, device: String) -> Self {
        Self {
            version: FORMAT_VERSION,
            sentimill: env!("CARGO_PKG_VERSION").to_owned(),
            preparation: None,
            dataset,
            validation: None,
            unlabelled: None,
            soft_labels: Vec::new(),
            test: None,
            init_from: None,
            input: BTreeMap::new(),
            recipe,
            parameters: 0,
            steps_of_epoch: 1,
            world_size: 1,
            device,
        }
    }

    /// Number of epochs, if the recipe contains it.
    pub fn epochs(&self) -> Option<u64> {
        Some(KnownEpochs::deserialize(&self.recipe).ok()?.epochs)
    }

    /// The fold, if the training is one of a cross-validation.
    pub fn fold(&self) -> Option<Fold> {
        Some(KnownFold::deserialize(&self.recipe).ok()?.fold)
    }

    /// Whether the model is one of n-grams.
    pub fn is_of_ngrams(&self) -> bool {
        self.recipe.pointer("/family/ngrams").is_some()
    }

    /// Whether the model has word vectors and nothing else.
    pub fn is_of_vectors(&self) -> bool {
        ["/family/word-vectors", "/family/char-lstm"]
            .iter()
            .any(|family| self.recipe.pointer(family).is_some())
    }

    /// Whether the model predicts next words. Then no row is right or wrong.
    pub fn is_of_words(&self) -> bool {
        let known = KnownModel::deserialize(&self.recipe);
        matches!(known, Ok(KnownModel { family: KnownFamily::NextWord(_) }))
    }
}

/// The number of epochs in a recipe, which reports read for any model.
#[derive(Deserialize)]
struct KnownEpochs {
    epochs: u64,
}

/// The fold in a recipe.
#[derive(Deserialize)]
struct KnownFold {
    fold: Fold,
}

/// The family in a recipe. Recipes of version 1 have a `task` instead of the `family`.
#[derive(Deserialize)]
struct KnownModel {
    #[serde(alias = "task")]
    family: KnownFamily,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KnownFamily {
    #[serde(alias = "sentiment")]
    Classifier(IgnoredAny),
    NextWord(IgnoredAny),
}

impl DatasetRecord {
    /// Describes an open dataset.
    pub fn of(rows: &Rows) -> Self {
        Self {
            path: rows.place(),
            rows: Part::ALL.map(|part| rows.census(part).rows),
            positive: Part::ALL.map(|part| rows.census(part).positive),
            classes: (0..)
                .zip(rows.settings().rows.labels.given_names())
                .map(|(label, name): (usize, _)| {
                    (name, Part::ALL.map(|part| rows.census(part).labels[label]))
                })
                .collect(),
            card: rows.card().iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(recipe: Value) -> RunSettings {
        let dataset = DatasetRecord {
            path: String::new(),
            rows: [0; 3],
            positive: [0; 3],
            classes: Vec::new(),
            card: Vec::new(),
        };
        RunSettings::of_texts(dataset, recipe, String::new())
    }

    #[test]
    fn recipes_of_all_versions_and_unknown_families_are_read() {
        let words = [
            json!({"epochs": 3, "family": {"next-word": {}}}),
            json!({"epochs": 3, "task": {"next-word": {}}}),
        ];
        for recipe in words {
            assert_eq!((of(recipe.clone()).epochs(), of(recipe).is_of_words()), (Some(3), true));
        }
        for family in ["classifier", "n-grams"] {
            let settings = of(json!({"epochs": 3, "family": {family: {}}}));
            assert_eq!((settings.epochs(), settings.is_of_words()), (Some(3), false));
        }
        assert_eq!(of(json!({})).epochs(), None);
    }
}
