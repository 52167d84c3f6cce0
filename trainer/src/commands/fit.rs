//! `trainer fit`: from arguments to a saved model.

mod recipe;

use std::path::Path;
use std::time::{Duration, Instant};

use tch::Device;

use self::recipe::{chosen, division, recipe};
use super::out::Out;
use super::progress::{Log, Progress, tell};
use super::{device, init, outcome};
use crate::arguments::{Fit, Running};
use crate::checkpoint::restore;
use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::families::classifier::{Evaluation, evaluate_rows};
use crate::families::{Model, save_model};
use crate::ranks::Ranks;
use crate::train::{End, Hooks, Options, Training, train};
use batches::{Division, Part, Reading, Rows, Smallest};
use launch::interrupt::{Asked, Interrupts};
use runs::recipe::{Position, Recipe};
use runs::saved::TrainedOn;
use runs::training::{
    DatasetRecord, EvaluationRecord, FORMAT_VERSION, Line, RunSettings, SETTINGS, most_wrong, put_json,
};
use scoring::RowScore;

/// Trains a model. Every rank calls it with the same arguments; rank 0 writes.
pub fn fit(arguments: &Fit) -> Result<()> {
    let interrupts = Interrupts::listen().map_err(Error::Signals)?;
    let compute = device::choose(&arguments.running.computing)?;
    let device = compute.device();
    let ranks = Ranks::join(device)?;
    let out = Out::take(&arguments.out, arguments.keep, arguments.resume.is_some(), &ranks)?;
    let known = Smallest::default();
    let rows = open(&arguments.dataset, division(arguments)?, arguments.tokens, &arguments.running, &known)?;
    if !arguments.pretrain {
        rows.check_classes(Part::Training)?;
    }
    let test = arguments.test.as_deref().map(|path| open_test(path, &rows, arguments)).transpose()?;
    let recipe = recipe(arguments, &rows, device)?;
    let tested = test.as_ref().unwrap_or(&rows);
    let job =
        Job { arguments, recipe: &recipe, rows: &rows, tested, ranks: &ranks, compute: &compute, out: &out };

    if ranks.told(|| out.is_complete(&recipe, &rows.settings().rows))? {
        if ranks.is_first() {
            tell(&format!("already complete: the model is in {}", out.model().display()));
        }
        return Ok(());
    }
    let mut training = job.begin()?;
    if ranks.is_first() {
        [chosen(arguments, &recipe, &rows), cut(&rows, arguments.tokens)]
            .iter()
            .flatten()
            .for_each(|line| tell(line));
    }
    let known = test.as_ref().and_then(|test| trained_on_warning(test.path(), test.known(Part::Test)));
    if let Some(warning) = known.filter(|_| ranks.is_first()) {
        tell(&warning);
    }
    let (end, log) = job.run(&interrupts, &mut training)?;
    if end == End::Stopped {
        log.map_or(Ok(()), Log::finish)?;
        return Err(Error::Interrupted { resume: out.checkpoints().folder().to_owned() });
    }
    if let Some(best) = &training.best {
        training.model.parameters_mut().put(best)?;
        if let Some(kept) = kept(&training.position).filter(|_| ranks.is_first()) {
            tell(&kept);
        }
    }
    job.finish(&training, log)
}

/// All that a training has, but for its state.
#[derive(Clone, Copy)]
struct Job<'a> {
    arguments: &'a Fit,
    recipe: &'a Recipe,
    rows: &'a Rows,
    /// What has the test part.
    tested: &'a Rows,
    ranks: &'a Ranks,
    compute: &'a Compute,
    out: &'a Out,
}

/// What is to be said where rows may be longer than what is read of them.
fn cut(rows: &Rows, tokens: u32) -> Option<String> {
    let kept = rows.settings().rows.max_tokens;
    let is_cut = tokens > 0 && (kept == 0 || kept > tokens);
    let kept = if kept == 0 { "all".to_owned() } else { format!("up to {kept}") };
    is_cut.then(|| {
        format!("reads the first {tokens} words of a row; the dataset has {kept}, and --tokens 0 reads them")
    })
}

/// Which epoch's weights become the model.
fn kept(position: &Position) -> Option<String> {
    let (loss, epoch) = position.best?;
    Some(format!("kept epoch {epoch} of {}: validation loss {loss:.4}", position.epoch))
}

fn steps_of_epoch(rows: u64, batch_rows: usize, accumulate: usize) -> u64 {
    rows.div_ceil(batch_rows as u64).div_ceil(accumulate as u64)
}

/// Opens a dataset for a command.
pub(crate) fn open(
    path: &Path,
    division: Division,
    tokens: u32,
    running: &Running,
    known: &Smallest,
) -> Result<Rows> {
    let reading = Reading { division, tokens_max: tokens, memory_bytes: running.memory << 20 };
    Ok(Rows::open_knowing(path, &reading, known)?)
}

/// What is to be said of an evaluation on rows that were for training, so many of which are known.
pub(crate) fn trained_on_warning(evaluated: &Path, known: u64) -> Option<String> {
    (known > 0).then(|| {
        format!(
            "warning: {}: at least {known} of the rows that are evaluated were for training; what comes out is better than \
             for new reviews: evaluate rows that were held back, as by --test-fraction of fit",
            evaluated.display()
        )
    })
}

fn open_test(path: &Path, rows: &Rows, arguments: &Fit) -> Result<Rows> {
    let test = open(path, Division::all_test(), arguments.tokens, &arguments.running, rows.smallest())?;
    test.check_fits(&rows.vocabulary().words, &rows.settings().rows, rows.path())?;
    Ok(test)
}

impl Job<'_> {
    /// A new training, or one that goes on from a checkpoint.
    fn begin(self) -> Result<Training> {
        let Self { arguments, recipe, rows, ranks, compute, out, .. } = self;
        let Some(wanted) = &arguments.resume else { return self.begin_anew() };
        // The others may not see the folder.
        let mut folder = wanted.clone();
        let has_checkpoint = wanted.as_os_str() != "latest"
            || ranks.told(|| {
                let newest = out.checkpoints().newest(|error| tell(&format!("passed over: {error}")))?;
                Ok(newest.map(|newest| folder = newest).is_some())
            })?;
        if !has_checkpoint {
            // A job that is started again before its first checkpoint.
            let training = self.begin_anew()?;
            if ranks.is_first() {
                tell("there is no checkpoint yet: begins anew");
            }
            return Ok(training);
        }
        let mut training = Training::new(recipe, compute.device());
        restore(&folder, recipe, rows, &mut training, ranks)?;
        if ranks.is_first() {
            tell(&format!(
                "resumes after step {}, in epoch {}",
                training.position.steps,
                training.position.epoch + 1
            ));
        }
        Ok(training)
    }

    fn begin_anew(self) -> Result<Training> {
        let Self { arguments, recipe, rows, ranks, compute, .. } = self;
        let mut training = Training::new(recipe, compute.device());
        if let Some(path) = &arguments.init_from {
            init::from(path, &mut training.model, rows.vocabulary())?;
        }
        // What rank 0 drew is what all begin with, whatever their libraries.
        ranks.broadcast(training.model.parameters().tensors())?;
        Ok(training)
    }

    /// Trains, shows how it goes, and saves checkpoints; on rank 0 there is a log.
    fn run(self, interrupts: &Interrupts, training: &mut Training) -> Result<(End, Option<Log>)> {
        let Self { arguments, recipe, rows, ranks, compute, out, .. } = self;
        let mut progress = if ranks.is_first() { Some(self.show(training)?) } else { None };
        let interval = Duration::from_secs_f64(60.0 * arguments.checkpoint_minutes.clamp(0.0, 1e9));
        let mut saved_at = Instant::now();
        let mut asked = |position: &Position| {
            let is_due =
                arguments.checkpoint_steps.is_some_and(|every| (position.steps + 1).is_multiple_of(every));
            // Only rank 0 looks at the clock; the ranks agree on what it says.
            let is_time = ranks.is_first() && saved_at.elapsed() >= interval;
            if is_time {
                saved_at = Instant::now();
            }
            interrupts.asked().or((is_due || is_time).then_some(Asked::Checkpoint))
        };
        let mut save = |training: &Training| {
            if ranks.is_first() { out.checkpoints().save(recipe, rows, training) } else { Ok(()) }
        };
        let mut on_event = |event: &crate::train::Event<'_>| {
            if let Some(progress) = &mut progress {
                progress.note(event);
            }
        };
        let mut hooks = Hooks { on_event: &mut on_event, asked: &mut asked, save: &mut save };
        let options = Options {
            compute: compute.clone(),
            device_bytes: arguments.device_memory << 20,
            loaders: usize::from(arguments.running.loaders),
        };
        let end = train(recipe, rows, ranks, &options, training, &mut hooks)?;
        Ok((end, progress.map(Progress::finish)))
    }

    /// Begins the lines of a training, behind its settings.
    fn show(self, training: &Training) -> Result<Progress> {
        let Self { arguments, recipe, rows, tested, ranks, compute, out } = self;
        let steps_of_epoch =
            steps_of_epoch(rows.census(Part::Training).rows, recipe.batch_rows, recipe.accumulate);
        let device = described(compute.device());
        let settings = RunSettings {
            version: FORMAT_VERSION,
            sentimill: env!("CARGO_PKG_VERSION").to_owned(),
            preparation: Some(rows.settings().rows.clone()),
            dataset: DatasetRecord::of(rows),
            test: arguments.test.as_ref().map(|_| DatasetRecord::of(tested)),
            recipe: serde_json::to_value(recipe).map_err(|error| Error::internal(&error))?,
            parameters: training.model.parameters().n_numbers() as u64,
            steps_of_epoch,
            world_size: ranks.world_size(),
            device: device.clone(),
        };
        put_json(&out.folder().join(SETTINGS), &settings)?;
        let done = training.position.steps;
        let log = Log::begin(out.folder(), done, ranks.world_size(), device)?;
        let steps = steps_of_epoch * u64::from(recipe.epochs);
        Progress::new(steps, done, steps_of_epoch, arguments.log_steps, log)
    }

    /// Tests the model, and saves it.
    fn finish(self, training: &Training, log: Option<Log>) -> Result<()> {
        let Self { arguments, recipe, rows, out, .. } = self;
        let evaluated = self.evaluate(training)?;
        let Some(mut log) = log else { return Ok(()) };
        if let Some((record, scores)) = evaluated {
            let metrics = record.metrics;
            outcome::lines(record.part, &metrics).iter().for_each(|line| tell(line));
            if record.part == Part::Test {
                log.write(&Line::Test { step: record.step, metrics });
            }
            out.keep_evaluation(record, &scores)?;
        }
        // It comes last: where it is, the training is complete.
        let division = [recipe.test_fraction, recipe.validation_fraction];
        let n_rows = rows.census(Part::Training).rows;
        let trained_on = TrainedOn::new(division, arguments.test.is_some(), n_rows, rows.smallest().clone());
        save_model(&out.model(), &training.model, recipe, rows, &trained_on)?;
        tell(&format!("the model is in {}", out.model().display()));
        log.finish()
    }

    /// What the test rows say, or the validation rows where there are none.
    fn evaluate(self, training: &Training) -> Result<Option<(EvaluationRecord, Vec<RowScore>)>> {
        let Self { arguments, recipe, rows, tested, ranks, compute, .. } = self;
        let (part, of) = match (tested.census(Part::Test).rows, rows.census(Part::Validation).rows) {
            (0, 0) => return Ok(None),
            (0, _) => (Part::Validation, rows),
            _ => (Part::Test, tested),
        };
        let loaders = usize::from(arguments.running.loaders);
        let Model::Classifier(model) = &training.model else { return Ok(None) };
        let evaluation = Evaluation::of(recipe, part, rows, loaders);
        let (metrics, scores) = evaluate_rows(model, of, ranks, compute, &evaluation)?;
        let dataset = std::path::absolute(of.path()).unwrap_or_else(|_| of.path().to_owned());
        let scoring = model.settings().objective.scoring(evaluation.positive_from);
        let record = EvaluationRecord {
            version: FORMAT_VERSION,
            part,
            dataset: dataset.to_string_lossy().into_owned(),
            step: training.position.steps,
            scoring,
            tokens_max: recipe.tokens_max,
            metrics,
            scores_sha256: String::new(),
            // The others have no use for it.
            wrong: if ranks.is_first() { most_wrong(of.path(), scoring, &scores)? } else { Vec::new() },
        };
        Ok(Some((record, scores)))
    }
}

/// A device in a word.
fn described(device: Device) -> String {
    match device {
        Device::Cuda(number) => format!("cuda:{number}"),
        _ => "cpu".to_owned(),
    }
}
