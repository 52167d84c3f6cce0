//! The program `combiner`: standard input to standard output, exit code out.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::Parser;
use corpus::exit::{chain, usage};

/// Adds up neighbouring records of one text, from standard input to standard output. It may run any number of times,
/// before the sort or after it: no result changes.
#[derive(Parser)]
#[command(version)]
struct Arguments {}

fn main() -> ExitCode {
    if let Err(error) = Arguments::try_parse() {
        return usage("combiner", &error.render(), error.use_stderr());
    }
    match files().map_err(combiner::Error::Write).and_then(|(input, output)| combiner::run(input, output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.exit().end("combiner", &chain(&error)),
    }
}

/// Standard input and output without buffers of their own: records are read and written in large pieces.
fn files() -> io::Result<(File, File)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((File::from(input), File::from(output)))
}
