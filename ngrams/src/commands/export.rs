//! `ngrams export`: a file of the fastText program. The extension of the file selects its format.

use std::path::Path;

use classifiers::files::bin::{self, Quantization};
use classifiers::files::{to_program, vectors, write_bin};
use program::location::Location;
use training::arguments::threads;
use training::model::named;
use training::out::{check_place, default_of_path};
use training::tell::tell;
use training::{Error, Result};

use super::model_at;
use crate::arguments::Export;
use crate::classifier::{Classifier, ClassifierModel};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// The model.
    Bin,
    /// The model with quantised matrices.
    Ftz,
    /// The vectors of words, as text.
    Vec,
}

/// Columns per code of a quantised matrix, as in the program.
const PART_COLUMNS: usize = 2;

/// Writes the model as a file of the fastText program.
pub(super) fn export(arguments: &Export) -> Result<()> {
    let path = model_at(&arguments.model, &arguments.storage.options(), "export")?;
    let out = match &arguments.out {
        Some(Location::Local(path)) => path.clone(),
        Some(Location::S3(url)) => {
            return Err(Error::setting("--out", url, "a local file"));
        }
        None => default_of_path(&named(&arguments.model), "bin"),
    };
    let format = match out.extension().and_then(|extension| extension.to_str()) {
        Some("bin") => Format::Bin,
        Some("ftz") => Format::Ftz,
        Some("vec") => Format::Vec,
        _ => {
            let expected = "a file with the extension .bin, .ftz or .vec";
            return Err(Error::setting("--out", out.display(), expected));
        }
    };
    if arguments.rows.is_some() && format != Format::Ftz {
        return Err(Error::setting("--rows", "set", "an --out with the extension .ftz"));
    }
    check_place(&out)?;
    let classifier = Classifier::read(&path)?;
    match (classifier.model(), format) {
        (ClassifierModel::Linear(_), _) => {
            return Err(Error::setting(
                "MODEL",
                path.display(),
                "a model of embeddings; the fastText program has no linear models",
            ));
        }
        (ClassifierModel::FastText(model), Format::Bin) => write_bin(&out, model)?,
        (ClassifierModel::FastText(model), _) => write(&out, &to_program(&out, model)?, format, arguments)?,
        (ClassifierModel::Program(model), _) => write(&out, model, format, arguments)?,
    }
    tell(&format!("wrote {}", out.display()));
    Ok(())
}

fn write(out: &Path, model: &bin::BinModel, format: Format, arguments: &Export) -> Result<()> {
    match format {
        Format::Bin => model.write(out)?,
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
    }
    Ok(())
}
