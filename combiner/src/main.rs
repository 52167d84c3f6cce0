//! The program `combiner`: reads standard input, writes standard output, returns an exit code.

use std::io;
use std::process::ExitCode;

use combiner::arguments::Arguments;
use program::exit::{Exit, Failed, usage};
use program::pipe::widen;

fn main() -> ExitCode {
    if let Err(error) = program::start("combiner") {
        return Exit::Io.end("combiner", &error.to_string());
    }
    if let Err(error) = corpus::arguments::parse::<Arguments>(option_env!("SENTIMILL_COMMIT"), &[]) {
        return usage("combiner", &error.render(), error.use_stderr());
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => program::hadoop::end(error.exit, "combiner", &error.message),
    }
}

fn run() -> Result<(), Failed> {
    let stdin = program::stdin().map_err(|error| Failed::new(Exit::Io, error.to_string()))?;
    widen(&stdin);
    widen(io::stdout());
    // Blocks larger than the buffers of standard input and output bypass them.
    Ok(combiner::run(stdin.lock(), io::stdout().lock())?)
}
