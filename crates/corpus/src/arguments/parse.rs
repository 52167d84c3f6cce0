//! Parses the command line into a program's arguments.

use crate::clean::UNICODE_VERSION;
use clap::{Command, CommandFactory, FromArgMatches};
use program::version::{long, short};

/// Width of help, also if it is redirected to a file or a pipe.
const HELP_COLUMNS: usize = 80;

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
