//! `ngrams predict --soft`: the probabilities of a dataset's rows.

use std::path::Path;

use batches::{Part, Rows, Smallest};
use classifiers::{Classifier, Words};
use dataset::vocabulary::FIRST_WORD;
use program::location::Location;
use runs::soft_labels::SoftLabels;
use training::soft_labels::{check, each_batch, open, put};
use training::tell::tell;
use training::{Error, Result};

use super::model_at;
use crate::arguments::Predict;

/// Rows that are read together.
const BATCH_ROWS: u32 = 256;

/// Writes the probabilities of a dataset's rows to `out`.
pub(super) fn write(arguments: &Predict, dataset: &Location, out: &Path) -> Result<()> {
    check(out)?;
    let (rows, labels) = of_rows(arguments, dataset)?;
    put(&labels, &rows, out)
}

/// The texts are the words of the rows. Unknown words are skipped, as in the training of n-grams on a dataset. A text
/// without a row of the model has equal probabilities.
fn of_rows(arguments: &Predict, dataset: &Location) -> Result<(Rows, SoftLabels)> {
    let classifier =
        Classifier::read(&model_at(&arguments.of_all.model, &arguments.storage.options(), "predict")?)?;
    let rows = open(dataset, 0, &Smallest::default(), &arguments.storage)?;
    let words = Words::of_rows(&rows.settings().rows);
    if classifier.words() != words {
        tell(&format!(
            "warning: the texts of {} are cleaned, and {} was trained on others, so its probabilities are worse; train it \
             with --words {}",
            rows.name().display(),
            arguments.of_all.model,
            words.name()
        ));
    }
    let classes = rows.settings().rows.labels.names();
    let columns: Option<Vec<u32>> = classes.iter().map(|class| classifier.label(class.as_bytes())).collect();
    let names = classifier.labels().names();
    let Some(columns) = columns.filter(|columns| columns.len() == names.len()) else {
        return Err(Error::unexpected(
            &arguments.of_all.model,
            format!("the labels {}", names.join(", ")),
            format!("{}, the labels of {}", classes.join(", "), rows.name().display()),
        ));
    };
    let words = &rows.vocabulary().words;
    let (mut reader, mut line) = (classifier.reader(), Vec::new());
    let labels = each_batch(&rows, Part::Test, BATCH_ROWS, |batch| {
        let of_row = |(tokens, &length): (&[i64], &i64)| {
            line.clear();
            for &token in &tokens[..length as usize] {
                let Some(word) = token.checked_sub(i64::from(FIRST_WORD)).filter(|&word| word >= 0) else {
                    continue;
                };
                line.extend_from_slice(words.get(word as usize));
                line.push(b' ');
            }
            let Some(scores) = reader.probabilities(&line) else {
                return Some(vec![1.0 / columns.len() as f32; columns.len()]);
            };
            let scores = classifier.labels().calibrated(scores);
            // The probabilities of labels that are independent of each other have another sum than 1.
            let sum: f64 = scores.iter().map(|&score| f64::from(score)).sum();
            let share = |&label: &u32| (f64::from(scores[label as usize]) / sum) as f32;
            let shares: Vec<f32> = columns.iter().map(share).collect();
            shares.iter().all(|share| share.is_finite()).then_some(shares)
        };
        Ok::<_, Error>(batch.tokens.chunks(batch.longest.max(1)).zip(&batch.lengths).map(of_row).collect())
    })?;
    Ok((rows, labels))
}
