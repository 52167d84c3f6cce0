//! `trainer export`: a saved model, written again elsewhere.

use tch::Device;

use crate::arguments::Export;
use crate::error::Result;
use crate::models::{read_model, save_model};
use crate::saved::Existing;

/// Reads a model whole, whatever wrote it, and writes it anew.
pub fn export(arguments: &Export) -> Result<()> {
    let (model, words, config) = read_model(&arguments.model, Device::Cpu)?;
    let Export { out, .. } = arguments;
    save_model(out, &model, &config.preparation, config.tokens_max, config.dataset, &words, Existing::Refuse)
}
