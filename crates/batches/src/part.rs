//! The splits of a dataset.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Training, validation or test split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Rows that train the model.
    Training,
    /// Rows for the choice of settings and for early stopping.
    Validation,
    /// Rows for one final evaluation.
    Test,
}

impl Part {
    /// All splits, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::Training, Self::Validation, Self::Test];
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Training => "training",
            Self::Validation => "validation",
            Self::Test => "the test",
        })
    }
}
