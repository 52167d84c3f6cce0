//! The soft labels of a training: for each training row, the probability of each class, which is learned in place of
//! the label. Evaluations do not use them.

use batches::Batch;
use runs::soft_labels::SoftLabels;

/// Soft labels of the training rows of a dataset, and of rows without labels that were added to them.
#[derive(Debug)]
pub struct SoftTargets {
    n_classes: usize,
    /// Number of rows of the dataset. Rows with this index and larger ones are those without labels.
    n_rows: usize,
    dataset: Option<SoftLabels>,
    unlabelled: Option<SoftLabels>,
}

impl SoftTargets {
    /// Soft labels of a dataset with `n_rows` rows, of the rows that follow it, or of both. Rows of the dataset without
    /// soft labels keep their labels.
    pub fn new(
        n_classes: usize,
        n_rows: usize,
        dataset: Option<SoftLabels>,
        unlabelled: Option<SoftLabels>,
    ) -> Self {
        Self { n_classes, n_rows, dataset, unlabelled }
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// The soft labels of the dataset.
    pub fn of_dataset(&self) -> Option<&SoftLabels> {
        self.dataset.as_ref()
    }

    /// The soft labels of the rows without labels.
    pub fn of_unlabelled(&self) -> Option<&SoftLabels> {
        self.unlabelled.as_ref()
    }

    /// The probabilities of a batch's rows, `[B, K]`. Those of a row with its label only are 0 and 1.
    pub fn of_batch(&self, batch: &Batch) -> Vec<f32> {
        let mut probabilities = Vec::with_capacity(batch.rows.len() * self.n_classes);
        for (&row, &label) in batch.rows.iter().zip(&batch.labels) {
            let row = row as usize;
            let (labels, row) = match row.checked_sub(self.n_rows) {
                None => (&self.dataset, row),
                Some(row) => (&self.unlabelled, row),
            };
            match labels {
                Some(labels) => probabilities.extend(labels.row(row)),
                None => {
                    let label = usize::from(label);
                    probabilities
                        .extend((0..self.n_classes).map(|class| f32::from(u8::from(class == label))));
                }
            }
        }
        probabilities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_after_the_dataset_have_the_soft_labels_of_the_unlabelled_dataset() {
        let labels = |rows: &[[f32; 3]]| {
            let mut labels = SoftLabels::zeros(rows.len(), 3);
            rows.iter().enumerate().for_each(|(row, probabilities)| labels.put(row, probabilities));
            labels
        };
        let dataset = labels(&[[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]);
        let unlabelled = labels(&[[0.125, 0.125, 0.75]]);
        let batch = Batch { rows: vec![2, 0, 1], labels: vec![0, 2, 1], ..Batch::default() };
        let found = |dataset, unlabelled| SoftTargets::new(3, 2, dataset, unlabelled).of_batch(&batch);
        assert_eq!(
            found(Some(dataset), Some(unlabelled.clone())),
            [0.125, 0.125, 0.75, 0.5, 0.25, 0.25, 0.0, 1.0, 0.0]
        );
        assert_eq!(found(None, Some(unlabelled)), [0.125, 0.125, 0.75, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    }
}
