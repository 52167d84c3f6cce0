//! Runs the tasks of a plan, which come as lines, and puts their results into the run.

mod record;
mod rows;
mod shards;
mod words;

use std::io::{BufRead, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use program::exit::{Exit, Failed};
use program::system::Failure;
use program::temporary;
use store::{ObjectContent, S3Options};

use crate::Result;
use crate::plan::{Planned, Task, told};

pub(crate) use shards::VerifiedRun;
pub(crate) use words::{WordsFile, read_words};

/// How tasks are run.
#[derive(Clone, Debug)]
pub struct WorkOptions {
    /// How S3 is reached, for other datasets.
    pub s3: S3Options,
    /// Number of threads.
    pub threads: NonZeroUsize,
    /// Folder for temporary files.
    pub scratch: PathBuf,
    /// How long a task of rows waits for a result of another program, before it runs the task itself.
    pub patience: Duration,
}

/// Time between two looks at the results of other programs, for each task of a kind: as many programs may look as often.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Its bounds.
const LOOKS_EVERY: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(10)];
/// Maximum factor of the patience of a program that would begin with the same task as others.
const PATIENCE_MAX: u32 = 4;

/// Runs the tasks of these lines one after the other. Prints a line for each whose result is in the run.
pub fn work(
    planned: &Planned,
    input: impl BufRead,
    mut output: impl Write,
    options: &WorkOptions,
) -> Result<()> {
    // What a killed program left behind; a task whose result is stored makes no file.
    temporary::clear(&options.scratch);
    for line in input.lines() {
        let line = line.map_err(|source| {
            let why = Failure::reading("read the tasks", &source);
            Failed::new(Exit::Io, format!("standard input: {why}"))
        })?;
        if line.trim().is_empty() {
            continue;
        }
        let task = planned.task(line.trim())?;
        let result = run(planned, task, options)?;
        writeln!(output, "{task}\t{result}").and_then(|()| output.flush()).map_err(|source| {
            let why = Failure::writing("write the result", &source, "redirect it to another disk");
            Failed::new(Exit::Io, format!("standard output: {why}"))
        })?;
    }
    Ok(())
}

fn run(planned: &Planned, task: Task, options: &WorkOptions) -> Result<&'static str> {
    let key = planned.result_key(task)?;
    // The result of another attempt is the same.
    if planned.store().head(&key)?.is_some() {
        return Ok("already stored");
    }
    let put =
        |content: ObjectContent<'_>| Ok::<_, Failed>(told(&planned.store().put_if_absent(&key, content)?));
    match task {
        Task::Shards(number) => put(ObjectContent::Bytes(&shards::verify(planned, number, options)?)),
        Task::Words(number) => put(ObjectContent::Bytes(&words::sum(planned, number, options)?)),
        Task::Rows(number) => {
            wait_for_others(planned, number, options)?;
            put(ObjectContent::File(&rows::encode(planned, number, options)?))
        }
    }
}

/// Waits for the results that a task of rows needs. If none is added for some time, the programs of their tasks may have failed,
/// or may start only when this one ends: then it runs these tasks, beginning with other ones than others that wait.
fn wait_for_others(planned: &Planned, number: u32, options: &WorkOptions) -> Result<()> {
    let needed = || {
        let mut unfinished = planned.unfinished()?;
        unfinished.retain(|task| !matches!(task, Task::Rows(_)));
        Ok::<_, Failed>(unfinished)
    };
    let look_every = (LOOK_EVERY * planned.plan.tasks).clamp(LOOKS_EVERY[0], LOOKS_EVERY[1]);
    let (mut waited, mut missing) = (Instant::now(), needed()?);
    while !missing.is_empty() {
        let n_before = missing.len();
        let n_ahead = number / u32::try_from(n_before).unwrap_or(u32::MAX);
        let own = if waited.elapsed() < options.patience * (1 + n_ahead).min(PATIENCE_MAX) {
            thread::sleep(look_every.min(options.patience));
            // Hadoop ends tasks that report nothing.
            planned.store().progress().advance(1);
            0
        } else {
            run(planned, missing[number as usize % n_before], options)?;
            1
        };
        missing = needed()?;
        if missing.len() + own < n_before {
            waited = Instant::now();
        }
    }
    Ok(())
}
