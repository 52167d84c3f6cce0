//! The program `merge`: merges a run into a dataset and prints its ledger and data card, checks or describes
//! a dataset, or cleans a run.

use std::io::{self, BufReader, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use corpus::arguments::{self, ReportArguments, VocabularyArguments};
use corpus::ledger::{Limits, MapperCounts, Share};
use dataset::manifest::DatasetManifest;
use making::{
    CheckedFile, DatasetFile, DatasetOptions, Existing, Output, ProgressBars, Report, THREADS_MAX,
    VocabularyFrom, json, ledger_lines,
};
use merge::arguments::{
    Arguments, AssembleArguments, Command, CountsArguments, GcArguments, MergeArguments, PlanArguments,
    PlanName, WorkArguments,
};
use merge::gc::Garbage;
use merge::plan::{PlanOptions, Planned};
use merge::tasks::{self, WorkOptions};
use merge::{AssembleOptions, Counted, Options, Outcome, Result, Sources, counts, gc, keep, report};
use program::exit::{self, Exit, Failed};
use program::hadoop::{Heartbeat, Runner, Variable, silence};
use program::location::Location;
use program::system::Failure;
use store::{Listed, S3Options, Store};

/// Default of --run.
const DEFAULT_RUN: &str = "run";

/// Longer than a task of another program takes, as a rule.
const PATIENCE: Duration = Duration::from_secs(30);

/// Default of --out.
const DEFAULT_OUT: &str = "reviews.h5";

fn main() -> ExitCode {
    let libraries = [("HDF5", &*dataset::hdf5_version())];
    arguments::run("merge", option_env!("SENTIMILL_COMMIT"), &libraries, |arguments| run(&arguments))
}

fn run(arguments: &Arguments) -> Result<()> {
    match (&arguments.command, &arguments.merge) {
        (Some(Command::Plan(arguments)), _) => plan(arguments),
        (Some(Command::Work(arguments)), _) => work(arguments),
        (Some(Command::Assemble(arguments)), _) => assemble(arguments),
        (Some(Command::Gc(gc)), _) => collect_garbage(gc),
        (None, MergeArguments { check: Some(file), report, s3, .. }) => check(file, s3, report.json),
        (None, MergeArguments { describe: Some(file), report, s3, .. }) => describe(file, s3, report.json),
        (None, arguments) => merge(arguments),
    }
}

fn merge(arguments: &MergeArguments) -> Result<()> {
    let (runs, place) = runs_and_out(arguments)?;
    if runs.is_empty() && !arguments.counts.counts.is_empty() {
        let why = "--counts: found no --run, expected the runs that the counts are of; a dataset of --add has its own counts";
        return Err(Failed::new(Exit::Usage, why));
    }
    let MergeArguments { dataset, report, .. } = arguments;
    let s3 = arguments.s3.clone().unwrap_or_default();
    let out = Output::of(place.clone(), &s3, Existing::of_force(dataset.files.force))?;
    let open = |run: &String| {
        let store = Store::open_with(run, &s3)?;
        store.probe()?;
        Ok::<_, Failed>(store)
    };
    let sources = Sources {
        runs: runs.iter().map(open).collect::<Result<_>>()?,
        datasets: arguments.add.iter().map(|dataset| keep::words_of(dataset, &s3)).collect::<Result<_>>()?,
    };
    // Fetches datasets on which the new one depends.
    let dataset = DatasetOptions::of(dataset, out, None, &s3)?;
    let progress = bars(report);
    let options = Options {
        dataset,
        counted: counted(&arguments.counts, &s3)?,
        threads: threads(arguments.threads),
        ranges: None,
        keep: arguments.keep_words.then(|| keep::store_beside(&place, &s3)).transpose()?,
        scratch: std::env::temp_dir(),
    };
    let made = merge::run(&sources, &options, &progress)?;
    print_made(made, options.counted.mapper, &options.dataset.out, report)
}

/// Prints the ledger and the card of a dataset. `mapper` are the counts that were passed.
fn print_made(
    made: Outcome,
    mapper: Option<MapperCounts>,
    out: &Output,
    report: &ReportArguments,
) -> Result<()> {
    match made {
        Outcome::Made(manifest, card) => {
            warn_without_counts(mapper, &manifest);
            match report.json {
                true => print(&json(&Report::written(out, &manifest, &card))),
                false => print(&(ledger_lines(&manifest) + &card.text())),
            }
        }
        Outcome::Unchanged(manifest) => {
            warn_without_counts(mapper, &manifest);
            let card = making::describe(&out.file()?.open()?)?;
            match report.json {
                true => print(&json(&Report::unchanged(out, &manifest, &card))),
                false => {
                    let there = format!("{out}: already exists, complete and with these settings");
                    print(&format!("{there}; nothing to do\n{}{}", ledger_lines(&manifest), card.text()))
                }
            }
        }
    }
}

fn bars(report: &ReportArguments) -> ProgressBars {
    if report.quiet { ProgressBars::to_nobody() } else { ProgressBars::to_stderr("merge") }
}

fn threads(asked: Option<u16>) -> NonZeroUsize {
    let asked = asked.and_then(|threads| NonZeroUsize::new(threads.into()));
    asked.unwrap_or_else(|| dataset::threads(THREADS_MAX))
}

fn counted(arguments: &CountsArguments, s3: &S3Options) -> Result<Counted> {
    Ok(Counted {
        mapper: counts::sum(&arguments.counts, s3)?,
        limits: Limits {
            bad_lines_max: arguments.bad_lines_max.unwrap_or(Share::OF_BAD_LINES),
            invalid_utf8_max: arguments.invalid_utf8_max.unwrap_or(Share::OF_INVALID_UTF8),
        },
    })
}

/// Opens the run of a plan.
fn run_of(plan: &PlanName) -> Result<(Store, S3Options)> {
    let s3 = plan.s3.clone().unwrap_or_default();
    let store = Store::open_with(&plan.run, &s3)?;
    store.probe()?;
    Ok((store, s3))
}

fn plan(arguments: &PlanArguments) -> Result<()> {
    let (store, s3) = run_of(&arguments.plan)?;
    let VocabularyArguments { vocabulary, without, .. } = &arguments.vocabulary;
    let without =
        without.as_ref().map(|location| Ok::<_, Failed>((location.clone(), DatasetFile::of(location, &s3)?)));
    let options = PlanOptions {
        name: arguments.plan.plan.clone(),
        counted: counted(&arguments.counts, &s3)?,
        vocabulary: vocabulary.clone(),
        from: VocabularyFrom::of(&arguments.vocabulary, &s3)?,
        without: without.transpose()?,
        tasks: arguments.tasks,
    };
    let planned = merge::plan::plan(&store, &options, &std::env::temp_dir())?;
    let report = report::PlanReport::of(&planned)?;
    print(&if arguments.json { json(&report) } else { report.text() })
}

fn work(arguments: &WorkArguments) -> Result<()> {
    let stdin = program::stdin().map_err(|error| Failed::new(Exit::Io, error.to_string()))?;
    let (store, s3) = run_of(&arguments.plan)?;
    let heartbeat = match Runner::of_this_process() {
        Runner::User => None,
        Runner::Hadoop => {
            let silence = silence(Variable::Timeout.value().as_deref());
            let started = Heartbeat::start(store.progress().clone(), silence, io::stderr());
            Some(started.map_err(|error| Failed::new(Exit::Io, format!("cannot start a thread: {error}")))?)
        }
    };
    let planned = Planned::read(&store, &arguments.plan.plan)?;
    tasks::work(&planned, BufReader::new(stdin), io::stdout().lock(), &work_options(arguments, s3))?;
    drop(heartbeat);
    Ok(())
}

fn work_options(arguments: &WorkArguments, s3: S3Options) -> WorkOptions {
    let (threads, scratch) = (threads(arguments.threads), std::env::temp_dir());
    WorkOptions { s3, threads, scratch, patience: PATIENCE }
}

fn assemble(arguments: &AssembleArguments) -> Result<()> {
    let AssembleArguments { work, out, files, report } = arguments;
    let (store, s3) = run_of(&work.plan)?;
    let planned = Planned::read(&store, &work.plan.plan)?;
    let existing = Existing::of_force(files.force);
    let options = AssembleOptions {
        out: Output::of(out.clone(), &s3, existing)?,
        padded: files.padded,
        ids: files.parquet,
        existing,
        work: work_options(work, s3),
    };
    let made = merge::assemble(&planned, &options, &bars(report))?;
    print_made(made, planned.plan.seal.ledger.mapper, &options.out, report)
}

/// The runs to merge and the dataset to write, from flags or by default.
fn runs_and_out(arguments: &MergeArguments) -> Result<(Vec<String>, Location)> {
    let (mut used, mut runs) = (Vec::new(), arguments.run.clone());
    if runs.is_empty() && arguments.add.is_empty() {
        if !Path::new(DEFAULT_RUN).is_dir() {
            let expected = "the run to merge; write one by `mapper | LC_ALL=C sort | reducer`, or pass --run";
            let why = format!("{DEFAULT_RUN}: no such folder, expected {expected}");
            return Err(Failed::new(Exit::MissingInput, why));
        }
        used.push(format!("--run {DEFAULT_RUN}"));
        runs.push(DEFAULT_RUN.to_owned());
    }
    let out = arguments.out.clone().unwrap_or_else(|| {
        used.push(format!("--out {DEFAULT_OUT}"));
        PathBuf::from(DEFAULT_OUT).into()
    });
    if !used.is_empty() && !arguments.report.quiet {
        exit::notice("merge", &format!("using the defaults {}", used.join(" ")));
    }
    Ok((runs, out))
}

/// Warns if there are no counts. Only counts reveal a mapper that failed after it had written part of its
/// records.
fn warn_without_counts(mapper: Option<MapperCounts>, manifest: &DatasetManifest) {
    if mapper.is_none() && manifest.seal.ledger.mapper.is_none() {
        // If standard error is closed, the ledger on standard output still shows that counts are missing.
        let _ = writeln!(
            io::stderr(),
            "merge: warning: a mapper that failed would go unnoticed; pass --counts with the files written by mapper --counts, or with the saved output of Hadoop's job client"
        );
    }
}

fn check(file: &Location, s3: &Option<S3Options>, is_json: bool) -> Result<()> {
    let checked = making::check(&DatasetFile::of(file, &s3.clone().unwrap_or_default())?)?;
    if is_json {
        let dataset = file.to_string();
        let (rows, digests) = (checked.dataset.n_rows(), checked.dataset.digests());
        let (manifest, files) = (checked.manifest, checked.files);
        return print(&json(&report::Checked { dataset, rows, manifest, files, digests }));
    }
    let (digests, rows) = (checked.dataset.digests(), checked.dataset.n_rows());
    let bytes = match checked.manifest {
        true => "its SHA-256 matches its manifest",
        false => "it has no manifest, so only its content was checked",
    };
    let files = checked.files.iter().map(|CheckedFile { name, exists }| match exists {
        true => format!("{name}: its SHA-256 matches the manifest\n"),
        false => format!("{name}: listed in the manifest, does not exist\n"),
    });
    print(&format!(
        "{file}: valid, {rows} rows; {bytes}\n{}id digest         {}\nvocabulary digest {}\n",
        files.collect::<String>(),
        digests.id_digest,
        digests.vocabulary_digest
    ))
}

fn describe(file: &Location, s3: &Option<S3Options>, is_json: bool) -> Result<()> {
    let card = making::describe(&DatasetFile::of(file, &s3.clone().unwrap_or_default())?.open()?)?;
    print(&if is_json { json(&card) } else { card.text() })
}

fn collect_garbage(arguments: &GcArguments) -> Result<()> {
    let store = Store::open_with(&arguments.run, &arguments.s3.clone().unwrap_or_default())?;
    let Garbage { orphans, foreign, refusal } = gc::find(&store)?;
    if arguments.json {
        let refused = refusal.as_ref().map(|error| error.message.clone());
        if let (Some(refusal), true) = (refusal, arguments.delete) {
            return Err(refusal);
        }
        let listed = |objects: &[Listed]| objects.iter().map(report::Object::of).collect();
        let (run, deleted) = (store.url(), arguments.delete);
        let document = report::GarbageReport {
            run,
            deleted,
            refused,
            orphans: listed(&orphans),
            strangers: listed(&foreign),
        };
        if arguments.delete {
            orphans.iter().try_for_each(|orphan| store.delete(&orphan.key))?;
        }
        return print(&json(&document));
    }
    for orphan in &orphans {
        print(&format!("{} {} bytes\n", orphan.key, orphan.bytes))?;
    }
    for object in &foreign {
        let why = "its name is not one that a reducer writes, so it is not deleted";
        print(&format!("{} {} bytes: {why}\n", object.key, object.bytes))?;
    }
    match (refusal, arguments.delete) {
        (Some(refusal), true) => Err(refusal),
        (Some(refusal), false) => print(&format!(
            "{} objects that no commit record names (yet): {}\n",
            orphans.len(),
            refusal.message
        )),
        (None, true) => {
            orphans.iter().try_for_each(|orphan| store.delete(&orphan.key))?;
            print(&format!("objects deleted: {}\n", orphans.len()))
        }
        (None, false) => {
            print(&format!("{} objects that no commit record names; --delete removes them\n", orphans.len()))
        }
    }
}

fn print(text: &str) -> Result<()> {
    exit::print(text).map_err(|source| {
        let why = Failure::writing("write the result", &source, "redirect it to another disk");
        Failed::new(Exit::Io, format!("standard output: {why}"))
    })
}
