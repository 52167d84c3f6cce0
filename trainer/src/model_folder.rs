//! placeholder until saved.rs is merged
use crate::batches::Rows;
use crate::error::{Error, Result};
use crate::folder;
use crate::loss::Objective;
use crate::models::{Lstm, LstmSettings};
use crate::train::Recipe;
use corpus::settings::Settings;
use dataset::vocabulary::Vocabulary;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
pub(crate) struct Config {
    pub model: LstmSettings,
    pub objective: Objective,
    pub tokens_max: u32,
    pub preparation: Settings,
    pub precision: crate::train::Precision,
}
pub(crate) struct Saved {
    pub config: Config,
    pub words: String,
    pub weights: PathBuf,
}

pub(crate) fn words(vocabulary: &Vocabulary) -> String {
    vocabulary.words.iter().map(|word| String::from_utf8_lossy(word.as_ref()).into_owned() + "\n").collect()
}
pub(crate) fn write(path: &Path, recipe: &Recipe, rows: &Rows, model: &Lstm) -> Result<()> {
    folder::commit(path, |temporary| {
        model.parameters().write(&temporary.join("model.safetensors"))?;
        let config = Config {
            model: recipe.model.clone(),
            objective: recipe.objective,
            tokens_max: recipe.tokens_max,
            preparation: rows.settings().rows.clone(),
            precision: recipe.precision,
        };
        std::fs::write(
            temporary.join("config.json"),
            serde_json::to_vec_pretty(&config).map_err(|e| Error::internal(&e))?,
        )
        .map_err(|s| Error::io(temporary, s))?;
        std::fs::write(temporary.join("vocabulary.txt"), words(rows.vocabulary()))
            .map_err(|s| Error::io(temporary, s))
    })
}
pub(crate) fn read(path: &Path) -> Result<Saved> {
    folder::check(path)?;
    let config = std::fs::read(path.join("config.json")).map_err(|s| Error::io(path, s))?;
    Ok(Saved {
        config: serde_json::from_slice(&config)
            .map_err(|e| Error::Damaged { path: path.to_owned(), found: e.to_string() })?,
        words: std::fs::read_to_string(path.join("vocabulary.txt")).map_err(|s| Error::io(path, s))?,
        weights: path.join("model.safetensors"),
    })
}
