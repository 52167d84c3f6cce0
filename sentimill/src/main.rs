//! The program `sentimill`: makes a dataset and prints its card.

use std::env;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use corpus::arguments::{ReportArguments, RowArguments, STOP_WORDS_BYTES_MAX};
use corpus::ledger::Limits;
use corpus::lines::LINE_BYTES_MAX;
use corpus::settings::Settings;
use making::{
    DatasetFile, DatasetOptions, Existing, Making, Output, ProgressBars, Report, VocabularyFrom, json,
    ledger_lines,
};
use program::exit::{self, Exit, Failed, print, usage};
use program::location::{Location, S3Url};
use program::system::Failure;
use reading::{Reading, ReadingOptions};
use sentimill::arguments::Arguments;
use sentimill::{ExtraFile, Options, run};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use store::S3Options;

/// Default of --out for several inputs.
const DEFAULT_OUT: &str = "reviews.h5";

/// Memory of a thread for lines, and its share of the output buffers.
const THREAD_BYTES: usize = 24 << 20;

fn main() -> ExitCode {
    if let Err(error) = program::start("sentimill") {
        return Exit::Io.end("sentimill", &error.to_string());
    }
    let arguments = match corpus::arguments::parse::<Arguments>(
        option_env!("SENTIMILL_COMMIT"),
        &[("HDF5", &dataset::hdf5_version())],
    ) {
        Ok(arguments) => arguments,
        Err(error) => return usage("sentimill", &error.render(), error.use_stderr()),
    };
    match make(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.exit.end("sentimill", &error.message),
    }
}

fn make(arguments: Arguments) -> Result<(), Failed> {
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
    let dataset = arguments.dataset;
    let existing = Existing::replaced_if(dataset.force);
    let out = Output::of(out, &s3, existing)?;
    let other = |location: &Option<Location>| -> Result<_, Failed> {
        Ok(location.as_ref().map(|location| DatasetFile::of(location, &s3)).transpose()?)
    };
    let vocabulary = other(&dataset.vocabulary)?;
    let settings = row_settings(&arguments.rows, dataset.vocabulary.as_ref().zip(vocabulary.as_ref()), &s3)?;
    let options = Options {
        encoding: arguments.format.encoding(),
        format: arguments.format.format()?,
        limits: Limits {
            bad_lines_max: arguments.bad_lines_max,
            invalid_utf8_max: arguments.invalid_utf8_max,
        },
        settings,
        dataset: DatasetOptions {
            out,
            vocabulary: VocabularyFrom::requested(vocabulary, dataset.vocabulary_size),
            without: other(&dataset.without)?,
            padded: dataset.padded,
            ids: dataset.parquet,
            texts: arguments.texts,
            existing,
        },
        memory_bytes: arguments.memory,
        threads,
        scratch: env::temp_dir(),
        rejects: extra_file("--rejects", arguments.rejects)?,
        origins: extra_file("--origins", arguments.origins)?,
    };
    let reading = || -> Result<Reading, reading::Error> {
        let sources = reading::find(&inputs, &s3)?;
        let (format, encoding) = (options.format.clone(), options.encoding);
        let options = ReadingOptions {
            format,
            encoding,
            line_bytes_max: LINE_BYTES_MAX,
            threads,
            streams_max: threads,
            batches_bytes: options.tables_bytes(),
        };
        Reading::start(sources, &options)
    };
    let making = Making::ready(&options.dataset, &options.settings)?;
    options.check_paths(&making)?;
    let reading = reading()?;
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
    vocabulary: Option<(&Location, &DatasetFile)>,
    s3: &S3Options,
) -> Result<Settings, Failed> {
    let read = |url: &S3Url| Ok(store::read_existing(url, s3, STOP_WORDS_BYTES_MAX)?);
    let Some((location, file)) = vocabulary else { return rows.settings(&read) };
    let dataset = file.open()?;
    rows.settings_after(location, &dataset.settings().rows, &read)
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
