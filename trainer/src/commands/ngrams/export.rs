//! `trainer export` with an n-gram model: a file of the fastText program. The extension of the file selects its format.

use std::path::Path;

use ::ngrams::files::bin::{self, Quantization};
use ::ngrams::files::{to_program, vectors, write_bin};
use program::location::Location;

use super::threads;
use crate::arguments::Export;
use crate::commands::export::named;
use crate::commands::out::{check_place, default_of_path};
use crate::error::{Error, Result};
use crate::families::ngrams::{Classifier, Model};
use crate::tell::tell;

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
pub(in crate::commands) fn export(arguments: &Export, model: &Path) -> Result<()> {
    let out = match &arguments.out {
        Some(Location::Local(path)) => path.clone(),
        Some(Location::S3(url)) => {
            return Err(refused("--out", &url.to_string(), "a local file for an n-gram model"));
        }
        None => default_of_path(&named(&arguments.model), "bin"),
    };
    let format = match out.extension().and_then(|extension| extension.to_str()) {
        Some("bin") => Format::Bin,
        Some("ftz") => Format::Ftz,
        Some("vec") => Format::Vec,
        _ => {
            let expected = "a file with the extension .bin, .ftz or .vec for an n-gram model";
            return Err(refused("--out", &out.display().to_string(), expected));
        }
    };
    if arguments.rows.is_some() && format != Format::Ftz {
        return Err(refused("--rows", "set", "an --out with the extension .ftz"));
    }
    check_place(&out)?;
    let classifier = Classifier::read(model)?;
    match (classifier.model(), format) {
        (Model::Linear(_), _) => {
            let path = model.display().to_string();
            return Err(refused(
                "MODEL",
                &path,
                "a model of embeddings; the fastText program has no linear models",
            ));
        }
        (Model::FastText(model), Format::Bin) => write_bin(&out, model)?,
        (Model::FastText(model), _) => write(&out, &to_program(&out, model)?, format, arguments)?,
        (Model::Program(model), _) => write(&out, model, format, arguments)?,
    }
    tell(&format!("wrote {}", out.display()));
    Ok(())
}

fn write(out: &Path, model: &bin::Model, format: Format, arguments: &Export) -> Result<()> {
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
                |error: bin::Unquantisable| refused("--out", &out.display().to_string(), &error.to_string());
            quantised.map_err(expected)?.write(out)?;
        }
    }
    Ok(())
}

fn refused(setting: &'static str, found: &str, expected: &str) -> Error {
    Error::Setting { setting, found: found.to_owned(), expected: expected.to_owned() }
}
