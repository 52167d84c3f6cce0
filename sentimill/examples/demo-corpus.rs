//! `demo-corpus`: prints synthetic product reviews, for the demo, the tests and the benchmarks.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

/// Write synthetic product reviews, one JSON line each, in the layout of the Amazon 2018 dumps.
///
/// The same seed gives the same lines on every machine; fewer reviews are the first lines of more.
/// One line in a hundred is awkward: blank, cut, no JSON, a rating of 6, invalid UTF-8 and the like.
#[derive(Parser)]
#[command(name = "demo-corpus", version)]
struct Arguments {
    /// Lines to write, the awkward ones included
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    reviews: u64,
    /// Which of the possible corpora
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Also write, as JSON, how many lines a mapper should count under each name of its ledger
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
}

fn main() -> ExitCode {
    if let Err(error) = program::start("demo-corpus") {
        eprintln!("demo-corpus: {error}");
        return ExitCode::from(74);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(help_or_error) => {
            let code = if help_or_error.use_stderr() { 64 } else { 0 };
            return match help_or_error.print() {
                Ok(()) => ExitCode::from(code),
                Err(_) => ExitCode::from(74),
            };
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo-corpus: {error:#}");
            ExitCode::from(74)
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut output = BufWriter::with_capacity(1 << 18, io::stdout().lock());
    let facts = synthetic::write(arguments.reviews, arguments.seed, &mut output)
        .and_then(|facts| output.flush().map(|()| facts))
        .context("cannot write to standard output")?;
    if let Some(path) = &arguments.facts {
        let json = serde_json::to_string_pretty(&facts)? + "\n";
        fs::write(path, json).with_context(|| format!("{}: cannot write the facts", path.display()))?;
    }
    Ok(())
}
