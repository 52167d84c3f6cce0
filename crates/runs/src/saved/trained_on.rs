//! `trained_on.json`: the rows that a model was trained on. An evaluation on some of them prints a warning.

use std::path::Path;

use batches::{SMALLEST_MAX, Smallest};
use durable::{REMEDY, read_bounded};
use serde::{Deserialize, Serialize};

use super::TRAINED_ON;
use crate::error::Result;

/// Incremented if older programs would misread newer files.
const FORMAT_VERSION: u32 = 1;
/// Twenty digits per hash, plus separators.
const BYTES_MAX: u64 = 1 << 20;

/// The rows that a model was trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedOn {
    format_version: u32,
    /// Fraction of the dataset in the test split.
    pub test_fraction: f64,
    /// Fraction of the dataset in the validation split.
    pub validation_fraction: f64,
    /// Whether another dataset was the test split.
    pub has_test: bool,
    /// Number of rows in the training split.
    pub rows: u64,
    /// Their smallest hashes.
    pub smallest_hashes: Smallest,
}

impl TrainedOn {
    /// Takes the fractions and the training split of a dataset.
    pub fn new(
        [test_fraction, validation_fraction]: [f64; 2],
        has_test: bool,
        rows: u64,
        smallest_hashes: Smallest,
    ) -> Self {
        let format_version = FORMAT_VERSION;
        Self { format_version, test_fraction, validation_fraction, has_test, rows, smallest_hashes }
    }

    /// The file for a model's folder.
    pub fn file(&self) -> super::interchange::File {
        let mut json = serde_json::to_vec(self).expect("plain values are JSON");
        json.push(b'\n');
        (TRAINED_ON, json)
    }

    pub(super) fn read(path: &Path) -> Result<Self> {
        let json = read_bounded(path, BYTES_MAX)?;
        let refused = |found: String| {
            let expected = format!("the rows that a model was trained on, format version {FORMAT_VERSION}");
            durable::Error::unexpected(path, "its content", found, expected, REMEDY)
        };
        let read: Self = serde_json::from_slice(&json).map_err(|error| refused(error.to_string()))?;
        match read.fault() {
            Some(fault) => Err(refused(fault).into()),
            None => Ok(read),
        }
    }

    fn fault(&self) -> Option<String> {
        let n_hashes = self.smallest_hashes.len() as u64;
        if self.format_version != FORMAT_VERSION {
            return Some(format!("of format version {}", self.format_version));
        }
        if ![self.test_fraction, self.validation_fraction].iter().all(|share| (0.0..1.0).contains(share)) {
            return Some(format!("with shares of {} and {}", self.test_fraction, self.validation_fraction));
        }
        if !self.smallest_hashes.is_sound() || n_hashes != self.rows.min(SMALLEST_MAX as u64) {
            return Some(format!("with {n_hashes} hashes of {} rows, or in another order", self.rows));
        }
        None
    }
}
