//! The program `reducer`: arguments and environment in, exit code out.

use std::env;
use std::io;
use std::process::ExitCode;

use arguments::RowArguments;
use clap::Parser;
use hadoop::{Heartbeat, Runner, Variable, silence};
use program::exit::{Exit, chain, usage};
use program::pipe::widen;
use program::size::parse_memory;
use reducer::task::{Others, Task, host, in_names, random_attempt};
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
    #[arg(long, value_name = "P",
        help = format!("This reducer's partition, from 0 [Hadoop: {}]", Variable::Partition.name()))]
    partition: Option<u32>,
    #[arg(long, value_name = "R",
        help = format!("Number of partitions of the run [Hadoop: {}]", Variable::Partitions.name()))]
    partitions: Option<u32>,
    /// Take the own partition out of the whole sorted stream
    #[arg(long, conflicts_with = "any_partitioner")]
    select: bool,
    /// Take every text: the stream was split by another rule than Hadoop's
    #[arg(long)]
    any_partitioner: bool,
    #[arg(long, value_name = "NAME",
        help = format!("Name of this attempt [Hadoop: {}; else random]", Variable::Attempt.name()))]
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
    let arguments = match arguments::parse::<Arguments>(
        option_env!("SENTIMILL_COMMIT"),
        &[("HDF5", &dataset::hdf5_version())],
    ) {
        Ok(arguments) => arguments,
        Err(error) => return usage("reducer", &error.render(), error.use_stderr()),
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((exit, message)) => hadoop::end(exit, "reducer", &message),
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
    let silence = silence(Variable::Timeout.value().as_deref());
    let started = Heartbeat::start(store.progress().clone(), silence, io::stderr());
    started.map(Some).map_err(reducer::Error::Thread)
}

fn task(arguments: &Arguments) -> Result<Task, (Exit, String)> {
    let partition = number(arguments.partition, Variable::Partition, "--partition")?;
    let partitions = number(arguments.partitions, Variable::Partitions, "--partitions")?;
    if partition >= partitions {
        return Err((
            Exit::Usage,
            format!(
                "partition {partition} of {partitions}: expected a --partition from 0 and less than --partitions"
            ),
        ));
    }
    let attempt = match arguments.attempt.clone().or_else(|| Variable::Attempt.value()) {
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
        job: Variable::Job.value(),
        runner: Runner::of_this_process(),
        settings: arguments.rows.settings()?,
        memory_bytes: arguments.memory,
        scratch: env::temp_dir(),
    })
}

/// A number from its flag, else from Hadoop's environment.
fn number(flag: Option<u32>, variable: Variable, option: &str) -> Result<u32, (Exit, String)> {
    let Some(value) = flag.map(|n| n.to_string()).or_else(|| variable.value()) else {
        return Err((
            Exit::Usage,
            format!("{option} is missing; give it, or run under Hadoop, which sets {}", variable.name()),
        ));
    };
    value
        .parse()
        .map_err(|_| (Exit::Settings, format!("{} is {value:?}, expected a whole number", variable.name())))
}
