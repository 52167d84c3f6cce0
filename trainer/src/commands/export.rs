//! `trainer export`: a saved model, written again elsewhere, with what other programs use it by.

use std::path::Path;

use tch::Device;

use crate::arguments::Export;
use crate::error::Result;
use crate::models::read_model;
use crate::saved::{self, Existing};

/// Reads a model whole, whatever wrote it, and writes it anew.
pub fn export(arguments: &Export) -> Result<()> {
    let (model, words, config) = read_model(&arguments.model, Device::Cpu)?;
    let weights = |path: &Path| model.lstm.parameters().write(path);
    let others = saved::files_for_others(&config, &words);
    Ok(saved::write_with(&arguments.out, &config, &words, Existing::Refuse, weights, &others)?)
}
