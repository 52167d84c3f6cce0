//! The splits of a training, and the dataset that contains each of them.

use batches::{Part, Rows};

use crate::soft_targets::SoftTargets;

/// The datasets of a training.
#[derive(Clone, Copy)]
pub struct Splits<'a> {
    /// The dataset with the training split.
    pub rows: &'a Rows,
    /// The validation dataset, if the validation split is not in `rows`. All its rows are in its validation split.
    pub validation: Option<&'a Rows>,
    /// The test dataset, if the test split is not in `rows`. All its rows are in its test split.
    pub test: Option<&'a Rows>,
    /// The dataset without labels whose rows were added to `rows`.
    pub unlabelled: Option<&'a Rows>,
    /// The soft labels of the training split, if it has any.
    pub soft: Option<&'a SoftTargets>,
}

impl<'a> Splits<'a> {
    /// The splits of one dataset.
    pub fn of(rows: &'a Rows) -> Self {
        Self { rows, validation: None, test: None, unlabelled: None, soft: None }
    }

    /// The dataset that contains the rows of a split; `None` if the split is empty.
    pub fn rows_of(self, part: Part) -> Option<&'a Rows> {
        let rows = match part {
            Part::Training => self.rows,
            Part::Validation => self.validation.unwrap_or(self.rows),
            Part::Test => self.test.unwrap_or(self.rows),
        };
        (rows.census(part).rows > 0).then_some(rows)
    }
}
