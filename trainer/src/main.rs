//! The program `trainer`: trains, evaluates and exports classifiers on PyTorch, predicts with them, and writes reports.

use std::process::ExitCode;

use trainer::{commands, flags};
use training::start::start;
use training::tell::set_quiet;

fn main() -> ExitCode {
    start("trainer", flags::parse, |arguments| {
        set_quiet(arguments.command.is_quiet());
        commands::run(&arguments.command)
    })
}
