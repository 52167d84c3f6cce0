//! The n-grams of `trainer fit`: trained on the labelled training rows, they are the wide part of a model (`--with-ngrams`),
//! or the teacher of rows without labels (`--unlabelled` without `--soft-labels`).

use std::thread::available_parallelism;

use batches::{Loader, Loading, Part, Rows};
use classifiers::linear::{LinearModel, LinearSettings, Numbered};
use classifiers::{Builders, Reading, Texts, Words};
use dataset::vocabulary::FIRST_WORD;
use program::exit::{Exit, Failed};
use runs::recipe::{Objective, Recipe};
use runs::soft_labels::SoftLabels;
use scoring::Metrics;
use serde::Serialize;
use training::soft_labels::each_batch;
use training::texts::in_order_of;

use super::training::Session;
use crate::error::{Error, Result};
use crate::families::Classifier;
use crate::families::classifier::{Evaluation, Head, Wide, evaluate_rows};
use crate::inputs::token_rows;
use crate::train::splits::Splits;

/// Rows that are read at once.
const BATCH_ROWS: u32 = 1024;

/// Metrics of the validation split by each part of a model and by both.
#[derive(Debug, Serialize)]
pub(super) struct Parts {
    /// The LSTM alone.
    lstm: Metrics,
    /// The n-grams alone.
    ngrams: Metrics,
    /// Both, as they are saved.
    both: Metrics,
    /// The factors of their outputs.
    factors: Head,
}

/// Trains n-grams on the labelled training rows. Their settings are the defaults of `ngrams train`. Equal rows and seeds give
/// the same bits, so that each rank has the same n-grams, and a resumed training those of the interrupted one.
pub(super) fn trained(rows: &Rows, seed: u64, session: &Session) -> Result<LinearModel> {
    rows.check_classes(Part::Training)?;
    let texts = texts(rows)?;
    let settings = LinearSettings {
        seed,
        threads: available_parallelism().map_or(1, usize::from),
        is_deterministic: true,
        n_named: 0,
        ..LinearSettings::default()
    };
    let interrupts = session.interrupts();
    let is_stopped = || interrupts.is_stop_requested();
    let numbered = Numbered::of(&texts, &settings, None)?;
    let words = Words::of_rows(&rows.settings().rows);
    match numbered.train(&texts, words, &settings, &[], |_| {}, &is_stopped) {
        Err(classifiers::Error::Stopped) => {
            let message =
                "interrupted while n-grams were trained, before the first step; run the command again";
            Err(Failed::new(Exit::TryAgain, message).into())
        }
        trained => Ok(trained?),
    }
}

/// The labelled training rows as texts.
fn texts(rows: &Rows) -> Result<Texts> {
    let builders =
        Builders::new(Reading { words: Words::of_rows(&rows.settings().rows), ..Reading::default() });
    let mut builder = builders.builder();
    let (words, names) = (&rows.vocabulary().words, rows.settings().rows.labels.names());
    let loading = Loading::of_evaluation(Part::Training, BATCH_ROWS as usize);
    for batch in Loader::start(rows, loading)? {
        let batch = batch?;
        let of_rows = token_rows(&batch, &batch.tokens);
        for ((tokens, &label), &row) in of_rows.iter().zip(&batch.labels).zip(&batch.rows) {
            // Rows without labels follow those of the dataset.
            if u64::from(row) < rows.n_rows_of_file() {
                let known = tokens.iter().filter_map(|&id| u32::try_from(id).ok()?.checked_sub(FIRST_WORD));
                let label = names[usize::from(label)].as_bytes();
                builder.add_known(known, |at| words.get(at as usize), &[label])?;
            }
        }
    }
    Ok(in_order_of(names, builders.merge(vec![builder])?))
}

/// The probabilities of rows without labels, for the classes of `rows`.
pub(super) fn taught(ngrams: LinearModel, rows: &Rows, unlabelled: &Rows) -> Result<SoftLabels> {
    let wide = wide(ngrams, rows)?;
    each_batch(unlabelled, Part::Training, BATCH_ROWS, |batch| {
        let probabilities = wide.probabilities(token_rows(batch, &batch.tokens));
        Ok::<_, Error>(probabilities.into_iter().map(Some).collect())
    })
}

fn wide(ngrams: LinearModel, rows: &Rows) -> Result<Wide> {
    let (words, names) = (&rows.vocabulary().words, rows.settings().rows.labels.names());
    Wide::of(ngrams, Head::NGRAMS, words, &names)
        .map_err(|(found, expected)| Error::internal(&format!("{found}, expected {expected}")))
}

/// Adds n-grams to a trained model, with the factors that fit the validation split best. Returns the metrics of that split.
pub(super) fn widen(
    model: &mut Classifier,
    ngrams: &LinearModel,
    recipe: &Recipe,
    splits: Splits<'_>,
    session: &Session,
    loaders: usize,
) -> Result<Parts> {
    let rows = splits.rows_of(Part::Validation).unwrap_or(splits.rows);
    let evaluation = Evaluation::of(recipe, Part::Validation, rows, loaders)?;
    model.widen(wide(ngrams.clone(), splits.rows)?);
    let objective = model.settings().objective;
    let mut evaluated = |head: Head| {
        if let Some(wide) = model.wide_mut() {
            wide.set_head(head);
        }
        evaluate_rows(model, rows, &session.ranks(), session.compute(), &evaluation)
    };
    let (lstm, ngrams) = (evaluated(Head::LSTM)?, evaluated(Head::NGRAMS)?);
    // The machines of other ranks may round otherwise, so all use the factors of rank 0.
    let fitted = || Ok(Head::fitted(&lstm.scores, &ngrams.scores, |label| weight(objective, label)));
    let factors = session.ranks().of_rank_0(fitted)?;
    let both = evaluated(factors)?.metrics;
    let parts = Parts { lstm: lstm.metrics, ngrams: ngrams.metrics, both, factors };
    session.tell(&parts.described());
    Ok(parts)
}

/// The weight of a label in the loss.
fn weight(objective: Objective, label: u8) -> f64 {
    match objective {
        Objective::Label { pos_weight } if label == 1 => pos_weight,
        Objective::Classes { class_weights } => class_weights.all()[usize::from(label)],
        Objective::Label { .. } | Objective::Rating | Objective::FiveRatings => 1.0,
    }
}

impl Parts {
    fn described(&self) -> String {
        let Self { lstm, ngrams, both, factors } = self;
        format!(
            "validation accuracy {:.4} with n-grams: the LSTM alone {:.4}, n-grams alone {:.4}; outputs are {:.2} times \
             those of the LSTM plus {:.2} times those of the n-grams",
            both.accuracy, lstm.accuracy, ngrams.accuracy, factors.lstm, factors.ngrams
        )
    }
}
