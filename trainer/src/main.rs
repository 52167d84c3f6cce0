//! The program `trainer`: trains, evaluates and exports classifiers on PyTorch, predicts with them, and writes reports.

use std::process::ExitCode;

fn main() -> ExitCode {
    trainer::run()
}
