//! `--runner hadoop`: the job of a plan's first step on the cluster that `hadoop` reaches, then `merge` on this
//! machine.
//!
//! The output of Hadoop's job client, which has the counters, is kept in the run as `job/hadoop.log`. A repeated
//! command continues after it: with a log it only merges, with the run's manifest too. The output of a job that failed is
//! kept as `job/failed-N.log`, and a repeated command starts the next job.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use program::exit::Exit;
use store::{Key, ObjectContent, Put, Store};

use super::{Error, exit_of, program, run, s3_flag};
use crate::follow::exit_code;
use crate::interrupt::Interrupt;
use crate::job::{Job, Place};
use crate::plan::programs::Program;
use crate::plan::{Scheme, streaming};

/// The variable that names the jar of Hadoop Streaming.
const JAR: &str = "HADOOP_STREAMING_JAR";
/// The output of the job client of a job that succeeded, in the run.
const LOG: &str = "job/hadoop.log";
/// Maximum number of logs of failed jobs in a run.
const FAILED_MAX: u32 = 1000;
/// The manifest of a run, which merge writes.
const SEAL: &str = "manifest.json";
/// Maximum size of the output of the job client.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// Refuses a format that cannot be split at lines.
pub fn check(job: &Job) -> Result<(), Error> {
    let Some(format) = job.input.table_format() else { return Ok(()) };
    let (key, found) = (job.thing("input.format"), format!("{format:?}"));
    let remedy = "use --runner local, or write one JSON object per line";
    Err(Error::Impossible { key, found, runner: "hadoop", remedy })
}

/// Runs the job on the cluster, unless an earlier command did, and merges the run.
pub fn run_job(
    job: &Job,
    store: &Store,
    programs: &[Program],
    interrupt: &Interrupt,
    is_quiet: bool,
) -> Result<(), crate::Error> {
    let folder = tempfile::tempdir().map_err(Error::Log)?;
    let log = folder.path().join("job.log");
    let key = Key::new(LOG)?;
    let is_sealed = store.head(&Key::new(SEAL)?)?.is_some();
    let mut has_counts = false;
    if let Some(kept) = store.get_small(&key, LOG_BYTES_MAX)? {
        std::fs::write(&log, kept).map_err(Error::Log)?;
        has_counts = true;
    } else if !is_sealed {
        submit(job, programs, &log, interrupt, is_quiet).map_err(|error| kept(error, job, store, &log))?;
        store.put_if_absent(&key, ObjectContent::File(&log))?;
        has_counts = true;
        if interrupt.is_set() {
            let remedy = "the Hadoop job has completed; the same command merges its run";
            return Err(Error::Interrupted { remedy: remedy.to_owned() }.into());
        }
    }
    let mut merge = program(job, "merge");
    merge.args(["--run", &store.url()]).arg("--out").arg(job.dataset.to_string());
    if has_counts {
        merge.arg("--counts").arg(&log);
        merge.args(job.merge_flags());
    } else {
        merge.args(without_limit(job.merge_flags()));
    }
    merge.args(s3_flag(job));
    if is_quiet {
        merge.arg("--quiet");
    }
    Ok(run(&mut merge)?)
}

/// Keeps the output of the job client of a failed job in the run, and names it in the error. If the store fails, the
/// error remains that of the job.
fn kept(error: Error, job: &Job, store: &Store, log: &Path) -> Error {
    let Error::HadoopJob { found, application, exit, .. } = error else { return error };
    let stored = (1..=FAILED_MAX).find_map(|n| {
        let name = format!("job/failed-{n}.log");
        match Key::new(&name).and_then(|key| store.put_if_absent(&key, ObjectContent::File(log))) {
            Ok(Put::Stored(_)) => Some(Some(job.run.join(&name))),
            Ok(Put::AlreadyThere) => None,
            Err(_) => Some(None),
        }
    });
    let kept = stored.flatten().map(|place| place.to_string());
    Error::HadoopJob { found, kept, application, exit }
}

/// The flags of merge for a run whose manifest has the counts: the limit of bad lines applies to `--counts` only.
fn without_limit(flags: Vec<String>) -> Vec<String> {
    let at = flags.iter().position(|flag| flag == "--bad-lines-max");
    let mut flags = flags;
    if let Some(at) = at {
        flags.drain(at..flags.len().min(at + 2));
    }
    flags
}

/// Runs the Hadoop job to its end. The output of the job client is copied to standard error and into the log.
fn submit(
    job: &Job,
    programs: &[Program],
    log: &Path,
    interrupt: &Interrupt,
    is_quiet: bool,
) -> Result<(), Error> {
    let local: Vec<Program> = programs
        .iter()
        .map(|program| Program { url: Place::Local(program.path.clone()), ..program.clone() })
        .collect();
    let mut client = client(env::var_os(JAR));
    client.args(streaming(job, &local, Scheme::S3a));
    let path = PathBuf::from(client.get_program());
    let not_started = |source| Error::NotStarted {
        program: path.clone(),
        remedy: "put the commands of a Hadoop installation on the PATH, or use another runner",
        source,
    };
    let mut child = client
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_started)?;
    let copied = match child.stderr.take() {
        Some(stderr) => copy(BufReader::new(stderr), log, is_quiet),
        None => Ok(String::new()),
    };
    let status = child.wait().map_err(Error::Log)?;
    let text = copied.map_err(Error::Log)?;
    ended(&text, status.success(), interrupt.is_set())
}

/// The end of the job client. After Ctrl-C the client fails, but its job does not.
fn ended(log: &str, is_success: bool, is_interrupted: bool) -> Result<(), Error> {
    if is_success {
        return Ok(());
    }
    if !is_interrupted {
        return Err(failed(log));
    }
    let remedy = match job_id(log) {
        Some(id) => {
            let id = id.replacen("job_", "application_", 1);
            format!(
                "the Hadoop job continues; end it with yarn application -kill {id} before the same command starts another one"
            )
        }
        None => "yarn application -list shows whether the Hadoop job was started; end it before the same command starts another one"
            .to_owned(),
    };
    Err(Error::Interrupted { remedy })
}

/// `job_1700000000000_0001`
fn job_id(log: &str) -> Option<&str> {
    log.split_once("Running job: ").and_then(|(_, rest)| rest.split_whitespace().next())
}

/// `hadoop jar $HADOOP_STREAMING_JAR`, or `mapred streaming`, which finds the jar of its installation.
fn client(jar: Option<OsString>) -> Command {
    match jar.filter(|jar| !jar.is_empty()) {
        Some(jar) => {
            let mut command = Command::new("hadoop");
            command.arg("jar").arg(jar);
            command
        }
        None => {
            let mut command = Command::new("mapred");
            command.arg("streaming");
            command
        }
    }
}

/// Copies lines into the log and to standard error, and returns them.
fn copy(mut lines: impl BufRead, log: &Path, is_quiet: bool) -> io::Result<String> {
    let mut file = File::create(log)?;
    let (mut text, mut line) = (String::new(), Vec::new());
    while lines.read_until(b'\n', &mut line)? > 0 {
        file.write_all(&line)?;
        if !is_quiet {
            // A closed standard error does not stop the job.
            let _ = io::stderr().write_all(&line);
        }
        text += &String::from_utf8_lossy(&line);
        line.clear();
    }
    file.sync_all()?;
    Ok(text)
}

/// The error of a failed job: the last exception or error of the job client, and the exit code of the program.
fn failed(log: &str) -> Error {
    let is_cause =
        |line: &&str| line.contains("Error") || line.contains("Exception") || line.contains("ERROR");
    let found = log.lines().rev().find(is_cause).or_else(|| log.lines().last()).unwrap_or("no message");
    let application = job_id(log).map(|id| id.replacen("job_", "application_", 1));
    let exit = match exit_code(log) {
        Some(code) => exit_of(code),
        None if has_no_input(log) => Exit::MissingInput,
        None => Exit::Internal,
    };
    Error::HadoopJob { found: found.trim().to_owned(), kept: None, application, exit }
}

/// Whether Hadoop refused the job because an input does not exist.
fn has_no_input(log: &str) -> bool {
    let is_pattern = |line: &str| line.contains("Input Pattern ") && line.contains(" matches 0 files");
    log.lines().any(|line| line.contains("Input path does not exist: ") || is_pattern(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_client_is_hadoop_with_a_jar_or_mapred_without() {
        let words = |command: &Command| {
            let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
            [command.get_program().to_string_lossy().into_owned()]
                .into_iter()
                .chain(arguments)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&client(Some("/lib/s.jar".into()))), ["hadoop", "jar", "/lib/s.jar"]);
        assert_eq!(words(&client(None)), ["mapred", "streaming"]);
        assert_eq!(words(&client(Some("".into()))), ["mapred", "streaming"]);
    }

    #[test]
    fn a_failed_job_has_the_exit_code_of_its_program_and_the_command_for_its_logs() {
        let log = "INFO mapreduce.Job: Running job: job_17_0001\n\
                   Error: java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): subprocess failed with code 65\n\
                   ERROR streaming.StreamJob: Job not successful!\nStreaming Command Failed!\n";
        let error = failed(log);
        assert_eq!(error.exit(), Exit::BadInput);
        assert_eq!(
            error.to_string(),
            "the Hadoop job failed: ERROR streaming.StreamJob: Job not successful!; \
             yarn logs -applicationId application_17_0001 shows the logs of its tasks"
        );
    }

    #[test]
    fn a_job_without_its_input_has_the_exit_code_of_a_missing_input() {
        for log in [
            "ERROR streaming.StreamJob: Error Launching job : Input path does not exist: hdfs://host/in/nosuch\n\
             Streaming Command Failed!\n",
            "ERROR streaming.StreamJob: Error Launching job : Input Pattern hdfs://host/in/* matches 0 files\n",
        ] {
            assert_eq!(failed(log).exit(), Exit::MissingInput, "{log}");
        }
        assert_eq!(failed("Streaming Command Failed!\n").exit(), Exit::Internal);
    }

    #[test]
    fn an_interrupted_job_client_names_the_job_that_continues() {
        let log = "INFO mapreduce.Job: Running job: job_17_0001\n";
        assert!(ended(log, true, true).is_ok());
        let interrupted = ended(log, false, true).unwrap_err();
        assert_eq!(interrupted.exit(), Exit::TryAgain);
        assert_eq!(
            interrupted.to_string(),
            "interrupted; the Hadoop job continues; end it with yarn application -kill application_17_0001 before the \
             same command starts another one"
        );
        let early = ended("", false, true).unwrap_err();
        assert!(early.to_string().contains("yarn application -list shows whether"), "{early}");
        assert_eq!(ended(log, false, false).unwrap_err().exit(), Exit::Internal);
    }

    #[test]
    fn the_limit_of_bad_lines_is_dropped_with_the_counts() {
        let flags = ["--vocabulary-size", "9", "--bad-lines-max", "0.1"].map(str::to_owned);
        assert_eq!(without_limit(flags.to_vec()), flags[..2]);
        assert_eq!(without_limit(flags[..2].to_vec()), flags[..2]);
    }
}
