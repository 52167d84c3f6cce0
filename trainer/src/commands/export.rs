//! `trainer export`: writes a model folder with files for other programs.

use std::path::{Path, PathBuf};

use runs::saved;
use runs::saved::folder::Unfinished;
use runs::training::MODEL;
use tch::Device;

use super::model;
use super::out::{check_place, default_of};
use crate::arguments::Export;
use crate::error::Result;
use crate::families::{SavedClassifier, read_classifier};
use crate::tell::tell;

/// Reads a model folder and writes a new one.
pub fn export(arguments: &Export) -> Result<()> {
    let out = arguments.out.clone().unwrap_or_else(|| default_out(&arguments.model));
    check_place(&out)?;
    if !arguments.force && saved::is_listed(&out) {
        return Err(runs::Error::Occupied {
            path: out,
            found: "a model folder".to_owned(),
            expected: "a new name",
            remedy: "replace it with --force, or choose another --out".to_owned(),
        }
        .into());
    }
    let place = if arguments.force { Unfinished::replacing(&out)? } else { Unfinished::begin(&out)? };
    let SavedClassifier { model, vocabulary, config, trained_on, .. } =
        read_classifier(&model::folder(&arguments.model, "MODEL")?, Device::Cpu)?;
    let weights = |path: &Path| model.lstm().parameters().write(path);
    let mut others = saved::files_for_others(&config, &vocabulary);
    others.extend(trained_on.map(|trained_on| trained_on.file()));
    let names = others.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    saved::write_with(place, &config, &vocabulary, weights, &others)?;
    tell(&format!("wrote {}: weights, vocabulary, configuration, {names}", out.display()));
    Ok(())
}

/// The default of `--out`: the name of the training folder with `.export`. Without a training folder, it is
/// the name of the model folder with `.export`.
fn default_out(model: &Path) -> PathBuf {
    let absolute = std::path::absolute(model).unwrap_or_else(|_| model.to_owned());
    let is_of_training = absolute.file_name().is_some_and(|name| name == MODEL);
    let named = if is_of_training { absolute.parent().unwrap_or(&absolute) } else { &absolute };
    default_of(named, "export")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_has_the_name_of_its_training_by_default() {
        for model in ["reviews.model", "data/reviews.model/model", "reviews"] {
            assert_eq!(default_out(Path::new(model)), Path::new("reviews.export"), "{model}");
        }
    }
}
