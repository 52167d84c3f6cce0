//! The program `reducer`: arguments and environment in, exit code out.

use std::env;
use std::io;
use std::process::ExitCode;

use clap::Parser;
use program::exit::{ATTEMPT, Exit, Runner, TIMEOUT, chain, usage};
use program::pipe::widen;
use reducer::arguments::{RowArguments, parse_memory};
use reducer::heartbeat::{Heartbeat, silence};
use reducer::task::{JOB, Others, PARTITION, PARTITIONS, Task};
use reducer::task::{from_hadoop, host, in_names, random_attempt};
use store::{S3Options, Store};

/// Turns sorted records on standard input into one shard, committed to the run's folder exactly once. What a flag
/// leaves open comes from Hadoop's environment.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Place of the run: s3://bucket/run1, file:///data/run1 or a plain path
    #[arg(long, value_name = "URL")]
    run: String,
    /// For S3: endpoint=, region=, profile=, path-style, kms-key=, bucket-owner=, parts=, part-mib=
    #[arg(long, value_name = "LIST")]
    s3: Option<S3Options>,
    /// This reducer's partition, from 0 [Hadoop: mapreduce_task_partition]
    #[arg(long, value_name = "P")]
    partition: Option<u32>,
    /// Number of partitions of the run [Hadoop: mapreduce_job_reduces]
    #[arg(long, value_name = "R")]
    partitions: Option<u32>,
    /// Take the own partition out of the whole sorted stream
    #[arg(long, conflicts_with = "any_partitioner")]
    select: bool,
    /// Take every text: the stream was split by another rule than Hadoop's
    #[arg(long)]
    any_partitioner: bool,
    /// Name of this attempt [Hadoop: mapreduce_task_attempt_id; else random]
    #[arg(long, value_name = "NAME")]
    attempt: Option<String>,
    #[command(flatten)]
    rows: RowArguments,
    /// Memory for rows; beyond it they go to TMPDIR. Bytes, or with KiB, MiB, GiB
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = parse_memory)]
    memory: usize,
}

fn main() -> ExitCode {
    if let Err(error) = program::check_streams() {
        return Exit::Io.end("reducer", &error.to_string());
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage("reducer", &error.render(), error.use_stderr()),
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((exit, message)) => exit.end_task("reducer", &message, env::var_os::<&str>),
    }
}

fn run(arguments: &Arguments) -> Result<(), (Exit, String)> {
    let failed = |error: reducer::Error| (error.exit(), chain(&error));
    let stdin = program::stdin().map_err(|error| (Exit::Io, error.to_string()))?;
    let options = arguments.s3.clone().unwrap_or_default();
    let store = Store::open_with(&arguments.run, &options).map_err(|error| failed(error.into()))?;
    // Before hours of work: is there such a place, and does it keep the promise that the commit stands on?
    store.probe().map_err(|error| failed(error.into()))?;
    let task = task(arguments)?;
    let heartbeat = heartbeat(&task, &store).map_err(failed)?;
    widen(&stdin);
    // Pieces larger than the buffer of standard input pass it by.
    reducer::run(stdin, io::stdout().lock(), io::stderr(), &store, &task).map_err(failed)?;
    drop(heartbeat);
    Ok(())
}

/// Hadoop alone waits for signs of life.
fn heartbeat(task: &Task, store: &Store) -> Result<Option<Heartbeat>, reducer::Error> {
    if task.runner == Runner::User {
        return Ok(None);
    }
    let silence = silence(from_hadoop(TIMEOUT).as_deref());
    let started = Heartbeat::start(store.progress().clone(), silence, io::stderr());
    started.map(Some).map_err(reducer::Error::Thread)
}

fn task(arguments: &Arguments) -> Result<Task, (Exit, String)> {
    let partition = number(arguments.partition, PARTITION, "--partition")?;
    let partitions = number(arguments.partitions, PARTITIONS, "--partitions")?;
    if partition >= partitions {
        return Err((
            Exit::Usage,
            format!(
                "partition {partition} of {partitions}: expected a --partition from 0 and less than --partitions"
            ),
        ));
    }
    let attempt = match arguments.attempt.clone().or_else(|| from_hadoop(ATTEMPT)) {
        Some(attempt) => in_names(&attempt),
        None => random_attempt().map_err(|error| (Exit::Io, format!("random numbers: {error}")))?,
    };
    Ok(Task {
        partition,
        partitions,
        others: match (arguments.select, arguments.any_partitioner) {
            (true, _) => Others::LeaveOut,
            (_, true) => Others::Take,
            _ => Others::Refuse,
        },
        host: host(),
        attempt,
        job: from_hadoop(JOB),
        runner: Runner::of(env::var_os::<&str>),
        settings: arguments.rows.settings()?,
        memory_bytes: arguments.memory,
        scratch: env::temp_dir(),
    })
}

/// A number from its flag, else from Hadoop's environment.
fn number(flag: Option<u32>, names: [&str; 2], option: &str) -> Result<u32, (Exit, String)> {
    let Some(value) = flag.map(|n| n.to_string()).or_else(|| from_hadoop(names)) else {
        return Err((
            Exit::Usage,
            format!("{option} is missing; give it, or run under Hadoop, which sets {}", names[0]),
        ));
    };
    value.parse().map_err(|_| (Exit::Settings, format!("{} is {value:?}, expected a whole number", names[0])))
}
