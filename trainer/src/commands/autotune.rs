//! Trials of `trainer fit`, as child processes. A trial is killed at its time limit, or if it is worse than others after the
//! same share of its epochs, and all end with this process.

mod halving;

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, io};

use dataset::dataset_file::DatasetReader;
use launch::kill_with_parent;
use program::exit::{Exit, Failed};
use program::temporary;
use runs::recipe::Pool;
use serde_json::Value;

use training::arguments::{OF_SEARCH, Passed};
use training::autotune::search::{Dimension, Flags, Space};
use training::autotune::{Limit, Metrics, Plan, Trained};
use training::places;
use training::{Error, Result};

use self::halving::{Halving, Reached};
use crate::arguments::{Arguments, Autotune, Fit, OptimizerName};
use crate::defaults::{Defaults, rate};

/// Time between two checks of a child process.
const CHECK_EVERY: Duration = Duration::from_millis(10);
/// Flags that each trial sets by itself.
const OF_TRIAL: [&str; 3] = ["out", "force", "checkpoint_minutes"];

/// Searches settings of a classifier.
pub(super) fn tune(arguments: &Autotune) -> Result<()> {
    let began = Instant::now();
    let Autotune { search, fit } = arguments;
    let passed = Passed::of_process::<Arguments>();
    check_validation(fit)?;
    let trained =
        Trained { command: ["trainer", "fit"], passed: passed.clone(), of_search: OF_SEARCH.to_vec() };
    let plan = Plan {
        began,
        arguments: search.clone(),
        is_json: fit.training.json,
        seed: fit.optimisation.seed,
        spaces: vec![Space { flags: vec![], dimensions: dimensions(fit, &passed)? }],
        trained: trained.clone(),
    };
    // It is deleted when the search ends, also if a trial is abandoned.
    let folder =
        temporary::folder_in(&env::temp_dir()).map_err(|source| Error::io(&env::temp_dir(), source))?;
    let program = env::current_exe().map_err(|source| Error::io("trainer".as_ref(), source))?;
    let halving = Halving::new(search.metric);
    let mut trials = Trials { program, trained, folder: folder.path().to_owned(), n_trials: 0, halving };
    plan.run(move |flags, limit| trials.run(flags, limit))
}

/// Refuses a training without a validation split.
fn check_validation(fit: &Fit) -> Result<()> {
    let fraction = fit.validation_fraction.unwrap_or_else(|| fit.optimisation.recipe.validation_fraction());
    match &fit.validation {
        Some(validation) if *validation == fit.dataset => Err(Error::no_validation(&validation.to_string())),
        None if fraction == 0.0 => Err(Error::setting(
            "--validation-fraction",
            "0",
            "above 0, or another dataset as --validation, because trials are compared on it",
        )),
        _ => Ok(()),
    }
}

/// The settings that are searched: those that were not passed.
fn dimensions(fit: &Fit, passed: &Passed) -> Result<Vec<Dimension>> {
    let path = places::dataset(&fit.dataset, &fit.training.storage.options())?;
    let n_rows = (DatasetReader::open(&path)?.n_rows() as f64 * fit.sample.share()) as u64;
    let Defaults {
        embedding,
        hidden,
        layers,
        linear,
        pool,
        epochs,
        batch,
        optimizer,
        dropout_words,
        dropout_layers,
        dropout_head,
        ..
    } = Defaults::of(fit.optimisation.recipe, n_rows);
    let optimizer = fit.optimisation.optimizer.unwrap_or(optimizer);
    let rates: &[&str] = match optimizer {
        OptimizerName::Sgd => &["0.01", "0.02", "0.05", "0.1", "0.2", "0.5"],
        OptimizerName::Adam | OptimizerName::Adamw => {
            &["0.0003", "0.0005", "0.001", "0.002", "0.003", "0.005", "0.01"]
        }
        OptimizerName::Lars => &["1", "2", "5", "10", "20", "50"],
        OptimizerName::Lamb => &["0.002", "0.005", "0.01", "0.02", "0.05"],
    };
    let other_pool = if pool == Pool::Last { "mean-max" } else { "last" };
    let ordered =
        |flag, values: &[&str], default: f64| Dimension::ordered(flag, values, &default.to_string());
    let mut dimensions = vec![
        ordered("--rate", rates, rate(optimizer)),
        ordered("--epochs", &["2", "3", "4", "6", "8", "10", "15"], epochs.into()),
        ordered("--batch", &["16", "32", "64", "128", "256"], batch.into()),
        ordered("--hidden", &["32", "64", "96", "128", "192"], hidden as f64),
        ordered("--embedding", &["50", "100", "200"], embedding as f64),
        ordered("--layers", &["1", "2"], layers.into()),
        ordered("--linear", &["16", "32", "64"], linear as f64),
        Dimension::choice("--pool", &[other_pool]),
        ordered("--dropout-words", &["0", "0.1", "0.2", "0.3", "0.4", "0.5"], dropout_words),
        ordered("--dropout-head", &["0", "0.1", "0.3", "0.5"], dropout_head),
        ordered("--dropout-layers", &["0", "0.2", "0.5"], dropout_layers).without("--layers", "1"),
    ];
    let is_fixed = |dimension: &Dimension| {
        let of_weights = ["--embedding", "--hidden", "--layers"].contains(&dimension.flag);
        // A single layer has no dropout between layers.
        let is_idle = dimension.flag == "--dropout-layers" && fit.lstm.layers == Some(1);
        passed.has(&dimension.id()) || is_idle || of_weights && fit.lstm.init_from.is_some()
    };
    dimensions.retain(|dimension| !is_fixed(dimension));
    if fit.lstm.init_from.is_some() && fit.lstm.layers.is_none_or(|layers| layers == 1) {
        dimensions.retain(|dimension| dimension.flag != "--dropout-layers");
    }
    Ok(dimensions)
}

/// Trains and evaluates models in child processes.
struct Trials {
    program: PathBuf,
    trained: Trained,
    /// Folder of their training folders.
    folder: PathBuf,
    n_trials: u32,
    halving: Halving,
}

impl Trials {
    /// Trains with some flags. `None` if the limit was reached, or if the trial is worse than others.
    fn run(&mut self, flags: &Flags, limit: &Limit) -> Result<Option<Metrics>> {
        self.n_trials += 1;
        let folder = self.folder.join(self.n_trials.to_string());
        fs::create_dir(&folder).map_err(|source| Error::io(&folder, source))?;
        let metrics = self.train(flags, limit, &folder);
        // The models of earlier trials are not needed; the folder of all trials is deleted at the end.
        let _ = fs::remove_dir_all(&folder);
        metrics
    }

    fn train(&mut self, flags: &Flags, limit: &Limit, folder: &Path) -> Result<Option<Metrics>> {
        let [summary, messages] = ["summary.json", "messages.txt"].map(|name| folder.join(name));
        let training = folder.join("training");
        let output = |path: &Path| File::create(path).map_err(|source| Error::io(path, source));
        let words: Vec<OsString> = self.trained.words_without(&OF_TRIAL, flags);
        let mut command = Command::new(&self.program);
        command
            .args(words.iter().skip(1))
            .args(["--json", "--quiet", "--checkpoint-minutes", "525600", "--out"])
            .arg(&training)
            .stdin(Stdio::null())
            .stdout(output(&summary)?)
            .stderr(output(&messages)?)
            // A terminal's Ctrl-C reaches this process only.
            .process_group(0);
        kill_with_parent(&mut command);
        let mut reached = Reached::default();
        let mut continues = || self.halving.continues(&training, &mut reached);
        match ended(&mut command, limit, &mut continues).map_err(|source| Error::io(&self.program, source))? {
            None => Ok(None),
            Some(status) if status.success() => read(&summary).map(Some),
            Some(status) => Err(failure(status, &messages)),
        }
    }
}

/// Runs a process. `None` if it was killed because the limit was reached, or if it may not continue, even if it has ended.
fn ended(
    command: &mut Command,
    limit: &Limit,
    continues: &mut impl FnMut() -> bool,
) -> io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            // The decision depends on its lines, not on when they were read.
            return Ok(Some(status).filter(|status| !status.success() || continues()));
        }
        if limit.is_over() || !continues() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(CHECK_EVERY);
    }
}

/// The metrics of the validation split in the summary of a training.
fn read(summary: &Path) -> Result<Metrics> {
    let json = fs::read(summary).map_err(|source| Error::io(summary, source))?;
    let summary: Value = serde_json::from_slice(&json).map_err(|error| Error::internal(&error))?;
    let value = |name: &str| summary["validation"][name].as_f64();
    match (value("accuracy"), value("f1"), value("loss")) {
        (Some(accuracy), Some(f1), Some(loss)) => Ok(Metrics { accuracy, f1, loss }),
        _ => Err(Error::internal(&"a training has no validation metrics")),
    }
}

/// The error of a training, which is the last line that it printed.
fn failure(status: ExitStatus, messages: &Path) -> Error {
    let text = fs::read(messages).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    let message = match (last, status.signal()) {
        (_, Some(signal)) => format!("a training was ended by signal {signal}"),
        (Some(line), None) => line.strip_prefix("trainer: ").unwrap_or(line).to_owned(),
        (None, None) => "a training failed without a message".to_owned(),
    };
    Failed::new(exit(status.code()), message).into()
}

fn exit(code: Option<i32>) -> Exit {
    let all = [
        Exit::Usage,
        Exit::BadInput,
        Exit::MissingInput,
        Exit::Unavailable,
        Exit::Internal,
        Exit::Io,
        Exit::TryAgain,
        Exit::Settings,
    ];
    all.into_iter().find(|exit| code == Some(*exit as i32)).unwrap_or(Exit::Internal)
}
