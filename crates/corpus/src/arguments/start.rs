//! Starts a program: parses its command line into arguments, and runs its work.

use std::process::ExitCode;

use crate::clean::UNICODE_VERSION;
use clap::{Command, CommandFactory, FromArgMatches};
use program::exit::{Exit, Failed, usage};
use program::version::{long, short};

/// Width of help, also if it is redirected to a file or a pipe.
const HELP_COLUMNS: usize = 80;

/// Runs a program: checks the standard streams, parses the arguments, does the work and reports its error. `commit` and
/// `libraries` are as for [`parse`].
pub fn run<A: CommandFactory + FromArgMatches>(
    program: &'static str,
    commit: Option<&str>,
    libraries: &[(&str, &str)],
    work: impl FnOnce(A) -> Result<(), Failed>,
) -> ExitCode {
    if let Err(error) = program::start(program) {
        return Exit::Io.end(program, &error.to_string());
    }
    let arguments = match parse(commit, libraries) {
        Ok(arguments) => arguments,
        Err(error) => return usage(program, &error.render(), error.use_stderr()),
    };
    match work(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed { exit, message }) => program::hadoop::end(exit, program, &message),
    }
}

/// Parses the arguments of the process. `commit` is the `option_env!("SENTIMILL_COMMIT")` of its `main.rs`;
/// `libraries` are names and versions that `--version` prints in addition to the Unicode version.
pub fn parse<A: CommandFactory + FromArgMatches>(
    commit: Option<&str>,
    libraries: &[(&str, &str)],
) -> Result<A, clap::Error> {
    let mut command = described(A::command(), commit, libraries);
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    A::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// A program's command with its versions and the width of its help.
pub fn described(command: Command, commit: Option<&str>, libraries: &[(&str, &str)]) -> Command {
    let libraries = [&[("Unicode", UNICODE_VERSION)], libraries].concat();
    // A negative number is a wrong value of its flag, not an unknown flag.
    let command = command.mut_args(|arg| {
        let takes_number = arg.get_long().is_some() && arg.get_action().takes_values();
        if takes_number { arg.allow_negative_numbers(true) } else { arg }
    });
    command.version(short(commit)).long_version(long(commit, &libraries)).max_term_width(HELP_COLUMNS)
}
