//! `trainer export`: a saved model, written again elsewhere, with what other programs use it by.

use std::path::Path;

use tch::Device;

use super::model;
use super::out::check_place;
use crate::arguments::Export;
use crate::error::Result;
use crate::models::{Classifier, read_classifier};
use crate::saved::{self, Existing};

/// Reads a model whole, whatever wrote it, and writes it anew.
pub fn export(arguments: &Export) -> Result<()> {
    check_place(&arguments.out)?;
    saved::check_place(&arguments.out)?;
    let Classifier { lstm, vocabulary, config, .. } =
        read_classifier(&model::folder(&arguments.model), Device::Cpu)?;
    let weights = |path: &Path| lstm.parameters().write(path);
    let others = saved::files_for_others(&config, &vocabulary);
    Ok(saved::write_with(&arguments.out, &config, &vocabulary, Existing::Refuse, weights, &others)?)
}
