//! What the Parquet files of a dataset have in common.

use std::path::Path;

use corpus::digest::Digest;
use corpus::settings::Settings;

use crate::error::of_table;

/// A column of a Parquet file.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) data_type: &'static str,
    pub(crate) is_list: bool,
}

impl Field {
    pub(crate) const LABEL: Self = Self::number("label", "The class, a number from 0");
    pub(crate) const VOTES: Self =
        Self::list("votes", "Number of reviews of the text with 1, 2, 3, 4, 5 stars");
    pub(crate) const HASH: Self = Self::number("hash", "XXH3-64 of the cleaned text, unsigned");
    pub(crate) const SPLIT: Self = Self::number(
        "split",
        "A number from 0 to 999 that depends on the kept words only; a row is in the test split if it is below 1000 times the test fraction",
    );

    pub(crate) const fn number(name: &'static str, description: &'static str) -> Self {
        Self { name, description, data_type: "sc:Integer", is_list: false }
    }

    pub(crate) const fn list(name: &'static str, description: &'static str) -> Self {
        Self { is_list: true, ..Self::number(name, description) }
    }

    pub(crate) const fn text(name: &'static str, description: &'static str) -> Self {
        Self { data_type: "sc:Text", ..Self::number(name, description) }
    }
}

/// The metadata of a file of rows: its format, the names of its labels, and the digest of the dataset.
pub(crate) fn metadata(
    format: &str,
    settings: &Settings,
    digest_name: &'static str,
    digest: Digest,
) -> Vec<(&'static str, String)> {
    vec![
        ("format", format.to_owned()),
        ("schema_version", dataset::SCHEMA_VERSION.to_string()),
        ("labels", settings.labels.names().join("\n")),
        (digest_name, digest.to_string()),
    ]
}

/// Why a verification ended.
pub(crate) enum Stop {
    Interrupted(crate::Error),
    Table(tables::Error),
}

impl From<tables::Error> for Stop {
    fn from(error: tables::Error) -> Self {
        Self::Table(error)
    }
}

impl Stop {
    pub(crate) fn named(self, path: &Path) -> crate::Error {
        match self {
            Self::Interrupted(error) => error,
            Self::Table(error) => of_table(path, error),
        }
    }
}
