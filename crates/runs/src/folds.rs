//! The folder of a cross-validation, which `fit --folds` writes.
//!
//! ```text
//! reviews.folds/
//!   fold-1/ fold-2/ …   one training folder per fold; its test split is the rows that the fold holds back
//!   folds.json          the metrics of each fold, their mean and standard deviation
//!   lock                the process that is training
//! ```
//!
//! `folds.json` is written last: it marks the cross-validation as complete. It contains no times and no paths of the
//! machine, so an interrupted and resumed cross-validation writes the same bytes as an uninterrupted one.

use std::collections::BTreeMap;
use std::path::Path;

use program::exit::Failed;
use scoring::{Estimate, Metrics, estimates};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::{json, training};

/// The metrics of all folds.
pub const FOLDS: &str = "folds.json";

/// Incremented if older programs would misread newer files.
const VERSION: u32 = 1;

/// The content of [`FOLDS`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldsRecord {
    version: u32,
    /// The version of the program.
    pub sentimill: String,
    /// Mean and standard deviation of each metric over the folds.
    pub metrics: BTreeMap<String, Estimate>,
    /// The folds.
    pub folds: Vec<FoldRecord>,
}

/// One fold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldRecord {
    /// Its number, from 1.
    pub fold: u16,
    /// Its training folder, in the folder of the cross-validation.
    pub training: String,
    /// Metrics of the rows that it holds back.
    pub metrics: Metrics,
}

impl FoldsRecord {
    /// The record of folds with these metrics, from the first fold to the last.
    pub fn of(metrics: &[Metrics]) -> Self {
        let fold = |(fold, &metrics)| FoldRecord { fold, training: name_of(fold), metrics };
        Self {
            version: VERSION,
            sentimill: env!("CARGO_PKG_VERSION").to_owned(),
            metrics: estimates(metrics),
            folds: (1..).zip(metrics).map(fold).collect(),
        }
    }

    /// The file.
    pub fn json(&self) -> Result<Vec<u8>> {
        json::document(self).map_err(|error| Failed::defect(error).into())
    }
}

/// Name of a fold's training folder.
pub fn name_of(fold: u16) -> String {
    format!("fold-{fold}")
}

/// The number in the name of a fold's training folder.
pub fn number_in(name: &str) -> Option<u16> {
    name.strip_prefix("fold-")?.parse().ok().filter(|&number| name_of(number) == name)
}

/// Whether a folder or prefix with these names is that of a cross-validation.
pub fn are_folds<'a>(names: impl IntoIterator<Item = &'a str>) -> bool {
    let mut names = names.into_iter().peekable();
    names.peek().is_some() && names.all(|name| name == FOLDS || number_in(name).is_some())
}

/// The numbers of the folds in a folder, ascending; none if it is not the folder of a cross-validation.
pub fn numbers_in(folder: &Path) -> Vec<u16> {
    let names = training::names(folder).unwrap_or_default();
    let mut numbers: Vec<u16> = names.iter().filter_map(|name| number_in(name)).collect();
    numbers.sort_unstable();
    if are_folds(names.iter().map(String::as_str)) { numbers } else { Vec::new() }
}

/// Refuses to replace a folder that is neither empty nor a cross-validation with unchanged files and no others.
pub fn check_replaceable(folder: &Path) -> Result<()> {
    let names = training::names(folder)?;
    if let Some(other) = names.iter().find(|name| !are_folds([name.as_str()])) {
        let expected = "a cross-validation with unchanged files, which --force replaces";
        let remedy = "nothing was changed; move the folder away, or choose another --out";
        return Err(Error::occupied(folder, other, expected, remedy));
    }
    let folds = names.iter().filter(|name| number_in(name).is_some());
    folds.map(|name| folder.join(name)).try_for_each(|fold| training::check_replaceable(&fold))
}

/// Deletes the cross-validation in a folder.
pub fn clear(folder: &Path) -> Result<()> {
    let mut names = training::names(folder)?;
    names.retain(|name| are_folds([name.as_str()]));
    Ok(durable::delete_together(folder, &names)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cross_validation_is_recognized_by_its_names() {
        assert!(are_folds(["fold-1", "fold-12", FOLDS]));
        for other in [&["fold-1", "notes.txt"][..], &["fold-01"], &["fold-x"], &["model"], &[]] {
            assert!(!are_folds(other.iter().copied()), "{other:?}");
        }
    }
}
