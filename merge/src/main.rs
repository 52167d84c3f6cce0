//! The program `merge`: arguments in, a dataset and its card out.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use corpus::ledger::Share;
use dataset::dataset_file::DatasetReader;
use dataset::manifest::DatasetManifest;
use making::{DatasetOptions, ProgressBars, VocabularyFrom, ledger_lines};
use merge::gc::Garbage;
use merge::{Error, Options, Outcome, counts, gc};
use program::exit::{self, Exit, chain, usage};
use program::place::local_path;
use store::{S3Options, Store};

/// Makes one dataset of all shards of a run, or looks at one.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    merge: MergeArguments,
}

#[derive(Args)]
struct MergeArguments {
    /// Place of the run: s3://bucket/run1, file:///data/run1 or a plain path
    #[arg(long, value_name = "URL", requires = "out")]
    run: Option<String>,
    /// For S3: endpoint=, region=, profile=, path-style, kms-key=, bucket-owner=, parts=, part-mib=
    #[arg(long, value_name = "LIST", requires = "run")]
    s3: Option<S3Options>,
    /// The dataset to make; its manifest goes beside it
    #[arg(long, value_name = "FILE", requires = "run",
        value_parser = PathBufValueParser::new().try_map(local_path))]
    out: Option<PathBuf>,
    /// Most words of the vocabulary [default: 10000]
    #[arg(long, value_name = "N", conflicts_with = "vocabulary", requires = "run",
        value_parser = clap::value_parser!(u64).range(1..=4_000_000_000))]
    vocabulary_size: Option<u64>,
    /// Take another dataset's vocabulary, as for a test set after its training set
    #[arg(long, value_name = "FILE", requires = "run")]
    vocabulary: Option<PathBuf>,
    /// Leave out the texts that another dataset holds
    #[arg(long, value_name = "FILE", requires = "run")]
    without: Option<PathBuf>,
    /// Also write a copy for other programs, of rows with this many ids and the label
    #[arg(long, value_name = "L", requires = "run", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    padded: Option<u64>,
    /// The mappers' --counts files, or the saved output of Hadoop's job client
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "run")]
    counts: Vec<PathBuf>,
    /// Share of bad lines in all --counts together above which the run is refused [default: 0.05]
    #[arg(long, value_name = "SHARE", requires = "counts")]
    bad_lines_max: Option<Share>,
    /// Read a whole dataset and check all of it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "describe"])]
    check: Option<PathBuf>,
    /// Print the card of a dataset
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    describe: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// List the objects of a run that no commit names; with --delete, remove them
    Gc {
        /// Place of the run
        #[arg(long, value_name = "URL")]
        run: String,
        /// For S3, as of merge
        #[arg(long, value_name = "LIST")]
        s3: Option<S3Options>,
        /// Remove them, if all partitions are committed
        #[arg(long)]
        delete: bool,
    },
}

fn main() -> ExitCode {
    if let Err(error) = program::check_streams() {
        return Exit::Io.end("merge", &error.to_string());
    }
    let arguments = match arguments::parse::<Arguments>(
        option_env!("SENTIMILL_COMMIT"),
        &[("HDF5", &dataset::hdf5_version())],
    ) {
        Ok(arguments) => arguments,
        Err(error) => return usage("merge", &error.render(), error.use_stderr()),
    };
    let result = match (&arguments.command, &arguments.merge) {
        (Some(Command::Gc { run, s3, delete }), _) => collect_garbage(run, s3.as_ref(), *delete),
        (None, MergeArguments { check: Some(file), .. }) => check(file),
        (None, MergeArguments { describe: Some(file), .. }) => describe(file),
        (None, MergeArguments { run: Some(run), out: Some(out), .. }) => merge(run, out, &arguments.merge),
        _ => {
            let why = "nothing to do; give --run with --out, --check, --describe, or gc (see --help)";
            return Exit::Usage.end("merge", why);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.exit().end("merge", &chain(&error)),
    }
}

fn merge(run: &str, out: &Path, arguments: &MergeArguments) -> Result<(), Error> {
    let store = Store::open_with(run, &arguments.s3.clone().unwrap_or_default())?;
    store.probe()?;
    let options = Options {
        dataset: DatasetOptions {
            out: out.to_owned(),
            vocabulary: VocabularyFrom::asked(arguments.vocabulary.clone(), arguments.vocabulary_size),
            without: arguments.without.clone(),
            padded: arguments.padded,
        },
        mapper: counts::sum(&arguments.counts)?,
        bad_lines_max: arguments.bad_lines_max.unwrap_or(Share::OF_BAD_LINES),
        scratch: std::env::temp_dir(),
    };
    match merge::run(&store, &options, &ProgressBars::to_stderr("merge"))? {
        Outcome::Made(manifest, card) => {
            warn_without_counts(&options, &manifest);
            print(&(ledger_lines(&manifest) + &card))
        }
        Outcome::Unchanged(manifest) => {
            warn_without_counts(&options, &manifest);
            let there = format!("{} is there already, whole and of these settings", out.display());
            print(&format!("{there}: nothing to do\n{}", ledger_lines(&manifest)))?;
            describe(out)
        }
    }
}

/// A mapper that failed has written a part of its records, and shards do not tell.
fn warn_without_counts(options: &Options, manifest: &DatasetManifest) {
    if options.mapper.is_none() && manifest.seal.ledger.mapper.is_none() {
        // Where nobody listens, the ledger on standard output says it too.
        let _ = writeln!(
            io::stderr(),
            "merge: warning: a mapper that failed would go unnoticed; give --counts with what mapper --counts wrote, or \
             with the saved output of Hadoop's job client"
        );
    }
}

fn check(file: &Path) -> Result<(), Error> {
    let checked = making::check(file)?;
    let (digests, rows) = (checked.dataset.digests(), checked.dataset.n_rows());
    let bytes = match checked.manifest {
        true => "its bytes are those of its manifest",
        false => "without a manifest beside it, only its content was checked",
    };
    print(&format!(
        "{}: whole, {rows} rows; {bytes}\nid digest         {}\nvocabulary digest {}\n",
        file.display(),
        digests.id_digest,
        digests.vocabulary_digest
    ))
}

fn describe(file: &Path) -> Result<(), Error> {
    print(&making::describe(&DatasetReader::open(file)?)?)
}

fn collect_garbage(run: &str, s3: Option<&S3Options>, delete: bool) -> Result<(), Error> {
    let store = Store::open_with(run, &s3.cloned().unwrap_or_default())?;
    let Garbage { orphans, strangers, refusal } = gc::find(&store)?;
    for orphan in &orphans {
        print(&format!("{} {} bytes\n", orphan.key, orphan.bytes))?;
    }
    for stranger in &strangers {
        let why = "not a reducer's by its name, so it is left alone";
        print(&format!("{} {} bytes: {why}\n", stranger.key, stranger.bytes))?;
    }
    match (refusal, delete) {
        (Some(refusal), true) => Err(refusal),
        (Some(refusal), false) => {
            print(&format!("{} objects that no commit names (yet): {}\n", orphans.len(), chain(&refusal)))
        }
        (None, true) => {
            orphans.iter().try_for_each(|orphan| store.delete(&orphan.key))?;
            print(&format!("objects removed: {}\n", orphans.len()))
        }
        (None, false) => {
            print(&format!("{} objects that no commit names; --delete removes them\n", orphans.len()))
        }
    }
}

fn print(text: &str) -> Result<(), Error> {
    exit::print(text).map_err(Error::Output)
}
