//! The program `trainer`: trains, evaluates and predicts.

use std::process::ExitCode;

use program::exit::{Exit, chain, usage};
use trainer::arguments::Command;
use trainer::{commands, flags};

fn main() -> ExitCode {
    if let Err(error) = program::check_streams() {
        return Exit::Io.end("trainer", &error.to_string());
    }
    let arguments = match flags::parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage("trainer", &error.render(), error.use_stderr()),
    };
    let done = match &arguments.command {
        Command::Fit(arguments) => commands::fit(arguments),
        Command::Pretrain(arguments) => commands::pretrain(arguments),
        Command::Evaluate(arguments) => commands::evaluate(arguments),
        Command::Predict(arguments) => commands::predict(arguments),
        Command::Export(arguments) => commands::export(arguments),
        Command::Report(arguments) => commands::report(arguments),
        Command::Launch(arguments) => return commands::launch(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => end(&error),
    }
}

/// Reports the error to torchrun or `launch`, and on standard error.
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
