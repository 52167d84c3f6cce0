//! Runs a job: on Amazon EMR, on the Hadoop cluster that `hadoop` reaches, or on this machine. All three write the same
//! dataset, byte for byte.

pub mod emr;
pub mod hadoop;
pub mod local;
mod tasks;

use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use clap::ValueEnum;
use program::exit::{ERROR_FILE, Exit, Failed, Fails, chain, notice};
use store::Store;

use crate::Error;
use crate::failures::{Number, Record};
use crate::job::Job;

/// Where a job runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Runner {
    /// A cluster on Amazon EMR.
    #[default]
    Emr,
    /// The Hadoop cluster that the command hadoop reaches.
    Hadoop,
    /// The program sentimill, on this machine.
    Local,
}

impl Runner {
    /// The name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Emr => "emr",
            Self::Hadoop => "hadoop",
            Self::Local => "local",
        }
    }
}

/// The output of a job cannot be kept.
fn no_log(source: io::Error) -> Error {
    Error::io("cannot keep the output of the job; check TMPDIR and its disk", source)
}

/// A program cannot be started.
fn not_started(program: &str, remedy: &str, source: &io::Error) -> Error {
    let message = format!("{program}: cannot start the program; {remedy}");
    Failed::caused(Exit::Settings, message, source).into()
}

/// The runner cannot do what a key of the job file states.
fn impossible(key: &str, found: &str, runner: Runner, remedy: &str) -> Error {
    let runner = runner.name();
    let message = format!("{key}: {found} is not possible with --runner {runner}; {remedy}");
    Error::new(Exit::Settings, message)
}

/// Records a failure in the run, with the message of the program that failed. A store that fails does not replace the error
/// of the job.
fn record(store: &Store, kept: Option<Number>, runner: Runner, error: &Error, log: &Path) {
    let message = match error {
        Error::Failed { .. } => fs::read_to_string(log).ok().filter(|message| !message.is_empty()),
        _ => None,
    };
    let message = message.unwrap_or_else(|| chain(error));
    let application = match error {
        Error::HadoopJob { application, .. } => application.clone(),
        _ => None,
    };
    let record = Record::new(runner.name(), error.exit() as u8, message.trim_end(), application);
    if let Some(Err(error)) = kept.map(|number| number.record(store, &record)) {
        not_recorded(&error);
    }
}

/// Keeps the log of a failure in the run under its number.
fn keep(store: &Store, log: &Path) -> Option<Number> {
    Number::keep(store, log).unwrap_or_else(|error| {
        not_recorded(&error);
        None
    })
}

fn not_recorded(error: &store::Error) {
    notice("emr", &format!("warning: the run has no record of this failure: {}", chain(error)));
}

/// The meaning of an exit code of this project's programs; any other code is a broken invariant.
pub fn exit_of(code: u8) -> Exit {
    codes().find(|exit| *exit as u8 == code).unwrap_or(Exit::Internal)
}

/// Whether an exit code is one of this project's programs, not of a shell or of Hadoop's client.
pub fn is_of_programs(code: u8) -> bool {
    codes().any(|exit| exit as u8 == code)
}

fn codes() -> impl Iterator<Item = Exit> {
    use Exit::{BadInput, Internal, Io, MissingInput, Settings, TryAgain, Unavailable, Usage};
    [Usage, BadInput, MissingInput, Unavailable, Internal, Io, TryAgain, Settings].into_iter()
}

/// A program of this project in the folder of the job's programs.
fn program(job: &Job, name: &str) -> Command {
    let mut command = Command::new(job.programs.join(name));
    // The result is read from the dataset's manifest, so that all runners report it in the same way.
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Runs a program of this project to its end. Its messages go to standard error, and the last one of a failure into `log`
/// too.
fn run(command: &mut Command, log: &Path) -> Result<(), Error> {
    File::create(log).map_err(no_log)?;
    command.env(ERROR_FILE, log);
    let path = PathBuf::from(command.get_program());
    let remedy = "set programs in the job file to the folder of Sentimill's programs";
    let status = command.status();
    let status = status.map_err(|source| not_started(&path.display().to_string(), remedy, &source))?;
    ended(&path, status)
}

fn ended(path: &Path, status: ExitStatus) -> Result<(), Error> {
    if status.success() {
        return Ok(());
    }
    let program = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let (ended, exit) = match status.code() {
        Some(code) => (
            format!("exited with code {code}; its message is above"),
            u8::try_from(code).map_or(Exit::Internal, exit_of),
        ),
        None => {
            let signal = status.signal().unwrap_or_default();
            let remedy = "check the memory of this machine with dmesg, then run the command again";
            (format!("was killed by signal {signal}; {remedy}"), Exit::TryAgain)
        }
    };
    Err(Error::Failed { program, ended, exit })
}

/// `--s3` of programs on this machine.
fn s3_flag(job: &Job) -> Vec<String> {
    let options = job.s3_options_of_programs();
    if options.is_empty() { Vec::new() } else { vec!["--s3".to_owned(), options.join(",")] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_exit_code_keeps_its_meaning() {
        for code in [64, 65, 66, 69, 70, 74, 75, 78] {
            assert_eq!(exit_of(code) as u8, code);
        }
        assert!(exit_of(1) == Exit::Internal && !is_of_programs(1) && is_of_programs(65));
    }
}
