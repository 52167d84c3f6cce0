//! Soft labels of datasets: `trainer predict --soft` writes them, and `trainer fit --soft-labels` reads them.

use std::path::{Path, PathBuf};

use batches::{Arrangement, Batch, Dealing, Division, Loader, Loading, Part, RowWeight, Rows, Smallest};
use dataset::vocabulary::FIRST_WORD;
use program::location::Location;
use program::place::{check_folder, folder_of};
use runs::soft_labels::{Digests, Labelled, SoftLabels, check_new};
use scoring::{Decision, Scoring};
use store::S3Options;

use super::rows::Reader;
use super::{device, model};
use crate::arguments::Predict;
use crate::error::{Error, Result};
use crate::families::classifier::Answers;
use crate::families::ngrams::Classifier;
use crate::families::{SavedClassifier, read_classifier};
use crate::inputs::token_rows;
use crate::places;
use crate::soft_targets::SoftTargets;
use crate::tell::tell;

/// Memory for rows. A larger dataset is read in blocks.
const MEMORY_BYTES: u64 = 1 << 30;

/// Writes the probabilities of a dataset's rows to `out`, predicted by an LSTM.
pub(super) fn write(arguments: &Predict, dataset: &Location, out: &Path) -> Result<()> {
    check(out)?;
    let folder = model::folder(&arguments.model, &arguments.storage.options(), "MODEL")?;
    let (rows, labels) = of_lstm(arguments, dataset, &folder)?;
    put(&labels, &rows, out)
}

/// Writes them as [`write()`] does, predicted by an n-gram model.
pub(super) fn write_by_ngrams(
    arguments: &Predict,
    dataset: &Location,
    out: &Path,
    model: &Path,
) -> Result<()> {
    check(out)?;
    let (rows, labels) = of_ngrams(arguments, dataset, model)?;
    put(&labels, &rows, out)
}

/// Checks the place of the result before it is computed.
fn check(out: &Path) -> Result<()> {
    check_folder(folder_of(out), "--soft")?;
    Ok(check_new(out)?)
}

fn put(labels: &SoftLabels, rows: &Rows, out: &Path) -> Result<()> {
    labels.write(out, digests(rows))?;
    tell(&format!("the probabilities of {} rows are in {}", labels.n_rows(), out.display()));
    Ok(())
}

fn of_lstm(arguments: &Predict, dataset: &Location, folder: &Path) -> Result<(Rows, SoftLabels)> {
    let compute = device::choose(&arguments.computing, arguments.backend.compute)?;
    let classifier = read_classifier(folder, compute.device())?;
    let SavedClassifier { model, vocabulary, config, scoring, trained_on } = &classifier;
    if matches!(scoring, Scoring::Rating { .. }) {
        let expected =
            "a model of --loss label or five-ratings; a model of --loss rating predicts no probability";
        return Err(setting("--soft", "for a model of --loss rating", expected));
    }
    let known = trained_on.as_ref().map(|known| known.smallest_hashes.clone()).unwrap_or_default();
    let rows = open(arguments, dataset, config.tokens_max, &known)?;
    rows.check_fits(vocabulary, &config.preparation, arguments.model.to_string().as_ref())?;
    let known = rows.known(Part::Test);
    if known > 0 {
        tell(&format!(
            "warning: {}: at least {known} of these rows are training rows of the model, so their probabilities are too \
             close to 0 and 1",
            rows.name().display()
        ));
    }
    let decision = config.decision(*scoring);
    let mut answers = Answers::of(model, &compute);
    let labels = each_batch(&rows, arguments.batch, |batch| {
        let outputs = answers.of_rows(token_rows(batch, &batch.tokens))?;
        Ok(outputs.iter().map(|outputs| probabilities(decision, outputs)).collect())
    })?;
    Ok((rows, labels))
}

/// The texts are the words of the rows. Unknown words are skipped, as in the training of n-grams on a dataset. A text
/// without a row of the model has equal probabilities.
fn of_ngrams(arguments: &Predict, dataset: &Location, model: &Path) -> Result<(Rows, SoftLabels)> {
    let classifier = Classifier::read(model)?;
    let rows = open(arguments, dataset, 0, &Smallest::default())?;
    let classes = rows.settings().rows.labels.names();
    let columns: Option<Vec<u32>> = classes.iter().map(|class| classifier.label(class.as_bytes())).collect();
    let names = classifier.labels().names();
    let Some(columns) = columns.filter(|columns| columns.len() == names.len()) else {
        return Err(Error::Unexpected {
            path: arguments.model.to_string().into(),
            found: format!("the labels {}", names.join(", ")),
            expected: format!("{}, the labels of {}", classes.join(", "), rows.name().display()),
        });
    };
    let words = &rows.vocabulary().words;
    let (mut reader, mut line) = (classifier.reader(), Vec::new());
    let labels = each_batch(&rows, arguments.batch, |batch| {
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
            // The probabilities of labels that are independent of each other have another sum than 1.
            let sum: f64 = scores.iter().map(|&score| f64::from(score)).sum();
            let share = |&label: &u32| (f64::from(scores[label as usize]) / sum) as f32;
            let shares: Vec<f32> = columns.iter().map(share).collect();
            shares.iter().all(|share| share.is_finite()).then_some(shares)
        };
        Ok(batch.tokens.chunks(batch.longest.max(1)).zip(&batch.lengths).map(of_row).collect())
    })?;
    Ok((rows, labels))
}

fn open(arguments: &Predict, dataset: &Location, tokens: u32, known: &Smallest) -> Result<Rows> {
    let reader = Reader::with_memory(tokens, MEMORY_BYTES, &arguments.storage);
    let rows = reader.open(dataset, Division::all_test(), known)?;
    rows.check_rows(Part::Test)?;
    Ok(rows)
}

/// Collects the probabilities of all rows, which `answer` computes for a batch; `None` is a result that is not finite.
fn each_batch(
    rows: &Rows,
    batch_rows: u32,
    mut answer: impl FnMut(&Batch) -> Result<Vec<Option<Vec<f32>>>>,
) -> Result<SoftLabels> {
    let loading = Loading {
        part: Part::Test,
        arrangement: Arrangement::Fixed,
        batch_rows: batch_rows as usize,
        from_step: 0,
        dealing: Dealing::alone(),
        row_weight: RowWeight::One,
        loaders: 1,
        ahead: None,
    };
    let n_rows = rows.n_rows_of_file();
    let mut labels = SoftLabels::zeros(n_rows as usize, rows.settings().rows.labels.n_classes());
    let mut n_not_finite = 0;
    for batch in Loader::start(rows, loading)? {
        let batch = batch?;
        for (&row, probabilities) in batch.rows.iter().zip(answer(&batch)?) {
            match probabilities {
                Some(probabilities) => labels.put(row as usize, &probabilities),
                None => n_not_finite += 1,
            }
        }
    }
    match n_not_finite {
        0 => Ok(labels),
        found => Err(scoring::Error::NotFinite { found, rows: n_rows }.into()),
    }
}

/// The probability of each class for these outputs; `None` if one is not finite.
fn probabilities(decision: Decision, outputs: &[f64]) -> Option<Vec<f32>> {
    let probabilities = match decision.scoring() {
        Scoring::Classes { .. } => decision.probabilities(outputs).all().to_vec(),
        _ => {
            let positive = decision.probability(decision.score(outputs))?;
            vec![(1.0 - positive) as f32, positive as f32]
        }
    };
    probabilities.iter().all(|probability| probability.is_finite()).then_some(probabilities)
}

/// Reads the soft labels of a training; `None` without any. Each file belongs to one of the two datasets, and the rows
/// of `unlabelled` have no other labels.
pub(super) fn read(
    files: &[Location],
    rows: &Rows,
    unlabelled: Option<&Rows>,
    s3: &S3Options,
) -> Result<Option<SoftTargets>> {
    if files.is_empty() {
        return Ok(None);
    }
    let n_classes = rows.settings().rows.labels.n_classes();
    let names: Vec<(PathBuf, &Rows)> =
        std::iter::once(rows).chain(unlabelled).map(|rows| (rows.name(), rows)).collect();
    let labelled = names.iter().map(|(name, rows)| Labelled {
        name,
        digests: digests(rows),
        n_rows: rows.n_rows_of_file(),
        n_classes,
    });
    let datasets: Vec<Labelled<'_>> = labelled.collect();
    let mut found = [None, None];
    for file in files {
        let (at, labels) = SoftLabels::read(&places::file(file, s3)?, &datasets)?;
        if found[at].replace(labels).is_some() {
            let of = format!("two files for {}", names[at].0.display());
            return Err(setting("--soft-labels", &of, "one file per dataset"));
        }
    }
    let [of_dataset, of_unlabelled] = found;
    if let (Some(unlabelled), None) = (unlabelled, &of_unlabelled) {
        let name = unlabelled.name().display().to_string();
        let expected =
            format!("a dataset with --soft-labels; write them with `trainer predict MODEL {name} --soft`");
        return Err(setting("--unlabelled", &name, &expected));
    }
    let n_rows = rows.n_rows_of_file() as usize;
    Ok(Some(SoftTargets::new(n_classes, n_rows, of_dataset, of_unlabelled)))
}

fn digests(rows: &Rows) -> Digests {
    Digests { id: rows.id_digest(), text: rows.text_digest() }
}

fn setting(setting: &'static str, found: &str, expected: &str) -> Error {
    Error::Setting { setting, found: found.to_owned(), expected: expected.to_owned() }
}
