//! How a program that trains models starts and ends.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use program::exit::{Exit, Fails, chain, usage};

use crate::error::Error;
use crate::tell::set_program;

/// An error with which a command ends.
pub trait Ends: Fails {
    /// Whether the reader of standard output closed it, as `head` does. This error requires no message.
    fn is_closed_output(&self) -> bool;
}

impl Ends for Error {
    fn is_closed_output(&self) -> bool {
        Self::is_closed_output(self)
    }
}

/// Checks the standard streams, parses the arguments, runs the command and reports its error.
pub fn start<A, E: Ends>(
    program: &'static str,
    parse: impl FnOnce(&[OsString]) -> Result<A, clap::Error>,
    run: impl FnOnce(&A) -> Result<ExitCode, E>,
) -> ExitCode {
    set_program(program);
    if let Err(error) = program::start(program) {
        return Exit::Io.end(program, &error.to_string());
    }
    let words: Vec<OsString> = env::args_os().collect();
    let arguments = match parse(&words) {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Without a command, the help is the message. If nobody reads it, the exit code still reports the
            // error.
            let _ = error.print();
            return Exit::Usage.into();
        }
        Err(error) => return usage(program, &error.render(), error.use_stderr()),
    };
    match run(&arguments) {
        Ok(code) => code,
        Err(error) if error.is_closed_output() => error.exit().into(),
        Err(error) => end(program, &error),
    }
}

/// Reports an error to torchrun, `launch` or Hadoop, and on standard error.
fn end(program: &str, error: &impl Fails) -> ExitCode {
    let message = chain(error);
    if let Err(unwritten) = launch::failure::report(error.exit(), &message) {
        let path = launch::failure::ERROR_FILE;
        let message = format!("{message} (and {path} could not be written: {unwritten})");
        return program::hadoop::end(error.exit(), program, &message);
    }
    program::hadoop::end(error.exit(), program, &message)
}
