//! The files in the folder of a dataset that other programs read: the padded copy, the Parquet files of ids and of
//! texts, and their description. The manifest of the dataset lists them.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use dataset::commit::ListedFile;
use dataset::manifest::{DatasetManifest, ids_name, manifest_name, padded_name};
use program::exit::{Exit, Failed};
use thiserror::Error;

use crate::error::{Error, Result, at};

/// A file in the folder of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beside {
    pub(crate) kind: Kind,
    pub(crate) name: String,
}

/// What a file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A copy of the dataset with padded rows.
    Padded,
    /// The ids of the rows, as Parquet.
    Ids,
    /// The texts of the rows, as Parquet.
    Texts,
    /// The description of the Parquet files.
    Croissant,
}

impl Beside {
    /// The files that a manifest lists, with their SHA-256.
    pub(crate) fn listed(manifest: &DatasetManifest, dataset: &str) -> Vec<(Self, String)> {
        let listed = |kind, file: &Option<ListedFile>| {
            let ListedFile { name, sha256, .. } = file.clone()?;
            Some((Self { kind, name }, sha256))
        };
        let padded = manifest.padded_sha256.clone();
        let padded = padded.map(|sha256| (Self { kind: Kind::Padded, name: padded_name(dataset) }, sha256));
        let others = [
            listed(Kind::Ids, &manifest.ids),
            listed(Kind::Texts, &manifest.texts),
            listed(Kind::Croissant, &manifest.croissant),
        ];
        padded.into_iter().chain(others.into_iter().flatten()).collect()
    }

    /// The SHA-256 of this file in a manifest that lists it.
    pub(crate) fn recorded(&self, manifest: &DatasetManifest) -> Option<String> {
        let of = |file: &Option<ListedFile>| {
            file.as_ref().filter(|file| file.name == self.name).map(|file| file.sha256.clone())
        };
        match self.kind {
            Kind::Padded => manifest.padded_sha256.clone(),
            Kind::Ids => of(&manifest.ids),
            Kind::Texts => of(&manifest.texts),
            Kind::Croissant => of(&manifest.croissant),
        }
    }

    /// Refuses, before any work is done, an existing file that cannot be an earlier version of this one.
    pub(crate) fn check_existing(&self, path: &Path) -> Result<()> {
        let (begin, found, expected): (&[u8], _, _) = match self.kind {
            Kind::Padded => {
                (b"\x89HDF\r\n\x1a\n", "a file that is not HDF5", "a copy of this dataset or no file")
            }
            Kind::Ids | Kind::Texts => {
                (b"PAR1", "a file that is not Parquet", "the rows of this dataset or no file")
            }
            Kind::Croissant => {
                (b"{", "a file that is not JSON", "the description of this dataset or no file")
            }
        };
        if !at(path, "read its metadata", path.try_exists())? {
            return Ok(());
        }
        let mut there = Vec::new();
        let read = File::open(path).and_then(|file| file.take(begin.len() as u64).read_to_end(&mut there));
        at(path, "read the existing file", read)?;
        if there == begin {
            return Ok(());
        }
        let (found, expected) = (found.to_owned(), expected.to_owned());
        Err(Error::OtherFile { path: path.to_owned(), found, expected })
    }
}

/// The name of a file of texts. The file is in the folder of the dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextsName(String);

/// Why an argument is not the name of a file of texts. The message does not repeat the argument, which a caller
/// prints before it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadTextsName {
    /// It has a folder.
    #[error("found a folder, expected the name of a file, which is written into the folder of --out")]
    Folder,
    /// It has another extension.
    #[error("expected a name that ends in .parquet, such as reviews.parquet")]
    Extension,
}

impl FromStr for TextsName {
    type Err = BadTextsName;

    fn from_str(name: &str) -> Result<Self, BadTextsName> {
        match name.strip_suffix(".parquet") {
            _ if name.contains('/') => Err(BadTextsName::Folder),
            None | Some("") => Err(BadTextsName::Extension),
            Some(_) => Ok(Self(name.to_owned())),
        }
    }
}

impl fmt::Display for TextsName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Kind {
    /// What a message calls the file.
    pub(crate) fn described(self) -> &'static str {
        match self {
            Self::Padded => "the padded copy of --padded",
            Self::Ids => "the table of --parquet",
            Self::Texts => "the table of --texts",
            Self::Croissant => "the description of the tables",
        }
    }
}

/// Refuses two files of one name.
pub(crate) fn check_names(requested: &[Beside], dataset: &str) -> Result<()> {
    let Some(texts) = requested.iter().find(|file| file.kind == Kind::Texts) else { return Ok(()) };
    let others = [dataset.to_owned(), manifest_name(dataset), ids_name(dataset)];
    if !others.contains(&texts.name) {
        return Ok(());
    }
    let found = "found the name of another file of this dataset, expected a name of its own";
    Err(Failed::new(Exit::Usage, format!("--texts {}: {found}", texts.name)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_texts_has_no_folder_and_ends_in_parquet() {
        assert_eq!("reviews.parquet".parse::<TextsName>().unwrap().to_string(), "reviews.parquet");
        for (name, error) in [
            ("out/reviews.parquet", BadTextsName::Folder),
            ("s3://bucket/reviews.parquet", BadTextsName::Folder),
            ("reviews.h5", BadTextsName::Extension),
            (".parquet", BadTextsName::Extension),
            ("", BadTextsName::Extension),
        ] {
            assert_eq!(name.parse::<TextsName>(), Err(error), "{name}");
        }
    }
}
