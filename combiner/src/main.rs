//! The program `combiner`: standard input to standard output, exit code out.

use std::env;
use std::io;
use std::process::ExitCode;

use clap::Parser;
use corpus::exit::{chain, usage};
use corpus::pipe::widen;

/// Adds up neighbouring records of one text, from standard input to standard output. It may run any number of times,
/// before the sort or after it: no result changes.
#[derive(Parser)]
#[command(version)]
struct Arguments {}

fn main() -> ExitCode {
    if let Err(error) = Arguments::try_parse() {
        return usage("combiner", &error.render(), error.use_stderr());
    }
    widen(io::stdin());
    widen(io::stdout());
    // Pieces larger than the buffers of standard input and output pass them by.
    match combiner::run(io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.exit().end_task("combiner", &chain(&error), env::var_os::<&str>),
    }
}
