//! The arguments of the program `mapper`.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Arg, Parser};
use corpus::arguments::{FormatArguments, parse_line_bytes};
use corpus::format::FormatName;
use corpus::ledger::Share;
use corpus::lines::LINE_BYTES_MAX;
use program::place::local_path;

const _: () = assert!(LINE_BYTES_MAX == 4 << 20, "the default below");

const EXAMPLES: &str = "\
Examples:
  mapper reviews.json.gz | LC_ALL=C sort | reducer
      Write the records of a file to a run of one partition

  mapper --rejects reviews.json.gz >bad-lines.jsonl
      Write the bad lines of a file with the reason for each";

/// Convert raw review lines to records: cleaned text, tab, votes
///
/// Reads files or standard input and writes one record per review to standard output. gzip, bzip2 and zstd are
/// decompressed. Sort the records by `LC_ALL=C sort`, then pass them to `reducer`.
#[derive(Parser, Clone, Debug)]
#[command(version, after_long_help = EXAMPLES)]
#[command(mut_arg("format", |format| format.help("json, polarity-csv or fasttext").value_parser(format_name)))]
// They are for tables, which are refused. They are parsed, too, because the message about tables names `sentimill`.
#[command(mut_arg("delimiter", |delimiter| delimiter.hide(true)), mut_arg("quote", |quote| quote.hide(true)))]
#[command(mut_arg("format", of_lines))]
pub struct Arguments {
    /// Files to read [default: standard input]
    ///
    /// Files are read in the order of the arguments. - is standard input.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The same as FILE
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "files", help_heading = "Input")]
    pub input: Vec<PathBuf>,
    /// Maximum length of a line
    ///
    /// A size such as 512KiB or 10MB. A longer line is skipped and counted as a bad line.
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = parse_line_bytes, help_heading = "Input")]
    pub line_bytes_max: u64,
    /// Maximum share of bad lines [default: 0.05]
    ///
    /// A number from 0 to 1. With a greater share the exit code is 65. The default is 1 with --rejects.
    #[arg(long, value_name = "SHARE", help_heading = "Input")]
    pub bad_lines_max: Option<Share>,
    /// Maximum share of lines that are not UTF-8 [default: 0.05]
    ///
    /// A number from 0 to 1. With a greater share the exit code is 65. The default is 1 with --rejects.
    #[arg(long, value_name = "SHARE", help_heading = "Input", hide_short_help = true)]
    pub invalid_utf8_max: Option<Share>,
    /// The format of the lines.
    #[command(flatten)]
    pub format: FormatArguments,
    /// Keep numbers, punctuation and symbols as words
    ///
    /// Each character of punctuation and each symbol is a word by itself. `reducer` has the same flag, and both must have
    /// it.
    #[arg(long, help_heading = "Rows")]
    pub punctuation: bool,
    /// Write the bad lines instead of records
    ///
    /// One JSON object per bad line, with its reason and its position.
    #[arg(long, help_heading = "Output")]
    pub rejects: bool,
    /// Write the counts of lines to a file
    ///
    /// The file is JSON, for `merge --counts`.
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(local_path),
        help_heading = "Output")]
    pub counts: Option<PathBuf>,
}

/// A format. Tables are parsed too, because their own message names `sentimill`.
fn format_name(name: &str) -> Result<FormatName, &'static str> {
    name.parse().map_err(|_| "expected json, polarity-csv or fasttext")
}

/// The help of a format, which is one of lines here, and by default not that of an extension.
fn of_lines(format: Arg) -> Arg {
    let long = "\
        json, polarity-csv or fasttext\n\n\
        json reads one object per line, also the Python literals of older Amazon dumps. polarity-csv reads CSV with \
        the class in the first column and the text in the last. fasttext reads `__label__CLASS text`. sentimill also reads \
        tables.";
    format.help("json, polarity-csv or fasttext").long_help(long).default_value("json")
}
