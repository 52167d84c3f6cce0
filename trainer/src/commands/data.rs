//! The datasets of `fit`, and what is noted about them.

use batches::{Division, Part, Rows, Smallest};
use classifiers::linear::LinearModel;
use dataset::card::WARNING;
use program::location::Location;
use training::datasets::{self, Reader, cut, sampled, trained_on_warning, validation_warning};

use super::training::Session;
use super::{ngrams, recipe, soft_labels};
use crate::arguments::{BalanceName, Fit, Optimisation};
use crate::error::Result;
use crate::soft_targets::SoftTargets;
use crate::train::splits::Splits;

/// The datasets of a training.
pub(super) struct Data {
    rows: Rows,
    /// The dataset without labels, and the number of its rows that are texts of `rows` and were omitted.
    unlabelled: Option<(Rows, u64)>,
    soft: Option<SoftTargets>,
    /// The n-grams of --with-ngrams.
    pub(super) ngrams: Option<LinearModel>,
    validation: Option<Rows>,
    test: Option<Rows>,
}

impl Data {
    /// Opens DATASET, and the datasets of --unlabelled, --validation and --test, which must have its vocabulary and row
    /// settings. Trains the n-grams that the training needs.
    pub(super) fn open(arguments: &Fit, division: Division, session: &Session) -> Result<Self> {
        let Fit { lstm, training, dataset, unlabelled, validation, test, .. } = arguments;
        // Before any of them is read.
        datasets::check([unlabelled, validation, test].into_iter().flatten().chain([dataset]))?;
        let reader = Reader::new(lstm.tokens, training.running.memory as u64, &training.storage);
        let mut rows = reader.open(&arguments.dataset, division, &Smallest::default())?;
        let unlabelled = match &arguments.unlabelled {
            Some(unlabelled) => {
                let unlabelled =
                    reader.open(unlabelled, Division::by_fractions(0.0, 0.0)?, &Smallest::default())?;
                let n_omitted = rows.add_unlabelled(&unlabelled)?;
                Some((unlabelled, n_omitted))
            }
            None => None,
        };
        let without_labels = unlabelled.as_ref().map(|(rows, _)| rows);
        let train = || ngrams::trained(&rows, arguments.optimisation.seed, session);
        let ngrams = arguments.with_ngrams.then(train).transpose()?;
        let teacher = |unlabelled: &Rows| {
            let teacher = ngrams.clone().map_or_else(train, Ok)?;
            ngrams::taught(teacher, &rows, unlabelled)
        };
        let s3 = training.storage.options();
        let soft = soft_labels::read(&arguments.soft_labels, &rows, without_labels, &s3, teacher)?;
        check_classes(&rows, soft.as_ref())?;
        let held_out = |location: &Option<Location>, division| {
            let location = location.as_ref();
            location.map(|location| open_beside(location, division, &rows, &reader)).transpose()
        };
        let validation = held_out(&arguments.validation, Division::all_validation())?;
        let test = held_out(&arguments.test, Division::all_test())?;
        Ok(Self { rows, unlabelled, soft, ngrams, validation, test })
    }

    /// The splits.
    pub(super) fn splits(&self) -> Splits<'_> {
        Splits {
            rows: &self.rows,
            validation: self.validation.as_ref(),
            test: self.test.as_ref(),
            unlabelled: self.unlabelled.as_ref().map(|(rows, _)| rows),
            soft: self.soft.as_ref(),
        }
    }

    /// Notes and warnings about the rows and the chosen settings, for rank 0.
    pub(super) fn notes(
        &self,
        arguments: &Fit,
        recipe: &runs::recipe::Recipe,
        session: &Session,
    ) -> Result<Vec<String>> {
        let Self { rows, unlabelled, validation, test, .. } = self;
        let trained_on: Vec<&Rows> =
            std::iter::once(rows).chain(unlabelled.as_ref().map(|(rows, _)| rows)).collect();
        let shared = match validation {
            Some(validation) => session.ranks().of_rank_0(|| Ok(validation.n_trained_on(&trained_on)?))?,
            None => 0,
        };
        let notes = [
            recipe::chosen_of_fit(arguments, recipe, rows)?,
            recipe::without_kernels(recipe, session.compute()),
            sampled(rows, arguments.sample),
            alone(&arguments.optimisation, session),
            cut(rows, arguments.lstm.tokens),
            rows.card()
                .iter()
                .find(|(name, _)| *name == WARNING)
                .map(|(name, text)| format!("{name}: {text}")),
            unlabelled.as_ref().and_then(|(unlabelled, n_omitted)| omitted(unlabelled, rows, *n_omitted)),
            validation.as_ref().and_then(|validation| validation_warning(validation, rows, shared)),
            test.as_ref().and_then(|test| trained_on_warning(&test.name(), test.known(Part::Test))),
        ];
        Ok(notes.into_iter().flatten().collect())
    }
}

/// Refuses training rows of one label, unless no row is learned or evaluated by its label.
fn check_classes(rows: &Rows, soft: Option<&SoftTargets>) -> Result<()> {
    let Err(error) = rows.check_classes(Part::Training) else { return Ok(()) };
    if soft.is_none_or(|soft| soft.of_dataset().is_none()) || rows.n_rows(Part::Training) == 0 {
        return Err(error.into());
    }
    for (part, setting, flag) in [
        (Part::Test, "--test-fraction", "--test"),
        (Part::Validation, "--validation-fraction", "--validation"),
    ] {
        if rows.n_rows(part) > 0 {
            return Err(training::Error::setting(
                setting,
                "above 0",
                format!(
                    "0 or another dataset as {flag}, because the labels of {} cannot test a model: {error}",
                    rows.name().display()
                ),
            )
            .into());
        }
    }
    Ok(())
}

/// A note about flags that need several ranks.
pub(super) fn alone(optimisation: &Optimisation, session: &Session) -> Option<String> {
    let flags = [
        ("--balance", optimisation.balance != BalanceName::Off),
        ("--sync-every", optimisation.sync_every > 1),
        ("--wire", optimisation.wire.is_some_and(|wire| !wire.is_full())),
    ];
    let passed: Vec<&str> =
        flags.into_iter().filter_map(|(flag, is_passed)| is_passed.then_some(flag)).collect();
    let verb = if passed.len() == 1 { "has" } else { "have" };
    (session.is_alone() && !passed.is_empty()).then(|| {
        format!(
            "{} {verb} no effect, because there is one rank; start several with `trainer launch`",
            passed.join(" and ")
        )
    })
}

/// A note about rows without labels that are not trained on.
fn omitted(unlabelled: &Rows, rows: &Rows, n_omitted: u64) -> Option<String> {
    let (unlabelled, rows) = (unlabelled.name(), rows.name());
    (n_omitted > 0).then(|| {
        format!("{}: omitted {n_omitted} rows, which are texts of {}", unlabelled.display(), rows.display())
    })
}

/// Opens a dataset whose rows are held out from training on `rows`.
fn open_beside(location: &Location, division: Division, rows: &Rows, reader: &Reader) -> Result<Rows> {
    let held_out = reader.open(location, division, rows.smallest())?;
    held_out.check_fits(&rows.vocabulary().words, &rows.settings().rows, &rows.name())?;
    Ok(held_out)
}
