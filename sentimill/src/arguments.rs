//! The arguments of the program `sentimill`.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser, UnknownArgumentValueParser};
use clap::{Arg, Args, Parser, Subcommand};
use corpus::arguments::{DatasetArguments, FormatArguments, ReportArguments, RowArguments};
use corpus::ledger::Share;
use making::TextsName;
use program::location::Location;
use program::place::local_path;
use program::size::parse_memory;
use store::S3Options;

const EXAMPLES: &str = "\
Examples:
  sentimill reviews.json.gz
      Write the dataset reviews.h5 and print its data card

  sentimill test/ --out test.h5 --vocabulary reviews.h5 --without reviews.h5
      Write a test set with the vocabulary of its training set and none of its texts";

/// Convert raw reviews to one dataset, on one machine
///
/// Writes the same bytes as mapper, sort, reducer and merge do together. Compressed input (gzip, bzip2, zstd) and
/// Parquet files are read directly. Prints the ledger and the data card of the dataset.
#[derive(Parser, Clone, Debug)]
#[command(version, after_long_help = EXAMPLES, args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[command(arg = label_field(), mut_arg("sample", |sample| sample.hide_short_help(true)))]
pub struct Arguments {
    /// Another command than making a dataset.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Files, folders, patterns, s3:// or https:// URLs, or -
    ///
    /// Quote a pattern, for example 'reviews-*.gz'. - is standard input. A file at https:// is compared with its SHA-256
    /// if the URL ends in #sha256=DIGEST.
    #[arg(value_name = "PLACE", required_unless_present = "input")]
    pub places: Vec<String>,
    /// The same as PLACE
    #[arg(long, value_name = "PLACE", num_args = 1.., conflicts_with = "places", hide_short_help = true,
        help_heading = "Input")]
    pub input: Vec<String>,
    /// Maximum share of bad lines
    ///
    /// A number from 0 to 1. With a greater share no dataset is written, and the exit code is 65.
    #[arg(long, value_name = "SHARE", default_value_t = Share::OF_BAD_LINES, help_heading = "Input",
        hide_short_help = true)]
    pub bad_lines_max: Share,
    /// Maximum share of lines that are not UTF-8
    ///
    /// A number from 0 to 1. With a greater share no dataset is written, and the exit code is 65. The message names the
    /// likely encoding.
    #[arg(long, value_name = "SHARE", default_value_t = Share::OF_INVALID_UTF8, help_heading = "Input",
        hide_short_help = true)]
    pub invalid_utf8_max: Share,
    /// The format of the lines.
    #[command(flatten)]
    pub format: FormatArguments,
    /// The settings of rows.
    #[command(flatten)]
    pub rows: RowArguments,
    /// Dataset to write [default: PLACE's name + .h5]
    ///
    /// A path or s3://bucket/name. For one file the default is its name with the extension .h5, in the current folder;
    /// otherwise it is reviews.h5. The manifest is written next to the dataset; that of reviews.h5 is
    /// reviews.manifest.json.
    #[arg(short, long, value_name = "FILE", help_heading = "Output",
        value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub out: Option<Location>,
    /// Also write the bad lines to a file
    ///
    /// One JSON object per bad line, in the order of the input, as from `mapper --rejects`: its reason, its position and
    /// its content. The file is also written if there are too many bad lines for a dataset. It must not exist.
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(local_path),
        help_heading = "Output")]
    pub rejects: Option<PathBuf>,
    /// Also write the file and line of each review
    ///
    /// A Parquet file with the columns hash, file and line, ordered by hash. The hash is that of the row in the dataset.
    /// `trainer report --origins` reads it. It must not exist.
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(local_path),
        help_heading = "Output", hide_short_help = true)]
    pub origins: Option<PathBuf>,
    /// The vocabulary and the files of the dataset.
    #[command(flatten)]
    pub dataset: DatasetArguments,
    /// Also write the cleaned texts as Parquet
    ///
    /// FILE is a name such as reviews.parquet; the file is written into the folder of --out. It contains the whole
    /// cleaned text, label, rating, votes, hash and split of each row. NAME.croissant.json describes it.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub texts: Option<TextsName>,
    /// How the result is reported.
    #[command(flatten)]
    pub report: ReportArguments,
    /// Options for S3.
    #[arg(long, value_name = "LIST", help_heading = "Resources", help = store::S3_HELP, long_help = store::S3_LONG_HELP)]
    pub s3: Option<S3Options>,
    /// Maximum memory
    ///
    /// A size such as 512MiB or 2GB. Data that does not fit is written to files in TMPDIR.
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = parse_memory, help_heading = "Resources")]
    pub memory: usize,
    /// Number of threads [default: one per core]
    ///
    /// With little --memory the default is lower.
    #[arg(short = 'j', long, value_name = "N", help_heading = "Resources",
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

/// A flag of `ngrams train`, which is refused with the one of this program.
fn label_field() -> Arg {
    let tip = "labels in place of stars are read by --rating-field NAME with --class-ratings good=5,bad=1, or by \
               `ngrams train --label-field NAME`";
    Arg::new("label_field")
        .long("label-field")
        .value_name("NAME")
        .hide(true)
        .value_parser(UnknownArgumentValueParser::suggest(tip))
}

/// Commands besides making a dataset. A file of such a name is passed as `./fetch`.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Download a public corpus of reviews, or list them
    ///
    /// Without NAME, each corpus is listed with its URL, size, licence and format, and with the commands that read it.
    /// The file is compared with its published SHA-256, otherwise with that of its first download. A download that was
    /// interrupted is resumed.
    #[command(after_long_help = FETCH_EXAMPLES)]
    Fetch(Fetch),
}

/// Flags of a download.
#[derive(Args, Clone, Debug)]
pub struct Fetch {
    /// Corpus, or CORPUS/CATEGORY [default: list all]
    pub name: Option<String>,
    /// Folder to write into
    #[arg(short, long, value_name = "FOLDER", default_value = ".", value_parser = PathBufValueParser::new().try_map(local_path))]
    pub out: PathBuf,
    /// URL of a mirror, a folder that has the file
    ///
    /// Its file has the name of the original one, and is compared with the same SHA-256.
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
    /// Print no progress, only errors and the commands
    #[arg(short, long)]
    pub quiet: bool,
}

const FETCH_EXAMPLES: &str = "\
Examples:
  sentimill fetch imdb
      Download 100,000 film reviews, and print the commands that read them

  sentimill fetch amazon2023/Musical_Instruments --out corpora
      Download one category of Amazon into the folder corpora";
