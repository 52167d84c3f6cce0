//! `trainer export`: copies a saved model and adds files for other programs.

use std::path::Path;

use tch::Device;

use super::model;
use super::out::check_place;
use crate::arguments::Export;
use crate::error::Result;
use crate::families::{SavedClassifier, read_classifier};
use runs::saved;

/// Reads and verifies a model of any version, and writes a new folder.
pub fn export(arguments: &Export) -> Result<()> {
    check_place(&arguments.out)?;
    saved::check_place(&arguments.out)?;
    let SavedClassifier { model, vocabulary, config, trained_on, .. } =
        read_classifier(&model::folder(&arguments.model), Device::Cpu)?;
    let weights = |path: &Path| model.lstm().parameters().write(path);
    let mut others = saved::files_for_others(&config, &vocabulary);
    others.extend(trained_on.map(|trained_on| trained_on.file()));
    Ok(saved::write_with(&arguments.out, &config, &vocabulary, weights, &others)?)
}
