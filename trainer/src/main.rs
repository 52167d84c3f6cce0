//! The program `trainer`: trains, evaluates and exports models, predicts, and writes reports.

use std::process::ExitCode;

use clap::error::ErrorKind;
use program::exit::{Exit, chain, usage};
use trainer::arguments::Command;
use trainer::{commands, flags, set_quiet};

fn main() -> ExitCode {
    if let Err(error) = program::check_streams() {
        return Exit::Io.end("trainer", &error.to_string());
    }
    let libraries = [("HDF5", &*dataset::hdf5_version()), ("PyTorch", c10d::compiled_version())];
    let arguments = match flags::parse(option_env!("SENTIMILL_COMMIT"), &libraries) {
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
    let done = match &arguments.command {
        Command::Fit(arguments) => commands::fit(arguments),
        Command::Pretrain(arguments) => commands::pretrain(arguments),
        Command::Evaluate(arguments) => commands::evaluate(arguments),
        Command::Predict(arguments) => commands::predict(arguments),
        Command::Explain(arguments) => commands::explain(arguments),
        Command::Export(arguments) => commands::export(arguments),
        Command::Report(arguments) => commands::report(arguments),
        Command::Launch(arguments) => return commands::launch(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_output() => error.exit().into(),
        Err(error) => end(&error),
    }
}

/// Reports an error to torchrun or `launch`, and on standard error.
fn end(error: &trainer::Error) -> ExitCode {
    let message = chain(error);
    if let Err(unwritten) = launch::failure::report(error.exit(), &message) {
        let path = launch::failure::ERROR_FILE;
        return error
            .exit()
            .end("trainer", &format!("{message} (and {path} could not be written: {unwritten})"));
    }
    error.exit().end("trainer", &message)
}
