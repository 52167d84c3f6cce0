//! The code that `fit` and `pretrain` share. It runs a training from its first step, or from a checkpoint,
//! until the model is saved.

mod groups;
mod session;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use batches::Part;
use batches::balance::BalanceRule;
use classifiers::linear::LinearModel;
use launch::interrupt::Requested;
use program::location::Location;
use runs::recipe::{Position, Recipe};
use runs::saved::TrainedOn;
use runs::training::{
    CHECKPOINTS, DatasetRecord, EvaluationRecord, FORMAT_VERSION, Line, MODEL, RunSettings, SETTINGS,
    UnlabelledRecord, most_wrong, put_json, read_json, with_words,
};
use scoring::{Choice, Scores};
use tch::Device;
use training::log::Log;
use training::out::{self, Out};
use training::outcome;
use training::tell::tell;
use training::{datasets, places, remote};

use super::ngrams::Parts;
use super::progress::Progress;
use super::recipe::steps_of_epoch;
use super::summary::Summary;
use super::{init, ngrams};
use crate::arguments::{LstmFlags, TrainingFlags};
use crate::error::{Error, Result};
use crate::families::classifier::{EvaluatedRows, Evaluation, choose, evaluate_rows};
use crate::families::{Model, save_model};
use crate::gradients::check_wire;
use crate::train::checkpoint::{remembered, restore, save};
use crate::train::splits::Splits;
use crate::train::trace::Trace;
use crate::train::{End, Event, Hooks, TrainOptions, Training, train};

pub(super) use session::Session;

/// Time between two looks at who waits to join.
const LOOK: Duration = Duration::from_secs(1);

/// The output, by default beside the dataset with another extension. A file that is no dataset is then refused first, because
/// the user named only the file.
pub(super) fn output(out: &Option<Location>, dataset: &Location, extension: &str) -> Result<Location> {
    if let Some(out) = out {
        return Ok(out.clone());
    }
    datasets::check([dataset])?;
    Ok(out::default_of(dataset, extension))
}

/// A training without its state.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) session: &'a Session,
    /// The training folder.
    pub(super) out: &'a Out,
    pub(super) recipe: &'a Recipe,
    pub(super) splits: Splits<'a>,
    /// The n-grams that are added to the model after the last epoch.
    pub(super) ngrams: Option<&'a LinearModel>,
    /// Files of soft labels, for the record.
    pub(super) soft_labels: &'a [Location],
    /// Whether the test split is evaluated after every epoch.
    pub(super) test_every: bool,
    pub(super) lstm: &'a LstmFlags,
    pub(super) training: &'a TrainingFlags,
}

impl Job<'_> {
    /// Trains to the end and saves the model. `notes` are printed before the first step. Returns the summary on
    /// rank 0.
    pub(super) fn run(self, notes: impl Iterator<Item = String>) -> Result<Option<Summary>> {
        let Self { session, out, recipe, splits, .. } = self;
        if session.is_arrival() {
            let mut training = Training::new(recipe, session.device())?;
            let changes = self.arrive(&mut training)?;
            return self.until_complete(&mut training, changes);
        }
        let ranks = session.ranks();
        if ranks.of_rank_0(|| Ok(out.is_complete(recipe, &splits.rows.settings().rows)?))? {
            let summary = Summary::of_complete(out.folder(), out.shown());
            out.model_saved()?;
            self.end();
            session.tell(&format!("already complete: the model is in {}", out.shown().join(MODEL).display()));
            return Ok(ranks.is_first().then_some(summary));
        }
        check_decisions(recipe, ranks.world_size())?;
        let mut training = self.begin()?;
        check_wire(recipe, &training.model, session.compute(), ranks.world_size())?;
        notes.for_each(|line| session.tell(&line));
        if ranks.is_first() {
            out.clear()?;
            match &session.group.borrow().members {
                Some(members) if self.is_replayed() => members.end()?,
                Some(members) => members.begin(&self.described()?)?,
                None => {}
            }
        }
        // The group of a lost rank must not outlive the loss.
        drop(ranks);
        self.until_complete(&mut training, Vec::new())
    }

    /// Trains to the end and saves the model, by changing groups. `changes` are the lines about the present group.
    fn until_complete(self, training: &mut Training, mut changes: Vec<Line>) -> Result<Option<Summary>> {
        loop {
            let cause = match self.train(training, &changes) {
                Ok((End::Arrivals, log)) => {
                    log.map_or(Ok(()), Log::finish)?;
                    None
                }
                Ok((end, log)) => match self.complete(training, end, log) {
                    Err(error) => Some(error),
                    summary => return summary,
                },
                Err(error) => Some(error),
            };
            changes = self.regroup(cause, training)?;
        }
    }

    /// Saves the model of a training that has ended.
    fn complete(self, training: &mut Training, end: End, log: Option<Log>) -> Result<Option<Summary>> {
        let Self { session, out, .. } = self;
        if end == End::Stopped {
            self.end();
            log.map_or(Ok(()), Log::finish)?;
            out.checkpoints_saved()?;
            return Err(training::Error::Interrupted { resume: out.shown().join(CHECKPOINTS) }.into());
        }
        if let Some(best) = &training.best {
            training.model.parameters_mut().put(best)?;
            if let Some(kept) = kept(&training.position) {
                session.tell(&kept);
            }
        }
        let parts = self.widen(training)?;
        self.finish(training, parts, log)
    }

    /// Tells those who wait to join that nobody can any more.
    fn end(self) {
        let group = self.session.group.borrow();
        if let Some(members) = group.members.as_ref().filter(|_| group.ranks.is_first()) {
            // This training does not need the store any more.
            let _ = members.end();
        }
    }

    /// A new training, or one that is resumed from a checkpoint.
    fn begin(self) -> Result<Training> {
        let Self { session, out, recipe, splits, training, .. } = self;
        let (ranks, compute) = (session.ranks(), session.compute());
        let Some(wanted) = &training.resume else { return self.begin_anew() };
        // The folder may not exist on the machines of other ranks.
        let mut folder = PathBuf::new();
        let is_latest = *wanted == Location::Local("latest".into());
        let has_checkpoint = !is_latest
            || ranks.of_rank_0(|| {
                let newest = out
                    .checkpoints()
                    .newest(|error| tell(&format!("skipped a damaged checkpoint: {error}")))?;
                Ok(newest.map(|newest| folder = newest).is_some())
            })?;
        if !has_checkpoint {
            // There is no checkpoint if a job is restarted before its first checkpoint.
            let training = self.begin_anew()?;
            if ranks.is_first() {
                tell("no checkpoint to resume from: starting from the first step");
            }
            return Ok(training);
        }
        ranks.of_rank_0(|| {
            if !is_latest {
                folder = checkpoint_at(wanted, training)?;
            }
            Ok(())
        })?;
        let mut training = Training::new(recipe, compute.device())?;
        restore(&folder, recipe, splits.rows, &mut training, &ranks)?;
        if ranks.is_first() {
            tell(&format!(
                "resuming after step {}, in epoch {}",
                training.position.steps,
                training.position.epoch + 1
            ));
        }
        Ok(training)
    }

    fn begin_anew(self) -> Result<Training> {
        let Self { session, recipe, splits, lstm, .. } = self;
        let mut training = Training::new(recipe, session.device())?;
        if let Some(path) = &lstm.init_from {
            let (s3, std) = (self.training.storage.options(), lstm.embedding_std);
            init::from(path, std, &s3, &mut training.model, splits.rows)?;
        }
        // All ranks start from the weights of rank 0, whatever their libraries.
        session.ranks().broadcast(training.model.parameters().tensors())?;
        Ok(training)
    }

    /// Trains, shows progress, and saves checkpoints. Returns the log on rank 0.
    fn train(self, training: &mut Training, changes: &[Line]) -> Result<(End, Option<Log>)> {
        let Self { session, out, recipe, splits, test_every, training: flags, .. } = self;
        let Session { interrupts, compute, .. } = session;
        let ranks = &*session.ranks();
        let mut progress = if ranks.is_first() { Some(self.show(training, changes)?) } else { None };
        let interval = Duration::from_secs_f64(60.0 * flags.checkpoint_minutes.clamp(0.0, 1e9));
        let mut asked = |position: &Position| {
            let is_due =
                flags.checkpoint_steps.is_some_and(|every| (position.steps + 1).is_multiple_of(every));
            // Only rank 0 reads the clock; the ranks then agree on the result.
            let is_time = ranks.is_first() && session.saved_at.get().elapsed() >= interval;
            if is_time {
                session.saved_at.set(Instant::now());
            }
            interrupts.requested().or((is_due || is_time).then_some(Requested::Checkpoint))
        };
        let mut looked_at = Instant::now();
        let mut has_arrivals = || {
            let group = session.group.borrow();
            let Some(members) = group.members.as_ref().filter(|_| ranks.is_first()) else { return false };
            if looked_at.elapsed() < LOOK {
                return false;
            }
            looked_at = Instant::now();
            // Without a response, nobody can join.
            members.arrivals().is_ok_and(|arrivals| !arrivals.is_empty())
        };
        let mut save_here = |training: &Training| {
            let remembered = remembered(recipe, training, ranks)?;
            if !ranks.is_first() {
                return Ok(());
            }
            save(out.checkpoints(), recipe, splits.rows, training, &remembered)?;
            Ok(out.checkpoint_saved(&out.checkpoints().folder_of(training.position.steps))?)
        };
        let mut on_event = |event: &Event<'_>| {
            if let Some(progress) = &mut progress {
                progress.note(event);
            }
        };
        let traced = |path| Trace::new(path, flags.trace_steps.clone());
        // Ranks of a later group have not all traced the same steps.
        let is_first_group = session.group.borrow().members.as_ref().is_none_or(|of| of.generation() == 0);
        let mut trace = flags.trace.clone().filter(|_| is_first_group).map(traced);
        let mut hooks = Hooks {
            on_event: &mut on_event,
            asked: &mut asked,
            has_arrivals: &mut has_arrivals,
            save: &mut save_here,
            trace: trace.as_mut(),
        };
        let options = TrainOptions {
            compute: compute.clone(),
            device_bytes: flags.device_memory,
            loaders: usize::from(flags.running.loaders),
            test_every,
            throttle: session.throttle(&flags.throttle),
            survives: session.survives(),
        };
        let end = train(recipe, splits, ranks, &options, training, &mut hooks)?;
        let mut log = progress.map(Progress::finish);
        // Only rank 0 writes the trace.
        if let (Some(log), Some(trace)) = (&mut log, trace) {
            log.keep(trace.finish());
        }
        Ok((end, log))
    }

    /// Writes the settings, then the first line of metrics.
    fn show(self, training: &Training, changes: &[Line]) -> Result<Progress> {
        let Self { session, out, recipe, splits, training: flags, .. } = self;
        let Splits { rows, validation, test, unlabelled, .. } = splits;
        let steps_of_epoch =
            steps_of_epoch(rows.n_rows(Part::Training), recipe.batch_rows, recipe.accumulate);
        let device = described(session.device());
        let init_from = self.init_from();
        let world_size = session.ranks().world_size();
        let settings = RunSettings {
            version: FORMAT_VERSION,
            sentimill: env!("CARGO_PKG_VERSION").to_owned(),
            preparation: Some(rows.settings().rows.clone()),
            dataset: DatasetRecord::of(rows),
            validation: validation.map(DatasetRecord::of),
            unlabelled: unlabelled.map(|unlabelled| UnlabelledRecord {
                path: unlabelled.place(),
                rows: rows.n_rows(Part::Training) - rows.census(Part::Training).rows,
            }),
            soft_labels: self.soft_labels.iter().map(absolute).collect(),
            test: test.map(DatasetRecord::of),
            init_from,
            input: places::input_of(rows.name(), &flags.storage.options())?,
            recipe: serde_json::to_value(recipe).map_err(|error| Error::internal(&error))?,
            parameters: training.model.parameters().n_numbers() as u64,
            steps_of_epoch,
            world_size,
            device: device.clone(),
        };
        put_json(&out.folder().join(SETTINGS), &settings)?;
        let done = training.position.steps;
        let mut log = Log::begin(out.folder(), done, world_size, device)?;
        changes.iter().for_each(|line| log.write(line));
        let steps = steps_of_epoch * u64::from(recipe.epochs);
        Progress::new(steps, done, steps_of_epoch, flags.log_steps, log)
    }

    /// The absolute path of the initial weights. If a training is resumed without the flag, the recorded path
    /// is kept.
    fn init_from(self) -> Option<String> {
        let Self { out, lstm, training, .. } = self;
        if let Some(path) = &lstm.init_from {
            return Some(absolute(path));
        }
        training.resume.as_ref()?;
        read_json::<RunSettings>(&out.folder().join(SETTINGS))?.init_from
    }

    /// Evaluates the model and saves it.
    fn finish(self, training: &Training, parts: Option<Parts>, log: Option<Log>) -> Result<Option<Summary>> {
        let session = self.session;
        let choice = self.choose(training)?;
        let evaluated = self.evaluate(training, choice)?;
        let mut summary = None;
        let write = || {
            if let Some(log) = log {
                summary = Some(self.write(training, parts, log, choice, evaluated)?);
            }
            Ok(())
        };
        // The others stay until the model is written, to write it themselves if rank 0 dies. In S3 they cannot, and fail.
        if session.survives() {
            session.ranks().of_rank_0(write)?;
            self.end();
        } else {
            write()?;
        }
        Ok(summary)
    }

    /// Writes what is known of the model, and then the model. Only on rank 0.
    fn write(
        self,
        training: &Training,
        parts: Option<Parts>,
        mut log: Log,
        choice: Choice,
        evaluated: Option<(EvaluationRecord, Scores)>,
    ) -> Result<Summary> {
        let Self { out, recipe, splits: Splits { rows, test, .. }, .. } = self;
        let mut summary = Summary::of(out.folder(), out.shown(), &training.position);
        summary.parts = parts;
        if let Some((record, scores)) = evaluated {
            let metrics = record.metrics;
            if let Some(chosen) = outcome::chosen(choice, record.scoring) {
                tell(&chosen);
            }
            summary.evaluation = Some((&record).into());
            outcome::lines(&record).iter().for_each(|line| tell(line));
            if record.part == Part::Test {
                log.write(&Line::Test { step: record.step, metrics: metrics.into() });
            }
            out.keep_evaluation(record, &scores)?;
        }
        // The model is written last: it marks the training as complete. A lost rank 0 may have written it.
        if !out.model().is_dir() {
            let division = [recipe.test_fraction, recipe.validation_fraction];
            let n_rows = rows.n_rows(Part::Training);
            let trained_on = TrainedOn::new(division, test.is_some(), n_rows, rows.smallest().clone());
            save_model(&out.model(), &training.model, recipe, rows, choice, &trained_on)?;
        }
        out.model_saved()?;
        tell(&format!("the model is in {}", out.shown().join(MODEL).display()));
        log.finish()?;
        Ok(summary)
    }

    /// Adds the n-grams to the model, if there are any.
    fn widen(self, training: &mut Training) -> Result<Option<Parts>> {
        let Self { session, recipe, splits, ngrams, training: flags, .. } = self;
        let (Some(ngrams), Model::Classifier(model)) = (ngrams, &mut training.model) else { return Ok(None) };
        let loaders = usize::from(flags.running.loaders);
        ngrams::widen(model, ngrams, recipe, splits, session, loaders).map(Some)
    }

    /// Chooses calibration and threshold, if the recipe requires them.
    fn choose(self, training: &Training) -> Result<Choice> {
        let Self { session, recipe, splits, training: flags, .. } = self;
        match training.model.classifier() {
            Some(model) => {
                let (ranks, compute) = (session.ranks(), session.compute());
                choose(recipe, model, splits, &ranks, compute, usize::from(flags.running.loaders))
            }
            None => Ok(Choice::default()),
        }
    }

    /// Evaluates the test split, or the validation split if the test split is empty.
    fn evaluate(self, training: &Training, choice: Choice) -> Result<Option<(EvaluationRecord, Scores)>> {
        let Self { session, recipe, splits, training: flags, .. } = self;
        let (ranks, compute) = (session.ranks(), session.compute());
        let Some(model) = training.model.classifier() else { return Ok(None) };
        let rows_of = |part| Some((part, splits.rows_of(part)?));
        let Some((part, of)) = rows_of(Part::Test).or_else(|| rows_of(Part::Validation)) else {
            return Ok(None);
        };
        let loaders = usize::from(flags.running.loaders);
        let evaluation = Evaluation::of(recipe, part, of, loaders)?;
        let scoring = evaluation.decision.scoring();
        let decision = choice.decision(scoring);
        let Choice { calibration, threshold } = choice;
        let evaluated = evaluate_rows(model, of, &ranks, compute, &Evaluation { decision, ..evaluation })?;
        // Only rank 0 writes them.
        let (wrong, intervals) = match ranks.is_first() {
            true => (
                with_words(of.path(), most_wrong(decision, &evaluated.scores))?,
                Some(evaluated.intervals(decision)),
            ),
            false => (Vec::new(), None),
        };
        let probabilities = evaluated.probabilities(decision);
        let EvaluatedRows { metrics, scores, .. } = evaluated;
        let record = EvaluationRecord {
            version: FORMAT_VERSION,
            part,
            dataset: of.place(),
            rows_digest: Some(of.labelled_digest(part)),
            step: training.position.steps,
            scoring,
            tokens_max: recipe.tokens_max,
            classes: of.settings().rows.labels.given_names(),
            calibration,
            threshold,
            metrics,
            intervals,
            probabilities,
            scores_sha256: String::new(),
            wrong,
        };
        Ok(Some((record, scores)))
    }
}

/// Refuses to replay the decisions of another number of ranks.
fn check_decisions(recipe: &Recipe, world_size: usize) -> Result<()> {
    let Some(BalanceRule::Replay { decisions }) = &recipe.balance else { return Ok(()) };
    match decisions.iter().map(|decision| decision.parts.len()).find(|&n_ranks| n_ranks != world_size) {
        Some(n_ranks) => Err(training::Error::setting(
            "--decisions",
            format!("a training of {n_ranks} ranks"),
            format!("one of {world_size}, the number of ranks of this training"),
        )
        .into()),
        None => Ok(()),
    }
}

/// The absolute path, or the URL.
fn absolute(place: &Location) -> String {
    match place {
        Location::Local(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            path.to_string_lossy().into_owned()
        }
        Location::S3(url) => url.to_string(),
    }
}

/// The local folder of the checkpoint that `--resume` names.
fn checkpoint_at(wanted: &Location, training: &TrainingFlags) -> Result<PathBuf> {
    match wanted {
        Location::Local(folder) => check_checkpoint(folder).map(|()| folder.clone()),
        Location::S3(url) => Ok(remote::fetch_checkpoint(url, &training.storage.options())?),
    }
}

/// Refuses a folder for `--resume` that is not a checkpoint.
fn check_checkpoint(folder: &Path) -> Result<()> {
    let refused = |found: &str, expected: String| {
        let found = format!("--resume is {found}");
        Err(training::Error::unexpected(folder.display(), found, expected).into())
    };
    if !folder.exists() {
        return refused("missing: no such folder", "a checkpoint, or --resume without a folder".to_owned());
    }
    if folder.join(CHECKPOINTS).is_dir() {
        let expected = format!("a checkpoint; pass --out {} --resume", folder.display());
        return refused("a training folder", expected);
    }
    Ok(())
}

/// The name of a device.
fn described(device: Device) -> String {
    match device {
        Device::Cuda(number) => format!("cuda:{number}"),
        _ => "cpu".to_owned(),
    }
}

/// The epoch whose weights are saved.
fn kept(position: &Position) -> Option<String> {
    let (loss, epoch) = position.best?;
    Some(format!("kept epoch {epoch} of {}: validation loss {loss:.4}", position.epoch))
}
