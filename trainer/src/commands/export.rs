//! `trainer export`: writes a model folder with files for other programs, or a file of ONNX.

use std::path::{Path, PathBuf};

use program::location::Location;
use program::temporary;
use runs::onnx::{INLINE_BYTES_MAX, check_both_free};
use runs::saved;
use scoring::Choice;
use tch::Device;
use training::exports::{CARD, CardOf, ExportFormat, card};
use training::model::named;
use training::out::{check_place, default_of_path};
use training::remote::NewFolder;
use training::tell::tell;

use super::model_at;
use crate::arguments::Export;
use crate::error::Result;
use crate::families::classifier::onnx::graph;
use crate::families::{SavedClassifier, read_classifier};

/// Reads a model folder and writes a new one, or a file.
pub fn export(arguments: &Export) -> Result<()> {
    let out = arguments.out.clone().unwrap_or_else(|| default_out(&arguments.model));
    let format = ExportFormat::of(&out, &[ExportFormat::Onnx])?;
    match out {
        Location::Local(out) if format == ExportFormat::Onnx => {
            if arguments.force {
                return Err(training::Error::setting("--force", "set", "an --out that is a folder").into());
            }
            check_place(&out)?;
            check_both_free(&out)?;
            let SavedClassifier { model, vocabulary, config, scoring, .. } =
                read_classifier(&model_of(arguments)?, Device::Cpu)?;
            graph(&model, &config, scoring, &vocabulary)?.write(&out, INLINE_BYTES_MAX)?;
            tell(&format!("wrote {}", out.display()));
        }
        Location::S3(url) if format == ExportFormat::Onnx => {
            return Err(training::Error::setting("--out", url, "a local file").into());
        }
        Location::Local(out) => {
            let names = export_to(&out, arguments)?;
            tell(&format!("wrote {}: {names}", out.display()));
        }
        Location::S3(url) => {
            // The prefix is checked before the model is read.
            let place = NewFolder::at(&url, &arguments.storage.options())?;
            let tmpdir = std::env::temp_dir();
            let folder =
                temporary::folder_in(&tmpdir).map_err(|source| training::Error::io(&tmpdir, source))?;
            let local = folder.path().join("export");
            let names = export_to(&local, arguments)?;
            place.put(&local)?;
            tell(&format!("wrote {url}: {names}"));
        }
    }
    Ok(())
}

fn model_of(arguments: &Export) -> Result<PathBuf> {
    model_at(&arguments.model, &arguments.storage.options(), "export")
}

/// Writes a model folder. Returns a list of what is in it.
fn export_to(out: &Path, arguments: &Export) -> Result<String> {
    check_place(out)?;
    if !arguments.force && saved::is_listed(out) {
        let remedy = "replace it with --force, or choose another --out";
        return Err(runs::Error::occupied(out, "a model folder", "a new name", remedy).into());
    }
    let mut place = if arguments.force { saved::replacing(out)? } else { saved::begin(out)? };
    let folder = model_of(arguments)?;
    let SavedClassifier { model, vocabulary, config, scoring, trained_on } =
        read_classifier(&folder, Device::Cpu)?;
    let choice = Choice { calibration: config.calibration, threshold: config.threshold };
    if let Some(wide) = model.wide() {
        wide.write(&mut place)?;
    }
    let weights = |path: &Path| model.lstm().parameters().write(path);
    let card = card(
        &folder,
        CardOf {
            name: &named(&arguments.model).file_stem().unwrap_or_default().to_string_lossy(),
            kind: if model.wide().is_some() {
                "An LSTM classifier with n-grams"
            } else {
                "An LSTM classifier"
            },
            tag: "lstm",
            requires: "NumPy",
            labels: &config.preparation.labels.names(),
            choice,
            scoring,
        },
    );
    let mut others = saved::files_for_others(&config, &vocabulary);
    others.push((CARD, card.into()));
    others.extend(trained_on.map(|trained_on| trained_on.file()));
    let names = others.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    saved::write_with(place, &config, &vocabulary, weights, &others)?;
    Ok(format!("weights, vocabulary, configuration, {names}"))
}

/// The default of `--out`: the name of the training folder with `.export`. Without a training folder, it is
/// the name of the model folder with `.export`.
fn default_out(model: &Location) -> Location {
    default_of_path(&named(model), "export").into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::PathBuf;

    use super::*;

    #[test]
    fn an_export_has_the_name_of_its_training_by_default() {
        for model in
            ["reviews.model", "data/reviews.model/model", "reviews", "s3://bucket/reviews.model/model"]
        {
            let location = Location::of_folder(model.into()).unwrap();
            assert_eq!(default_out(&location), PathBuf::from("reviews.export").into(), "{model}");
        }
    }
}
