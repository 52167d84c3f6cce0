//! The program `combiner`: reads standard input, writes standard output, returns an exit code.

use std::io;
use std::process::ExitCode;

use combiner::arguments::Arguments;
use corpus::arguments;
use program::exit::{Exit, Failed};
use program::pipe::widen;

fn main() -> ExitCode {
    arguments::run("combiner", option_env!("SENTIMILL_COMMIT"), &[], combine)
}

fn combine(_: Arguments) -> Result<(), Failed> {
    let stdin = program::stdin().map_err(|error| Failed::new(Exit::Io, error.to_string()))?;
    widen(&stdin);
    widen(io::stdout());
    // Blocks larger than the buffers of standard input and output bypass them.
    combiner::run(stdin.lock(), io::stdout().lock())
}
