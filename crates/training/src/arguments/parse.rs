//! Parses the command line of a program with commands.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

/// Parses the words of a command line. `commit` and `libraries` are those of [`corpus::arguments::described`], besides HDF5.
/// `hint` returns a message in place of the parser's, where there is a better one; it receives the words, the kind of the
/// error, the command and the unknown argument, if this is the error. `check` refuses a flag that was passed to a command
/// and has no effect.
pub fn parse<A: CommandFactory + FromArgMatches>(
    words: &[OsString],
    commit: Option<&str>,
    libraries: &[(&str, &str)],
    hint: impl FnOnce(&[OsString], ErrorKind, &str, &str) -> Option<String>,
    check: impl FnOnce(&A, &ArgMatches) -> Result<(), clap::Error>,
) -> Result<A, clap::Error> {
    let hdf5 = dataset::hdf5_version();
    let libraries = [&[("HDF5", &*hdf5)], libraries].concat();
    let mut command = corpus::arguments::described(A::command(), commit, &libraries);
    let matches = command
        .try_get_matches_from_mut(words)
        .map_err(|error| hinted::<A>(words, &error, hint).unwrap_or(error))?;
    let arguments = A::from_arg_matches(&matches)?;
    matches.subcommand().map_or(Ok(()), |(_, given)| check(&arguments, given))?;
    Ok(arguments)
}

/// A better message in place of the parser's, if there is one.
fn hinted<A: CommandFactory>(
    words: &[OsString],
    error: &clap::Error,
    hint: impl FnOnce(&[OsString], ErrorKind, &str, &str) -> Option<String>,
) -> Option<clap::Error> {
    let mut program = A::command();
    let mut of_user = words.iter().skip(1).filter_map(|word| word.to_str());
    let command = of_user.find(|word| program.find_subcommand(word).is_some())?;
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) if error.kind() == ErrorKind::UnknownArgument => text,
        _ => "",
    };
    let is_input = command == "train" && !unknown.is_empty() && !unknown.starts_with('-');
    let message = match is_input {
        true => format!(
            "unexpected argument '{unknown}' found; pass inputs with --input: {} train --input {unknown}",
            program.get_name()
        ),
        false => hint(words, error.kind(), command, unknown)?,
    };
    Some(program.error(error.kind(), message))
}
