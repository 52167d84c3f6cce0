//! `--runner hadoop`: the job of a plan's first step on the cluster that `hadoop` reaches, then `merge` on this
//! machine, or by tasks on the cluster.
//!
//! The output of Hadoop's job client, which has the counters, is kept in the run as `job/hadoop.log`. A repeated
//! command continues after it: with a log it only merges, with the run's manifest too. The output of a job that failed is
//! kept as `job/failed-N.log`, with the logs of its failed tasks and a record, and a repeated command starts the next job.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use program::exit::{Exit, notice};
use program::temporary;
use store::{Key, ObjectContent, S3Options, Store};

use super::{
    Runner, ended as program_ended, exit_of, impossible, keep, no_log, not_recorded, not_started, program,
    record, run, s3_flag, tasks,
};
use crate::Error;
use crate::diagnose::{Block, LogScope, diagnose, rules};
use crate::failures::Number;
use crate::follow::exit_code;
use crate::interrupt::Interrupt;
use crate::job::{Job, Place};
use crate::logs::{Listing, list};
use crate::plan::merging::{LIST, Merging, taken};
use crate::plan::programs::Program;
use crate::plan::{MERGE, Scheme, streaming, streaming_of_tasks};
use crate::result::Made;
use crate::secrets::masked;

/// The variable that names the jar of Hadoop Streaming.
const JAR: &str = "HADOOP_STREAMING_JAR";
/// The output of the job client of a job that succeeded, in the run.
pub const LOG: &str = "job/hadoop.log";
/// The manifest of a run, which merge writes.
const SEAL: &str = "manifest.json";
/// Flags of merge for `--counts` only. The manifest of a run has its counts.
const LIMITS: [&str; 2] = ["--bad-lines-max", "--invalid-utf8-max"];
/// Maximum size of the output of the job client.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// Refuses a format and an encoding that cannot be split at lines.
pub fn check(job: &Job) -> Result<(), Error> {
    let (key, found, remedy) = if let Some(format) = job.input.table_format() {
        ("input.format", format, "use --runner local, or write one JSON object per line")
    } else if let Some(encoding) = job.input.wide_encoding() {
        ("input.encoding", encoding, "use --runner local, or convert the files with iconv -t UTF-8")
    } else {
        return Ok(());
    };
    Err(impossible(&job.thing(key), &format!("{found:?}"), Runner::Hadoop, remedy))
}

/// A job on the way to the cluster.
#[derive(Debug)]
pub struct HadoopSubmission<'a> {
    /// The job.
    pub job: &'a Job,
    /// The job file, as an argument of another command.
    pub argument: &'a str,
    /// The run.
    pub store: &'a Store,
    /// The environment of the tasks.
    pub environment: &'a [(String, String)],
    /// Options for the dataset.
    pub s3: &'a S3Options,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
    /// Whether no progress is printed.
    pub is_quiet: bool,
}

impl HadoopSubmission<'_> {
    /// Runs the job on the cluster, unless an earlier command did, and merges the run.
    pub fn run(&self, programs: &[Program]) -> Result<(), Error> {
        let Self { job, store, .. } = *self;
        let folder = temporary::folder_in(&env::temp_dir()).map_err(no_log)?;
        let log = folder.path().join("job.log");
        let key = Key::new(LOG)?;
        let is_sealed = store.head(&Key::new(SEAL)?)?.is_some();
        let programs = on_this_machine(programs);
        let mut has_counts = false;
        if let Some(kept) = store.get_small(&key, LOG_BYTES_MAX)? {
            fs::write(&log, kept).map_err(no_log)?;
            has_counts = true;
        } else if !is_sealed {
            self.submit(&streaming(job, &programs, Scheme::S3a, self.environment), &log)?;
            store.put_if_absent(&key, ObjectContent::File(&log))?;
            has_counts = true;
            self.check_interrupt()?;
        }
        // With a dataset, merge only compares.
        let tasks = match Made::read(&job.dataset, self.s3)? {
            None => job.hadoop.merge_tasks.unwrap_or(1),
            Some(_) => 1,
        };
        let merging = Merging::new(job, tasks, s3_flag(job));
        let counted = |arguments: Vec<String>| {
            let mut merge = program(job, MERGE);
            match has_counts {
                true => merge.args(arguments).arg("--counts").arg(&log),
                false => merge.args(taken(arguments, &LIMITS).1),
            };
            merge
        };
        if merging.is_whole() {
            return self.merge(self.reported(counted(merging.whole())), folder.path());
        }
        self.merge(counted(merging.plan()), folder.path())?;
        let input = self.put_list(&merging, folder.path())?;
        let arguments = streaming_of_tasks(job, &programs, Scheme::S3a, self.environment, tasks, input);
        self.submit(&arguments, &folder.path().join(LIST).with_extension("log"))?;
        self.check_interrupt()?;
        let mut assemble = program(job, MERGE);
        assemble.args(merging.assemble());
        self.merge(self.reported(assemble), folder.path())
    }

    /// Runs `merge` on this machine.
    fn merge(&self, mut merge: Command, folder: &Path) -> Result<(), Error> {
        let message = folder.join("merge.log");
        run(&mut merge, &message).map_err(|error| self.failed(error, &message))
    }

    /// A program that reports its progress, unless nobody wants it.
    fn reported(&self, mut program: Command) -> Command {
        if self.is_quiet {
            program.arg("--quiet");
        }
        program
    }

    /// Runs a Hadoop job to its end.
    fn submit(&self, arguments: &[String], log: &Path) -> Result<(), Error> {
        submit(arguments, log, self.interrupt, self.is_quiet).map_err(|error| self.failed(error, log))
    }

    fn check_interrupt(&self) -> Result<(), Error> {
        if self.interrupt.is_set() {
            let remedy = "the Hadoop job has completed; the same command continues with the merge of its run";
            return Err(Error::interrupted(remedy));
        }
        Ok(())
    }

    /// Copies the list of tasks from the run to Hadoop's default file system: Hadoop itself may have no access to the run.
    /// Returns its path there.
    fn put_list(&self, merging: &Merging<'_>, folder: &Path) -> Result<String, Error> {
        let to = format!("/tmp/{}/{}", self.job.run_id(), merging.name());
        let file = folder.join(LIST);
        let key = Key::new(&merging.list())?;
        let found = self.store.get_small(&key, LOG_BYTES_MAX)?.ok_or_else(|| {
            let object = format!("{}/{key}", self.store.url());
            let expected = "the list that merge plan wrote; run the command again";
            Error::new(Exit::MissingInput, format!("{object}: no such object, expected {expected}"))
        })?;
        fs::write(&file, found).map_err(no_log)?;
        file_system(&["-mkdir".as_ref(), "-p".as_ref(), to.as_ref()])?;
        file_system(&["-put".as_ref(), "-f".as_ref(), file.as_ref(), to.as_ref()])?;
        Ok(format!("{to}/{LIST}"))
    }

    /// Keeps the logs of a failure in the run. The error of a Hadoop job becomes the cause that they show.
    fn failed(&self, error: Error, log: &Path) -> Error {
        // A client that did not start has no output.
        let number =
            File::options().create(true).append(true).open(log).ok().and_then(|_| keep(self.store, log));
        let error = match error {
            Error::HadoopJob { found, exit, application, .. } => {
                let tasks =
                    application.as_deref().and_then(|id| self.tasks(id, number, log.with_extension("tasks")));
                let yarn = application.as_deref().filter(|_| tasks.is_none());
                let exit = tasks
                    .as_deref()
                    .and_then(exit_code_of)
                    .filter(|_| exit == Exit::Internal)
                    .unwrap_or(exit);
                let cause = cause([Some(log.to_owned()), tasks].into_iter().flatten());
                let next = next(number.map(|_| self.argument), yarn, cause.is_some());
                with_cause(Error::HadoopJob { found, exit, application, next }, cause.as_ref())
            }
            other => other,
        };
        record(self.store, number, Runner::Hadoop, &error, log);
        error
    }

    /// Fetches the logs of the failed tasks, and keeps them in the run.
    fn tasks(&self, application: &str, number: Option<Number>, into: PathBuf) -> Option<PathBuf> {
        if !self.is_quiet {
            notice("emr", "fetching the logs of the failed tasks");
        }
        // Without the command yarn, the message has the cause that the job client shows.
        if !tasks::fetch(application, &into, self.interrupt).unwrap_or_default() {
            return None;
        }
        if let Some(Err(error)) =
            number.map(|number| number.put(self.store, "tasks.log", ObjectContent::File(&into)))
        {
            not_recorded(&error);
        }
        Some(into)
    }
}

/// The exit code of a program in the logs of tasks. The job client does not show that of the last attempt.
fn exit_code_of(tasks: &Path) -> Option<Exit> {
    exit_code(&String::from_utf8_lossy(&fs::read(tasks).ok()?)).map(exit_of)
}

/// The most probable cause in these logs.
fn cause(logs: impl Iterator<Item = PathBuf>) -> Option<Block> {
    let mut listing = Listing::default();
    for log in logs {
        listing.logs.extend(list(&log.display().to_string(), &S3Options::default()).ok()?.logs);
    }
    diagnose(&listing, &LogScope::default()).ok()?.causes.into_iter().next()
}

/// The commands that show more: for the job file, if the run has the logs, and for the application of YARN, if the logs of
/// its tasks could not be fetched.
fn next(argument: Option<&str>, yarn: Option<&str>, has_cause: bool) -> String {
    let shown = if has_cause { "the evidence" } else { "the last lines that report a failure" };
    let diagnose = argument.map(|job| format!("emr diagnose {job} shows {shown}"));
    let yarn = yarn.map(|id| format!("yarn logs -applicationId {id} shows the logs of its tasks"));
    let next = diagnose.into_iter().chain(yarn).collect::<Vec<_>>().join(", ");
    if next.is_empty() { "the output of the job client is above".to_owned() } else { next }
}

/// The error of a job with its cause and remedy, if they are known.
fn with_cause(error: Error, cause: Option<&Block>) -> Error {
    match (error, cause) {
        (Error::HadoopJob { next, exit, application, .. }, Some(Block { rule, cause, remedy, .. })) => {
            let exit = if exit == Exit::Internal { exit_of_cause(rule) } else { exit };
            Error::HadoopJob { found: format!("{cause}; {remedy}"), next, exit, application }
        }
        (error, _) => error,
    }
}

/// The exit code of a cause that no program of this project reports.
fn exit_of_cause(rule: &str) -> Exit {
    let rule = rules().iter().find(|of| of.id == rule);
    rule.and_then(|rule| rule.exit).map_or(Exit::Internal, exit_of)
}

/// The programs as files of this machine, which the job client sends.
fn on_this_machine(programs: &[Program]) -> Vec<Program> {
    let local = |program: &Program| Program { url: Place::Local(program.path.clone()), ..program.clone() };
    programs.iter().map(local).collect()
}

/// A command of Hadoop's file system.
fn file_system(arguments: &[&OsStr]) -> Result<(), Error> {
    let mut hadoop = Command::new("hadoop");
    let status = hadoop.arg("fs").args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status();
    program_ended("hadoop".as_ref(), status.map_err(|source| no_hadoop(&hadoop, &source))?)
}

fn no_hadoop(command: &Command, source: &io::Error) -> Error {
    let remedy = "put the commands of a Hadoop installation on the PATH, or use another runner";
    not_started(&command.get_program().to_string_lossy(), remedy, source)
}

/// Runs a Hadoop job to its end. The output of the job client is copied to standard error and into the log.
fn submit(arguments: &[String], log: &Path, interrupt: &Interrupt, is_quiet: bool) -> Result<(), Error> {
    let mut client = client(env::var_os(JAR));
    client.args(arguments);
    let child = client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|source| no_hadoop(&client, &source))?;
    let copied = match child.stderr.take() {
        Some(stderr) => copy(BufReader::new(stderr), log, is_quiet),
        None => Ok(String::new()),
    };
    let status = child.wait().map_err(no_log)?;
    let text = copied.map_err(no_log)?;
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
    Err(Error::interrupted(&remedy))
}

/// `job_1700000000000_0001`; `job_local17_0001` has no application
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

/// The error of a failed job by the output of its client: the last exception or error, and the exit code of the program.
fn failed(log: &str) -> Error {
    let is_cause = |line: &&str| {
        ["Error", "Exception", "ERROR"].iter().any(|sign| line.contains(sign))
            && !line.contains("Job not successful!")
    };
    let found = log.lines().rev().find(is_cause).or_else(|| log.lines().last()).unwrap_or("no message");
    let exit = exit_code(log).map_or(Exit::Internal, exit_of);
    let of_yarn = |id: &&str| id.starts_with(|first: char| first.is_ascii_digit());
    let application = job_id(log).and_then(|id| id.strip_prefix("job_")).filter(of_yarn);
    let application = application.map(|id| format!("application_{id}"));
    let next = next(None, application.as_deref(), false);
    Error::HadoopJob { found: masked(found), next, application, exit }
}

#[cfg(test)]
mod tests {
    use program::exit::Fails;

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
            "the Hadoop job failed: Error: java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): subprocess failed \
             with code 65; yarn logs -applicationId application_17_0001 shows the logs of its tasks"
        );
    }

    #[test]
    fn a_cause_that_hadoop_reports_has_an_exit_code_unless_a_program_has_one() {
        let with = |rule: &'static str, log: &str| {
            let (cause, remedy) = ("the input x is damaged".to_owned(), "copy it again".to_owned());
            with_cause(failed(log), Some(&Block { rule, cause, remedy, evidence: Vec::new(), n_lines: 1 }))
        };
        let error = with("input-damaged", "Streaming Command Failed!\n");
        assert_eq!(error.exit(), Exit::BadInput);
        assert_eq!(
            error.to_string(),
            "the Hadoop job failed: the input x is damaged; copy it again; the output of the job client is above"
        );
        assert_eq!(with("input-missing", "").exit(), Exit::MissingInput);
        assert_eq!(with("input-damaged", "subprocess failed with code 74\n").exit(), Exit::Io);
        assert_eq!(with("shuffle", "").exit(), Exit::Internal);
        assert!(rules().iter().filter_map(|rule| rule.exit).all(crate::runner::is_of_programs));
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
        let flags = ["--vocabulary-size", "9", "--bad-lines-max", "0.1", "--invalid-utf8-max", "1"]
            .map(str::to_owned);
        assert_eq!(taken(flags.to_vec(), &LIMITS).1, flags[..2]);
        assert_eq!(taken(flags[..2].to_vec(), &LIMITS).1, flags[..2]);
    }
}
