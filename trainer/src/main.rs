//! The program `trainer`: arguments in, a model, metrics or predictions out.

use std::process::ExitCode;

use clap::Parser;
use corpus::exit::{chain, usage};
use trainer::arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage("trainer", &error.render(), error.use_stderr()),
    };
    let done = match &arguments.command {
        Command::Fit(arguments) => trainer::fit::fit(arguments),
        Command::Evaluate(arguments) => trainer::evaluate_model::evaluate_model(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.exit().end("trainer", &chain(&error)),
    }
}
