//! The program `sentimill`: arguments in, a dataset and its card out.

use std::env;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arguments::{FormatArguments, RowArguments};
use clap::Parser;
use clap::builder::{PathBufValueParser, TypedValueParser};
use corpus::ledger::Share;
use corpus::lines::LINE_BYTES_MAX;
use corpus::settings::Settings;
use dataset::dataset_file::DatasetReader;
use making::{DatasetOptions, ProgressBars, VocabularyFrom, ledger_lines};
use program::exit::{Exit, chain, print, usage};
use program::place::local_path;
use program::size::parse_memory;
use sentimill::reading::{self, Reading, ReadingOptions};
use sentimill::{Error, Options, run};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use store::S3Options;

/// Makes one dataset of raw reviews, on one machine: what mapper, sort, reducer and merge make together.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Files, 'patterns*', folders, s3://bucket/prefix, or - for standard input
    #[arg(long, value_name = "PLACE", num_args = 1.., required = true)]
    input: Vec<String>,
    /// The dataset to make; its manifest goes beside it
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(local_path))]
    out: PathBuf,
    #[command(flatten)]
    format: FormatArguments,
    /// Share of bad lines to fail above
    #[arg(long, value_name = "SHARE", default_value_t = Share::OF_BAD_LINES)]
    bad_lines_max: Share,
    #[command(flatten)]
    rows: RowArguments,
    /// Most words of the vocabulary [default: 10000]
    #[arg(long, value_name = "N", conflicts_with = "vocabulary",
        value_parser = clap::value_parser!(u64).range(1..=4_000_000_000))]
    vocabulary_size: Option<u64>,
    /// Another dataset's vocabulary and row settings, for a test set after its training set
    #[arg(long, value_name = "FILE")]
    vocabulary: Option<PathBuf>,
    /// Leave out the texts that another dataset holds
    #[arg(long, value_name = "FILE")]
    without: Option<PathBuf>,
    /// Also write a copy for other programs, of rows with this many ids and the label
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    padded: Option<u64>,
    /// For S3: endpoint=, region=, profile=, path-style
    #[arg(long, value_name = "LIST")]
    s3: Option<S3Options>,
    /// Memory to stay below; what does not fit goes to TMPDIR. Bytes, or with KiB, MiB, GiB
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = parse_memory)]
    memory: usize,
    /// Threads that work [default: one a core, fewer with little memory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// What a thread takes for lines, and a part of what it writes to.
const THREAD_BYTES: usize = 24 << 20;

fn main() -> ExitCode {
    if let Err(error) = program::check_streams() {
        return Exit::Io.end("sentimill", &error.to_string());
    }
    let arguments = match arguments::parse::<Arguments>(
        option_env!("SENTIMILL_COMMIT"),
        &[("HDF5", &dataset::hdf5_version())],
    ) {
        Ok(arguments) => arguments,
        Err(error) => return usage("sentimill", &error.render(), error.use_stderr()),
    };
    match milled(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((exit, message)) => exit.end("sentimill", &message),
    }
}

fn milled(arguments: Arguments) -> Result<(), (Exit, String)> {
    let failed = |error: Error| (error.exit(), chain(&error));
    let threads = threads(&arguments);
    let settings = row_settings(&arguments)?;
    let options = Options {
        format: arguments.format.format()?,
        bad_lines_max: arguments.bad_lines_max,
        settings,
        dataset: DatasetOptions {
            out: arguments.out,
            vocabulary: VocabularyFrom::asked(arguments.vocabulary, arguments.vocabulary_size),
            without: arguments.without,
            padded: arguments.padded,
        },
        memory_bytes: arguments.memory,
        threads,
        scratch: env::temp_dir(),
    };
    let reading = || -> Result<Reading, reading::Error> {
        let sources = reading::find(&arguments.input, &arguments.s3.unwrap_or_default())?;
        let format = options.format.clone();
        Reading::start(sources, &ReadingOptions { format, line_bytes_max: LINE_BYTES_MAX, threads })
    };
    let reading = reading().map_err(|error| failed(error.into()))?;
    let interrupt = interrupt().map_err(|error| (Exit::Io, format!("cannot listen to signals: {error}")))?;
    let progress = ProgressBars::to_stderr("sentimill");
    let made = run(&reading, &options, &interrupt, &progress, io::stderr()).map_err(failed)?;
    print(&(ledger_lines(&made.manifest) + &made.card)).map_err(|error| failed(Error::Output(error)))
}

/// The settings of rows: those of the dataset whose vocabulary is taken, where one is.
fn row_settings(arguments: &Arguments) -> Result<Settings, (Exit, String)> {
    let Some(path) = &arguments.vocabulary else { return arguments.rows.settings() };
    let dataset = DatasetReader::open(path).map_err(|error| (error.exit(), chain(&error)))?;
    arguments.rows.settings_after(path, &dataset.settings().rows)
}

fn threads(arguments: &Arguments) -> NonZeroUsize {
    let most = NonZeroUsize::new(arguments.memory / THREAD_BYTES).unwrap_or(NonZeroUsize::MIN);
    let asked = arguments.threads.and_then(|threads| NonZeroUsize::new(threads.into()));
    asked.unwrap_or_else(|| dataset::threads(most))
}

/// A flag that the first SIGINT or SIGTERM sets; the second SIGINT ends the program at once.
fn interrupt() -> io::Result<Arc<AtomicBool>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    flag::register_conditional_default(SIGINT, Arc::clone(&interrupt))?;
    flag::register(SIGINT, Arc::clone(&interrupt))?;
    flag::register(SIGTERM, Arc::clone(&interrupt))?;
    Ok(interrupt)
}
