//! The prefix of a cross-validation in S3. Each fold is a training below it.

use program::location::S3Url;
use runs::folds::{are_folds, number_in};
use store::{Key, Recorded, S3Options, Store};

use super::Expected;
use crate::error::Result;

/// Limit of the record of all folds.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// A prefix with the folds of a cross-validation.
pub struct FoldsPrefix {
    store: Store,
}

impl FoldsPrefix {
    /// Refuses a prefix that is used, unless its cross-validation is resumed.
    pub fn at(url: &S3Url, s3: &S3Options, expected: Expected) -> Result<Self> {
        let store = Store::open_with(&url.to_string(), s3)?;
        store.probe()?;
        let names = names(&store)?;
        let are_folds = are_folds(names.iter().map(String::as_str));
        if names.is_empty() || (are_folds && expected == Expected::Training) {
            return Ok(Self { store });
        }
        let (found, remedy) = match are_folds {
            true => ("a cross-validation", "resume it with --resume, or choose another --out"),
            false => (names[0].as_str(), "choose another --out"),
        };
        Err(runs::Error::occupied(url.to_string().as_ref(), found, "an unused prefix", remedy).into())
    }

    /// Puts the metrics of all folds. An equal object can exist already.
    pub fn put(&self, name: &str, record: &[u8]) -> Result<()> {
        let key = Key::new(name)?;
        match self.store.put_record(&key, record, RECORD_BYTES_MAX)? {
            Recorded::AsGiven => Ok(()),
            Recorded::Other(_) => {
                let url = format!("{}/{key}", self.store.url());
                let (found, expected) = ("the metrics of other trainings", "the metrics of these folds");
                let remedy = "nothing in S3 is replaced: choose another --out";
                Err(runs::Error::occupied(url.as_ref(), found, expected, remedy).into())
            }
        }
    }
}

/// The URLs of the folds below a prefix, in order; none if it is not the prefix of a cross-validation.
pub fn folds_below(url: &S3Url, s3: &S3Options) -> Result<Vec<S3Url>> {
    let store = Store::open_with(&url.to_string(), s3)?;
    let names = names(&store)?;
    if !are_folds(names.iter().map(String::as_str)) {
        return Ok(Vec::new());
    }
    let mut folds: Vec<(u16, String)> =
        names.into_iter().filter_map(|name| Some((number_in(&name)?, name))).collect();
    folds.sort();
    Ok(folds.iter().map(|(_, name)| url.join(name)).collect())
}

/// The first names below a prefix, each once.
fn names(store: &Store) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    // Keys are listed in order, so equal names are adjacent.
    for listed in store.list("")? {
        let name = listed.key.as_str().split('/').next().unwrap_or_default();
        if names.last().is_none_or(|last| last != name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
