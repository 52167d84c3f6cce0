//! `settings.json`: what is trained, and on what.

use corpus::settings::Settings;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use batches::{Part, Rows};

/// What a training was told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    /// Of the folder.
    pub version: u32,
    /// The version of the program.
    pub sentimill: String,
    /// How its rows were made of reviews; older folders do not say.
    #[serde(default)]
    pub preparation: Option<Settings>,
    /// The dataset that it trains on.
    pub dataset: DatasetRecord,
    /// The dataset that it tests on, where that is another.
    pub test: Option<DatasetRecord>,
    /// The recipe, by the names of its settings.
    pub recipe: serde_json::Value,
    /// Numbers that are trained.
    pub parameters: u64,
    /// Steps of an epoch.
    pub steps_of_epoch: u64,
    /// Processes that train together.
    pub world_size: usize,
    /// What rank 0 computes on.
    pub device: String,
}

/// A dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetRecord {
    /// Where it was.
    pub path: String,
    /// The rows of its parts: for training, validation and the test.
    pub rows: [u64; 3],
    /// Those of them with label 1.
    pub positive: [u64; 3],
    /// The data card: names, and what stands behind them.
    pub card: Vec<(String, String)>,
}

impl RunSettings {
    /// Number of epochs, where the recipe says it.
    pub fn epochs(&self) -> Option<u64> {
        Some(KnownEpochs::deserialize(&self.recipe).ok()?.epochs)
    }

    /// Whether the model learns next words, so that no row of it is right or wrong.
    pub fn is_of_words(&self) -> bool {
        let known = KnownModel::deserialize(&self.recipe);
        matches!(known, Ok(KnownModel { family: KnownFamily::NextWord(_) }))
    }
}

/// What a report reads of any recipe.
#[derive(Deserialize)]
struct KnownEpochs {
    epochs: u64,
}

/// The same; recipes of version 1 have a task in the place of the family.
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
    /// Of a dataset that is open.
    pub fn of(rows: &Rows) -> Self {
        let path = std::path::absolute(rows.path()).unwrap_or_else(|_| rows.path().to_owned());
        Self {
            path: path.to_string_lossy().into_owned(),
            rows: Part::ALL.map(|part| rows.census(part).rows),
            positive: Part::ALL.map(|part| rows.census(part).positive),
            card: rows.card().iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(recipe: Value) -> RunSettings {
        RunSettings {
            version: 2,
            sentimill: String::new(),
            preparation: None,
            dataset: DatasetRecord { path: String::new(), rows: [0; 3], positive: [0; 3], card: Vec::new() },
            test: None,
            recipe,
            parameters: 0,
            steps_of_epoch: 0,
            world_size: 1,
            device: String::new(),
        }
    }

    #[test]
    fn recipes_of_all_versions_and_of_unknown_families_are_read() {
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
