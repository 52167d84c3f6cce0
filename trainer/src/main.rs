//! The program `trainer`: arguments in, a model, metrics or predictions out.

use std::process::ExitCode;

use clap::Parser;
use corpus::exit::{chain, usage};
use trainer::arguments::{Arguments, Command};
use trainer::commands;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage("trainer", &error.render(), error.use_stderr()),
    };
    let done = match &arguments.command {
        Command::Fit(arguments) => commands::fit(arguments),
        Command::Evaluate(arguments) => commands::evaluate(arguments),
        Command::Predict(arguments) => commands::predict(arguments),
        Command::Export(arguments) => commands::export(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.exit().end("trainer", &chain(&error)),
    }
}
