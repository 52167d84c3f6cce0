//! Starts the program: checks the standard streams, parses the arguments, runs the command and reports its error.
//!
//! There are two executables. `trainer-torch` has all commands and is linked to libtorch, which takes some 200 ms to
//! load. `trainer` is not linked to it. It runs the commands that compute without tensors and replaces itself by the
//! `trainer-torch` beside it for the others.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command as Process, ExitCode};

use clap::error::ErrorKind;
use program::exit::{Exit, Failed, Fails, chain, usage};
use program::limits::memory_limit;

use crate::arguments::{Arguments, Command};
use crate::error::{Error, Result};
use crate::{commands, flags, set_quiet};

/// The executable that is linked to libtorch.
const WITH_TORCH: &str = "trainer-torch";

/// Address space that libtorch needs in order to start, for `ulimit -v`.
const TORCH_BYTES: u64 = 1 << 30;

/// The main function of an executable. `libraries` are those that `--version` prints; `with_torch` runs a command that
/// needs tensors.
pub fn start(libraries: &[(&str, &str)], with_torch: impl FnOnce(&Arguments) -> Result<()>) -> ExitCode {
    if let Err(error) = program::start("trainer") {
        return Exit::Io.end("trainer", &error.to_string());
    }
    let arguments = match flags::parse(option_env!("SENTIMILL_COMMIT"), libraries) {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Without a command, the help is the message. If nobody reads it, the exit code still reports the
            // error.
            let _ = error.print();
            return Exit::Usage.into();
        }
        Err(error) => return usage("trainer", &error.render(), error.use_stderr()),
    };
    set_quiet(arguments.command.is_quiet());
    if let Command::Launch(arguments) = &arguments.command {
        return commands::launch(arguments);
    }
    let done = commands::without_torch(&arguments.command).unwrap_or_else(|| with_torch(&arguments));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_output() => error.exit().into(),
        Err(error) => end(&error),
    }
}

/// Replaces this process by the executable with libtorch, with the same arguments. Returns only if this fails.
pub fn replace() -> Error {
    // Without this memory, the libraries end the process before `main`.
    if let Some(limit) = memory_limit().filter(|&limit| limit < TORCH_BYTES) {
        let expected = format!("at least {TORCH_BYTES}; raise it with ulimit -v");
        let message = format!("PyTorch: found a limit of {limit} bytes of memory, expected {expected}");
        return Failed::new(Exit::Io, message).into();
    }
    let program = match env::current_exe() {
        Ok(program) => program.with_file_name(WITH_TORCH),
        Err(source) => return Error::io(WITH_TORCH.as_ref(), source),
    };
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_else(|| "trainer".into());
    // Lists of processes show the command as it was entered.
    let source = Process::new(&program).arg0(name).args(arguments).exec();
    Error::NoTorch { path: program, source }
}

/// Whether the arguments ask for the version, which names the libraries.
pub fn is_of_version() -> bool {
    let first = env::args_os().nth(1);
    first.is_some_and(|first| first == "--version" || first == "-V")
}

/// Reports an error to torchrun or `launch`, and on standard error.
fn end(error: &Error) -> ExitCode {
    let message = chain(error);
    if let Err(unwritten) = launch::failure::report(error.exit(), &message) {
        let path = launch::failure::ERROR_FILE;
        return error
            .exit()
            .end("trainer", &format!("{message} (and {path} could not be written: {unwritten})"));
    }
    error.exit().end("trainer", &message)
}
