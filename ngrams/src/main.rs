//! The program `ngrams`: trains classifiers of words and n-grams on lines, evaluates them and predicts with them.

use std::process::ExitCode;

use ngrams::{commands, flags};
use training::start::start;
use training::tell::set_quiet;

fn main() -> ExitCode {
    start("ngrams", flags::parse, |arguments| {
        set_quiet(arguments.command.is_quiet());
        commands::run(&arguments.command).map(|()| ExitCode::SUCCESS)
    })
}
