//! Runs the tasks of a plan, which come as lines, and puts their results into the run.

mod record;
mod rows;
mod shards;
mod words;

use std::io::{BufRead, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

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
}

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
        Task::Rows(number) => put(ObjectContent::File(&rows::encode(planned, number, options)?)),
    }
}
