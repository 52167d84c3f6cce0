//! The program `sentimill`: makes a dataset and prints its card, or fetches a corpus.

use std::env;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use corpus::arguments::{self, ReportArguments, RowArguments, STOP_WORDS_BYTES_MAX};
use corpus::ledger::Limits;
use corpus::settings::Settings;
use making::{
    DatasetOptions, Existing, Making, Output, ProgressBars, Report, VocabularyFrom, json, ledger_lines,
};
use program::exit::{self, Exit, Failed, print};
use program::location::{Location, S3Url};
use program::system::Failure;
use reading::{OtherExtension, Reading};
use sentimill::arguments::{Arguments, Command};
use sentimill::{ExtraFile, Options, fetch, run};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use store::S3Options;

/// Default of --out for several inputs.
const DEFAULT_OUT: &str = "reviews.h5";

/// Memory of a thread for lines, and its share of the output buffers.
const THREAD_BYTES: usize = 24 << 20;

fn main() -> ExitCode {
    let libraries = [("HDF5", &*dataset::hdf5_version())];
    arguments::run("sentimill", option_env!("SENTIMILL_COMMIT"), &libraries, make)
}

fn make(arguments: Arguments) -> Result<(), Failed> {
    if let Some(Command::Fetch(arguments)) = &arguments.command {
        return fetch(arguments);
    }
    let extra_file = |flag, path: Option<PathBuf>| path.map(|path| ExtraFile::ready(flag, path)).transpose();
    let threads = threads(&arguments);
    let s3 = arguments.s3.clone().unwrap_or_default();
    let inputs = [arguments.places, arguments.input].concat();
    let ReportArguments { json: is_json, quiet: is_quiet } = arguments.report;
    let out = arguments.out.unwrap_or_else(|| {
        let out = default_out(&inputs);
        if !is_quiet {
            exit::notice("sentimill", &format!("using the default --out {}", out.display()));
        }
        out.into()
    });
    let out = Output::of(out, &s3, Existing::of_force(arguments.dataset.files.force))?;
    let dataset = DatasetOptions::of(&arguments.dataset, out, arguments.texts, &s3)?;
    let settings =
        row_settings(&arguments.rows, arguments.dataset.vocabulary.vocabulary.as_ref(), &dataset, &s3)?;
    let by_extension = || reading::format_of(&inputs, &s3, OtherExtension::Same);
    let options = Options {
        encoding: arguments.format.encoding(),
        format: arguments.format.or_format(by_extension)?.format()?,
        limits: Limits {
            bad_lines_max: arguments.bad_lines_max,
            invalid_utf8_max: arguments.invalid_utf8_max,
        },
        settings,
        dataset,
        memory_bytes: arguments.memory,
        threads,
        scratch: env::temp_dir(),
        rejects: extra_file("--rejects", arguments.rejects)?,
        origins: extra_file("--origins", arguments.origins)?,
    };
    let making = Making::ready(&options.dataset, &options.settings)?;
    options.check_paths(&making)?;
    let reading = Reading::start(reading::find(&inputs, &s3)?, &options.reading())?;
    let interrupt =
        interrupt().map_err(|error| Failed::new(Exit::Io, format!("cannot handle signals: {error}")))?;
    let progress = if is_quiet { ProgressBars::to_nobody() } else { ProgressBars::to_stderr("sentimill") };
    let made = run(&reading, &making, &options, &interrupt, &progress, io::stderr())?;
    let text = match is_json {
        true => json(&Report::written(&options.dataset.out, &made.manifest, &made.card)),
        false => ledger_lines(&made.manifest) + &made.card.text(),
    };
    print(&text).map_err(|error| {
        let why = Failure::writing("write the data card", &error, "redirect it to another disk");
        Failed::new(Exit::Io, format!("standard output: {why}"))
    })
}

/// Default of `--out`, in the current folder. For one file, it is the file's name without its extensions and
/// with .h5; for other inputs, it is [`DEFAULT_OUT`].
fn default_out(inputs: &[String]) -> PathBuf {
    let name = match inputs {
        [input] if Path::new(input).is_file() => Path::new(input).file_name(),
        _ => None,
    };
    let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // A leading dot does not start an extension.
    match name.char_indices().find(|&(at, c)| at > 0 && c == '.').map_or(&name[..], |(at, _)| &name[..at]) {
        "" => PathBuf::from(DEFAULT_OUT),
        stem => PathBuf::from(format!("{stem}.h5")),
    }
}

/// The settings of rows: those of the dataset whose vocabulary is reused, if any.
fn row_settings(
    rows: &RowArguments,
    vocabulary: Option<&Location>,
    dataset: &DatasetOptions,
    s3: &S3Options,
) -> Result<Settings, Failed> {
    let read = |url: &S3Url| Ok(store::read_existing(url, s3, STOP_WORDS_BYTES_MAX)?);
    match (vocabulary, &dataset.vocabulary) {
        (Some(location), VocabularyFrom::Dataset(file)) => {
            rows.settings_after(location, &file.open()?.settings().rows, &read)
        }
        _ => rows.settings(&read),
    }
}

fn threads(arguments: &Arguments) -> NonZeroUsize {
    let most = NonZeroUsize::new(arguments.memory / THREAD_BYTES).unwrap_or(NonZeroUsize::MIN);
    let asked = arguments.threads.and_then(|threads| NonZeroUsize::new(threads.into()));
    asked.unwrap_or_else(|| dataset::threads(most))
}

/// A flag that the first SIGINT or SIGTERM sets. The second SIGINT ends the program at once.
fn interrupt() -> io::Result<Arc<AtomicBool>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    flag::register_conditional_default(SIGINT, Arc::clone(&interrupt))?;
    flag::register(SIGINT, Arc::clone(&interrupt))?;
    flag::register(SIGTERM, Arc::clone(&interrupt))?;
    Ok(interrupt)
}
