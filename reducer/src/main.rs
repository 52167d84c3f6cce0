//! The program `reducer`: reads arguments, the environment and standard input, returns an exit code.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use corpus::arguments::{self, STOP_WORDS_BYTES_MAX};
use program::bars::ProgressBars;
use program::exit::{self, Exit, Failed};
use program::hadoop::{Heartbeat, Runner, Variable, silence};
use program::location::S3Url;
use program::pipe::widen;
use reducer::arguments::Arguments;
use reducer::task::{Others, Task, host, name_part, random_attempt};
use store::Store;

/// Default of --run outside Hadoop.
const DEFAULT_RUN: &str = "run";

fn main() -> ExitCode {
    let libraries = [("HDF5", &*dataset::hdf5_version())];
    arguments::run("reducer", option_env!("SENTIMILL_COMMIT"), &libraries, |arguments| run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), Failed> {
    let stdin = program::stdin().map_err(|error| Failed::new(Exit::Io, error.to_string()))?;
    let options = arguments.s3.clone().unwrap_or_default();
    let Defaults { run, partition, partitions, notice } = defaults(arguments)?;
    let store = Store::open_with(&run, &options)?;
    // Checks, before hours of work, that the store is reachable and that no put request overwrites an object.
    store.probe()?;
    if let Some(defaults) = notice.filter(|_| !arguments.quiet) {
        exit::notice("reducer", &defaults);
    }
    let task = task(arguments, partition, partitions)?;
    let heartbeat = heartbeat(&task, &store)?;
    widen(&stdin);
    // Blocks larger than the buffer of standard input bypass it.
    // What a user's reducer logs is informational; Hadoop reads counters and states in the log of a task.
    let (log, progress): (Box<dyn Write>, _) = match task.runner {
        Runner::User if arguments.quiet => (Box::new(io::sink()), ProgressBars::to_nobody()),
        Runner::User => (Box::new(io::stderr()), ProgressBars::to_stderr("reducer")),
        Runner::Hadoop => (Box::new(io::stderr()), ProgressBars::to_nobody()),
    };
    reducer::run(progress.counting(stdin), io::stdout().lock(), log, &store, &task)?;
    drop(heartbeat);
    Ok(())
}

/// Starts a heartbeat under Hadoop, which kills a task that reports nothing for too long.
fn heartbeat(task: &Task, store: &Store) -> Result<Option<Heartbeat>, Failed> {
    if task.runner == Runner::User {
        return Ok(None);
    }
    let silence = silence(Variable::Timeout.value().as_deref());
    let started = Heartbeat::start(store.progress().clone(), silence, io::stderr());
    started.map(Some).map_err(|error| reducer::no_thread(&error))
}

/// The run, the partition and the number of partitions, from flags, from Hadoop's environment, or by default.
struct Defaults {
    run: String,
    partition: u32,
    partitions: u32,
    /// The defaults that are used.
    notice: Option<String>,
}

fn defaults(arguments: &Arguments) -> Result<Defaults, Failed> {
    let variables = [Variable::Partition, Variable::Partitions];
    let is_hadoop = Runner::of_this_process() == Runner::Hadoop
        || variables.into_iter().any(|variable| variable.value().is_some());
    let mut used = Vec::new();
    let run = match &arguments.run {
        Some(run) => run.clone(),
        None if is_hadoop => {
            let why =
                "--run is missing; under Hadoop, pass the folder of the run, such as --run s3://bucket/run1";
            return Err(Failed::new(Exit::Usage, why));
        }
        None => {
            used.push(format!("--run {DEFAULT_RUN}"));
            DEFAULT_RUN.to_owned()
        }
    };
    let (partition, partitions) = match (arguments.partition, arguments.partitions) {
        (None, None) if !is_hadoop => {
            used.push("--partition 0 --partitions 1".to_owned());
            (0, 1)
        }
        (partition, partitions) => (
            number(partition, Variable::Partition, "--partition")?,
            number(partitions, Variable::Partitions, "--partitions")?,
        ),
    };
    let notice = (!used.is_empty()).then(|| format!("using the defaults {}", used.join(" ")));
    Ok(Defaults { run, partition, partitions, notice })
}

fn task(arguments: &Arguments, partition: u32, partitions: u32) -> Result<Task, Failed> {
    if partition >= partitions {
        return Err(Failed::new(
            Exit::Usage,
            format!(
                "partition {partition} of {partitions}: expected --partition to be at least 0 and less than --partitions"
            ),
        ));
    }
    let attempt = match arguments.attempt.clone().or_else(|| Variable::Attempt.value()) {
        Some(attempt) => name_part(&attempt),
        None => random_attempt()
            .map_err(|error| Failed::new(Exit::Io, format!("cannot read random numbers: {error}")))?,
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
        settings: arguments.rows.settings(&|url: &S3Url| {
            let s3 = arguments.s3.clone().unwrap_or_default();
            Ok(store::read_existing(url, &s3, STOP_WORDS_BYTES_MAX)?)
        })?,
        texts: arguments.texts,
        keeps_words: arguments.keep_words,
        memory_bytes: arguments.memory,
        scratch: env::temp_dir(),
    })
}

/// A number from its flag, else from Hadoop's environment.
fn number(flag: Option<u32>, variable: Variable, option: &str) -> Result<u32, Failed> {
    let Some(value) = flag.map(|n| n.to_string()).or_else(|| variable.value()) else {
        return Err(Failed::new(
            Exit::Usage,
            format!("{option} is missing; pass it, or run under Hadoop, which sets {}", variable.name()),
        ));
    };
    value.parse().map_err(|_| {
        Failed::new(Exit::Settings, format!("{} is {value:?}, expected a whole number", variable.name()))
    })
}
