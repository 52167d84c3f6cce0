//! The arguments of the program `merge`.

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use corpus::arguments::{DatasetArguments, FilesArguments, ReportArguments, VocabularyArguments};
use corpus::ledger::Share;
use program::location::Location;
use store::S3Options;

const EXAMPLES: &str = "\
Examples:
  merge
      Merge the run in the folder run into reviews.h5

  merge --run s3://bucket/may --run s3://bucket/june --counts may.log june.log
      Merge the runs of two Hadoop jobs, and verify that no line was lost";

const GC_EXAMPLES: &str = "\
Examples:
  merge gc --run run
      List the objects in the folder run that no commit record names

  merge gc --run s3://bucket/run1 --delete
      Delete the objects of attempts that were not committed";

const PLAN_EXAMPLES: &str = "\
Examples:
  merge plan --run run --tasks 4
      Divide the merge of the folder run into tasks of 4

  merge plan --run s3://bucket/run1 --tasks 32 --counts job-output.txt
      Divide the merge of a Hadoop job, and verify that no line was lost";

const WORK_EXAMPLES: &str = "\
Examples:
  merge work --run run < run/merge/merge/tasks.txt
      Run all tasks in one program

  split -n r/4 run/merge/merge/tasks.txt --filter 'merge work --run run'
      Run the tasks in 4 programs at once";

const ASSEMBLE_EXAMPLES: &str = "\
Examples:
  merge assemble --run run --out reviews.h5
      Make the dataset when all tasks have been run

  merge assemble --run s3://bucket/run1 --out s3://bucket/data/reviews.h5
      Make the dataset in S3";

/// Merge the shards of a run into one dataset, or check an existing one
///
/// Verifies every shard of a run, builds the vocabulary, and writes one HDF5 dataset with its manifest. The same
/// shards and settings give the same bytes. Prints the ledger and the data card of the dataset.
#[derive(Parser, Clone, Debug)]
#[command(version, args_conflicts_with_subcommands = true, disable_help_subcommand = true, after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The subcommand, if any.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What to merge without a subcommand.
    #[command(flatten)]
    pub merge: MergeArguments,
}

/// Counts of the mappers and their limits.
#[derive(Args, Clone, Debug)]
pub struct CountsArguments {
    /// Counts written by mapper --counts
    ///
    /// A path or s3://bucket/name. A file can also be the saved output of Hadoop's job client. With the counts, merge
    /// verifies that no line was lost.
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Input",
        value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub counts: Vec<Location>,
    /// Maximum share of bad lines [default: 0.05]
    ///
    /// A number from 0 to 1, for all --counts together. A run with a greater share is not merged.
    #[arg(long, value_name = "SHARE", requires = "counts", help_heading = "Input")]
    pub bad_lines_max: Option<Share>,
    /// Maximum share of lines that are not UTF-8 [default: 0.05]
    ///
    /// A number from 0 to 1, for all --counts together. A run with a greater share is not merged.
    #[arg(long, value_name = "SHARE", requires = "counts", help_heading = "Input", hide_short_help = true)]
    pub invalid_utf8_max: Option<Share>,
}

/// What to merge, check or describe.
#[derive(Args, Clone, Debug)]
pub struct MergeArguments {
    /// Folder of the run; several times for several [default: run, without --add]
    ///
    /// A path, file:///path or s3://bucket/prefix: the --run of the reducers. A text in several runs is one row with the sum
    /// of its votes, if their reducers had --keep-words.
    #[arg(long, value_name = "URL", help_heading = "Input")]
    pub run: Vec<String>,
    /// Dataset whose texts are merged with those of runs
    ///
    /// A path or s3://bucket/name, made with --keep-words. Its runs are not read.
    #[arg(long, value_name = "FILE", help_heading = "Input",
        value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub add: Vec<Location>,
    /// Counts of the mappers and their limits.
    #[command(flatten)]
    pub counts: CountsArguments,
    /// Dataset to write [default: reviews.h5]
    ///
    /// A path or s3://bucket/name. The manifest is written beside it as NAME.manifest.json.
    #[arg(short, long, value_name = "FILE", help_heading = "Output",
        value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub out: Option<Location>,
    /// The vocabulary and the files of the dataset.
    #[command(flatten)]
    pub dataset: DatasetArguments,
    /// Keep what merging with other runs needs
    ///
    /// Writes the words of all texts beside the dataset, to the folder NAME.words, which --add reads. The reducers must have
    /// had this flag, too.
    #[arg(long, help_heading = "Output")]
    pub keep_words: bool,
    /// How the result is reported.
    #[command(flatten)]
    pub report: ReportArguments,
    /// Options for S3.
    #[arg(long, value_name = "LIST", help_heading = "Storage", help = store::S3_HELP, long_help = store::S3_LONG_HELP)]
    pub s3: Option<S3Options>,
    /// Number of threads [default: one per core, at most 8]
    ///
    /// The dataset does not depend on it. Each thread takes up to 50 MiB.
    #[arg(short = 'j', long, value_name = "N", help_heading = "Resources",
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Check all bytes of a dataset
    ///
    /// A path or s3://bucket/name. Checks digests, rows and, if the manifest is beside the dataset, the SHA-256.
    #[arg(long, value_name = "FILE", help_heading = "Existing datasets",
        value_parser = PathBufValueParser::new().try_map(Location::of_file),
        conflicts_with_all = ["describe", "run", "add", "keep_words", "counts", "out", "vocabulary_size", "vocabulary", "without", "padded", "parquet", "force", "threads"])]
    pub check: Option<Location>,
    /// Print the data card of a dataset
    ///
    /// A path or s3://bucket/name. The card lists rows, labels, ratings, lengths, vocabulary and digests.
    #[arg(long, value_name = "FILE", help_heading = "Existing datasets",
        value_parser = PathBufValueParser::new().try_map(Location::of_file),
        conflicts_with_all = ["run", "add", "keep_words", "counts", "out", "vocabulary_size", "vocabulary", "without", "padded", "parquet", "force", "threads"])]
    pub describe: Option<Location>,
}

/// The subcommands.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Divide a merge into tasks for several programs or machines
    ///
    /// Writes a plan and a list of tasks into the run, as merge/NAME/tasks.txt, and prints the URL of the list. Run
    /// `merge work` with its lines, divided in any way, then `merge assemble`. The dataset is the same file that merge makes.
    #[command(after_long_help = PLAN_EXAMPLES)]
    Plan(PlanArguments),
    /// Run the tasks of standard input, and store their results in the run
    ///
    /// Each line is one of a plan's list. A task may be repeated, or run twice at the same time: its result has the same
    /// bytes and is stored once. A task of rows waits for all tasks of other kinds, and runs them itself if no result is added
    /// for some time, 30 s or more. Prints a line for each task.
    #[command(after_long_help = WORK_EXAMPLES)]
    Work(WorkArguments),
    /// Make the dataset from the results of all tasks of a plan
    ///
    /// Prints the ledger and the data card of the dataset.
    #[command(after_long_help = ASSEMBLE_EXAMPLES)]
    Assemble(AssembleArguments),
    /// List or delete the objects of a run that no commit record names
    ///
    /// Attempts that were not elected leave their objects in the run, and a merge by tasks its plan and its results. They
    /// occupy space and are never read. Objects are deleted only with --delete, and only if all partitions are committed;
    /// plans and results only if the run was merged. Delete none while tasks of a plan run.
    #[command(after_long_help = GC_EXAMPLES)]
    Gc(GcArguments),
}

/// A plan of a run.
#[derive(Args, Clone, Debug)]
pub struct PlanName {
    /// Folder of the run
    ///
    /// A path, file:///path or s3://bucket/prefix: the --run of the reducers.
    #[arg(long, value_name = "URL")]
    pub run: String,
    /// Name of the plan in the run
    ///
    /// Letters, digits, ., _ and -. A run can have several plans.
    #[arg(long, value_name = "NAME", default_value = "merge")]
    pub plan: String,
    /// Options for S3.
    #[arg(long, value_name = "LIST", help = store::S3_HELP, long_help = store::S3_LONG_HELP)]
    pub s3: Option<S3Options>,
}

/// The run to merge, and what its dataset depends on.
#[derive(Args, Clone, Debug)]
pub struct PlanArguments {
    /// The plan.
    #[command(flatten)]
    pub plan: PlanName,
    /// Number of tasks of each kind
    ///
    /// About the number of tasks that the machines run at the same time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub tasks: u32,
    /// Counts of the mappers and their limits.
    #[command(flatten)]
    pub counts: CountsArguments,
    /// The vocabulary.
    #[command(flatten)]
    pub vocabulary: VocabularyArguments,
    /// Print the plan as JSON
    ///
    /// One JSON document on standard output.
    #[arg(long)]
    pub json: bool,
}

/// The plan whose tasks are run.
#[derive(Args, Clone, Debug)]
pub struct WorkArguments {
    /// The plan.
    #[command(flatten)]
    pub plan: PlanName,
    /// Number of threads [default: one per core, at most 8]
    ///
    /// The results do not depend on it. Each thread takes up to 50 MiB.
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

/// The plan to assemble, and the dataset to write.
#[derive(Args, Clone, Debug)]
pub struct AssembleArguments {
    /// The plan and the threads.
    #[command(flatten)]
    pub work: WorkArguments,
    /// Dataset to write
    ///
    /// A path or s3://bucket/name. The manifest is written beside it as NAME.manifest.json.
    #[arg(short, long, value_name = "FILE", help_heading = "Output",
        value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub out: Location,
    /// The files of the dataset.
    #[command(flatten)]
    pub files: FilesArguments,
    /// How the result is reported.
    #[command(flatten)]
    pub report: ReportArguments,
}

/// The run to clean.
#[derive(Args, Clone, Debug)]
pub struct GcArguments {
    /// Folder of the run
    ///
    /// A path, file:///path or s3://bucket/prefix.
    #[arg(long, value_name = "URL")]
    pub run: String,
    /// Delete the objects
    ///
    /// Refused unless all partitions are committed.
    #[arg(long)]
    pub delete: bool,
    /// Print the list as JSON
    ///
    /// One JSON document on standard output.
    #[arg(long)]
    pub json: bool,
    /// Options for S3.
    #[arg(long, value_name = "LIST", help = store::S3_HELP, long_help = store::S3_LONG_HELP)]
    pub s3: Option<S3Options>,
}
