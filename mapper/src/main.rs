//! The program `mapper`: standard input to standard output, counts to a file, exit code out.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use corpus::exit::{Exit, chain, usage};
use corpus::ledger::{MapperCounts, Share};
use corpus::lines::LINE_BYTES_MAX;
use corpus::record::RECORD_BYTES_MAX;
use corpus::review::Fields;
use mapper::Options;

/// Cleaning makes a text up to half as long again (Ⱥ has two bytes, ⱥ three), and the record has to stay below the
/// limit of those who read it.
const LINE_BYTES_LARGEST: u64 = RECORD_BYTES_MAX as u64 / 8 * 5;

/// Turns review lines on standard input into records on standard output: cleaned text, tab, votes.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Field of the text
    #[arg(long, value_name = "NAME", default_value = "reviewText")]
    text_field: String,
    /// Field of the rating
    #[arg(long, value_name = "NAME", default_value = "overall")]
    rating_field: String,
    /// Longest line that is read; longer ones are counted as line_too_long
    #[arg(long, value_name = "BYTES", default_value_t = LINE_BYTES_MAX as u64,
        value_parser = clap::value_parser!(u64).range(1..=LINE_BYTES_LARGEST))]
    line_bytes_max: u64,
    /// Share of bad lines above which the mapper fails at its end
    #[arg(long, value_name = "SHARE", default_value_t = Share::OF_BAD_LINES)]
    bad_lines_max: Share,
    /// Write this mapper's part of the ledger to a file, as JSON
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage("mapper", &error.render(), error.use_stderr()),
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((exit, message)) => exit.end("mapper", &message),
    }
}

fn run(arguments: &Arguments) -> Result<(), (Exit, String)> {
    let options = Options {
        fields: Fields { text: arguments.text_field.clone(), rating: arguments.rating_field.clone() },
        line_bytes_max: arguments.line_bytes_max as usize,
        bad_lines_max: arguments.bad_lines_max,
        file: input_name(),
    };
    if let Some(path) = &arguments.counts {
        // Counts of an earlier run must not pass for those of a mapper that fails.
        let _ = fs::remove_file(path);
    }
    // Pieces larger than the buffers of standard input and output pass them by.
    let counts = mapper::run(io::stdin().lock(), io::stdout().lock(), io::stderr(), &options)
        .map_err(|error| (error.exit(), chain(&error)))?;
    match &arguments.counts {
        Some(path) => write_counts(path, &counts).map_err(|error| {
            let remedy = "check the path, its permissions and the free space";
            (Exit::Io, format!("{}: cannot write the counts; {remedy}: {error}", path.display()))
        }),
        None => Ok(()),
    }
}

/// The file that Hadoop feeds this mapper, else `-`.
fn input_name() -> String {
    let names = ["mapreduce_map_input_file", "map_input_file"];
    names.iter().find_map(|name| std::env::var(name).ok()).unwrap_or_else(|| "-".to_owned())
}

fn write_counts(path: &PathBuf, counts: &MapperCounts) -> io::Result<()> {
    let mut json = serde_json::to_string_pretty(counts)?;
    json.push('\n');
    fs::write(path, json)
}
