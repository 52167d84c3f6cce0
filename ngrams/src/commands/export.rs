//! `ngrams export`: a folder with `predict.py`, a file of ONNX or NumPy, or one of the fastText program. The extension selects
//! the format.

use std::io::Write;
use std::path::Path;

use classifiers::fasttext::Loss;
use classifiers::files::bin::{self, Quantization};
use classifiers::files::{ModelRef, add_npz, to_program, vectors, write_bin, write_npz};
use classifiers::{Classifier, Model};
use durable::check_free;
use program::location::Location;
use runs::onnx::{INLINE_BYTES_MAX, check_both_free};
use runs::saved::PREDICT_NGRAMS;
use scoring::Scoring;
use training::arguments::threads;
use training::exports::{CARD, CardOf, ExportFormat as Format, card};
use training::model::named;
use training::out::{check_place, default_of_path};
use training::tell::tell;
use training::{Error, Result};

use super::model_at;
use crate::arguments::Export;
use crate::classifier::onnx;

/// Columns per code of a quantised matrix, as in the program.
const PART_COLUMNS: usize = 2;
/// The arrays in an exported folder.
const ARRAYS: &str = "model.npz";

/// Writes the model in the format of the extension.
pub(super) fn export(arguments: &Export) -> Result<()> {
    let default = || default_of_path(&named(&arguments.model), "export").into();
    let out = arguments.out.clone().unwrap_or_else(default);
    let format = Format::of(&out, &[Format::Onnx, Format::Npz, Format::Bin, Format::Ftz, Format::Vec])?;
    let Location::Local(out) = out else {
        return Err(Error::setting("--out", out, "a local path"));
    };
    if arguments.rows.is_some() && format != Format::Ftz {
        return Err(Error::setting("--rows", "set", "an --out with the extension .ftz"));
    }
    check_place(&out)?;
    match format {
        Format::Onnx => check_both_free(&out)?,
        _ => check_free(&out)?,
    }
    let path = model_at(&arguments.model, &arguments.storage.options(), "export")?;
    let classifier = Classifier::read(&path)?;
    if matches!(format, Format::Bin | Format::Ftz) && !classifier.labels().choice().is_none() {
        tell("warning: the fastText program predicts without the calibration and the threshold of the model");
    }
    let refused = |expected: &str| Err(Error::setting("MODEL", path.display(), expected));
    match (format, classifier.model(), classifier.stored()) {
        (Format::Folder | Format::Onnx | Format::Npz, _, None) => {
            return refused("a model folder; of a file of the fastText program, --out is .bin, .ftz or .vec");
        }
        (Format::Bin | Format::Ftz | Format::Vec, Model::Linear(_), _) => {
            return refused("a model of embeddings; the fastText program has no linear models");
        }
        (Format::Onnx, Model::FastText(model), _)
            if model.loss() == Loss::HierarchicalSoftmax
                && classifier.labels().n_labels() > onnx::TREE_LABELS_MAX =>
        {
            let most = onnx::TREE_LABELS_MAX;
            return refused(&format!(
                "one of at most {most} labels with hierarchical softmax; export it as a folder or as .bin"
            ));
        }
        (Format::Folder, _, Some(model)) => write_folder(&out, model, &path, arguments, &classifier)?,
        (Format::Onnx, _, Some(model)) => {
            onnx::graph(model, classifier.labels()).write(&out, INLINE_BYTES_MAX)?;
        }
        (Format::Npz, _, Some(model)) => write_npz(&out, model)?,
        (Format::Bin, Model::FastText(model), _) => write_bin(&out, model)?,
        (_, Model::FastText(model), _) => {
            write(&out, &to_program(&out, model)?, format, arguments)?;
        }
        (_, Model::Program(model), _) => write(&out, model, format, arguments)?,
    }
    tell(&format!("wrote {}", out.display()));
    Ok(())
}

/// Writes a folder with the arrays, `predict.py` and the card.
fn write_folder(
    out: &Path,
    model: ModelRef<'_>,
    path: &Path,
    arguments: &Export,
    classifier: &Classifier,
) -> Result<()> {
    let labels = classifier.labels().names();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let card = card(
        path,
        CardOf {
            name: &named(&arguments.model).file_stem().unwrap_or_default().to_string_lossy(),
            kind: match model {
                ModelRef::Linear(_) => "A linear classifier of n-grams",
                ModelRef::FastText(_) => "A classifier of embedded words and n-grams",
            },
            tag: "n-grams",
            requires: "NumPy",
            labels: &labels,
            choice: classifier.labels().choice(),
            scoring: Scoring::Logit,
        },
    );
    let mut folder = durable::NewFolder::begin(out)?;
    add_npz(&mut folder, ARRAYS, model)?;
    for (name, content) in [(CARD, card.as_str()), ("predict.py", PREDICT_NGRAMS)] {
        folder.put(name, |file| file.write_all(content.as_bytes()))?;
    }
    Ok(folder.finish()?)
}

fn write(out: &Path, model: &bin::BinModel, format: Format, arguments: &Export) -> Result<()> {
    match format {
        Format::Vec => vectors::write_model(out, model)?,
        Format::Ftz => {
            let how = Quantization {
                part_columns: PART_COLUMNS,
                separate_norms: false,
                output: false,
                rows_max: arguments.rows.unwrap_or(0),
                threads: threads().get(),
            };
            let quantised = model.quantised(&how);
            let expected =
                |error: bin::Unquantisable| Error::setting("--out", out.display(), error.to_string());
            quantised.map_err(expected)?.write(out)?;
        }
        _ => model.write(out)?,
    }
    Ok(())
}
