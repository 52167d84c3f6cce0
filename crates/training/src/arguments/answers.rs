//! Flags of the commands that answer line by line. A program adds its own.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory};
use corpus::arguments::FormatArguments;
use corpus::shell::word;
use program::exit::{Exit, Failed};
use program::location::Location;
use program::place::local_path;
use reading::Source;
use store::S3Options;

use super::numbers::at_least;
use super::{LineArguments, Rated, Storage};
use crate::answers::file::{AddedColumns, AnswerFile};
use crate::error::Result;
use crate::lines::sources;
use crate::wrong::WrongFile;

/// Flags of predictions.
#[derive(Clone, Debug, Args)]
pub struct Predict {
    /// Model folder, or the training folder that contains it
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub model: Location,
    /// Files of texts [default: standard input, also -]
    ///
    /// CSV, TSV, JSON, Parquet, Arrow and other files that sentimill reads, plain or compressed; folders and patterns.
    /// s3://bucket/name: the object with this name, or all objects below it.
    #[arg(value_name = "FILE", value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub files: Vec<Location>,
    /// Write the probabilities of a dataset's rows to a new file
    ///
    /// FILE is then one dataset with the vocabulary of the model. The file is a NumPy array of 32-bit floats with one row per
    /// row of the dataset and one column per class, followed by a line with the id digest of the dataset. `trainer fit
    /// --soft-labels` learns from it.
    #[arg(
        long,
        value_name = "F.npy",
        conflicts_with_all = ["format", "preset", "text_field", "with_title", "delimiter", "quote", "encoding", "line_bytes_max"],
        value_parser = PathBufValueParser::new().try_map(local_path)
    )]
    pub soft: Option<PathBuf>,
    /// New file of the input's columns and the answers
    ///
    /// The extension selects CSV, TSV, JSON lines or Parquet: .csv, .tsv, .jsonl or .parquet. Behind the columns of the input,
    /// each row has `label`, `class`, `probability` and `error`, of several files also `file`; the name of one that the input
    /// has, too, begins with `predicted_`. Of Parquet and Arrow files, columns of texts, numbers and booleans are kept.
    #[arg(long, short, value_name = "FILE", conflicts_with = "soft", value_parser = PathBufValueParser::new().try_map(local_path))]
    pub out: Option<PathBuf>,
    /// Add the probability of each class to --out
    #[arg(long, requires = "out")]
    pub probabilities: bool,
    /// Format of lines.
    #[command(flatten)]
    pub lines: LineArguments,
    /// Print errors only
    ///
    /// The predictions are printed; warnings and progress are not.
    #[arg(long, short)]
    pub quiet: bool,
}

impl Predict {
    /// The file of answers of a model with these classes.
    pub fn file(&self, classes: Vec<String>, has_rating: bool) -> Result<Option<AnswerFile>> {
        let has_probabilities = self.probabilities;
        let added = AddedColumns { classes, has_rating, has_probabilities };
        self.out.as_ref().map(|out| AnswerFile::new(out, "--out", added, None)).transpose()
    }

    /// Refuses an `--out` that cannot be made, before a model is fetched.
    pub fn check_out(&self) -> Result<()> {
        self.out.as_deref().map_or(Ok(()), |out| AnswerFile::check(out, "--out"))
    }

    /// Refuses `--soft` for anything but one dataset, in the program `A`.
    pub fn check<A: CommandFactory>(&self) -> Result<(), clap::Error> {
        let n_files = self.files.len();
        if self.soft.is_none() || n_files == 1 {
            return Ok(());
        }
        let mut program = A::command();
        let name = program.get_name();
        let message = format!(
            "--soft requires one dataset, found {n_files} files; run `{name} predict MODEL DATASET --soft F.npy`"
        );
        Err(program.error(ErrorKind::WrongNumberOfValues, message))
    }
}

/// Flags of an evaluation of files of texts.
#[derive(Clone, Debug, Args)]
pub struct LabelledTexts {
    /// New file of the wrong predictions
    ///
    /// The extension selects CSV, TSV, JSON lines or Parquet: .csv, .tsv, .jsonl or .parquet. Each text that is predicted wrongly
    /// is a row: the columns of the input, then `true_label`, `predicted_label` and `probability`, that of the predicted label; of
    /// several files also `file`. The most confident predictions are first. A file is read twice for it, so that standard input
    /// and pipes are refused, and so are datasets, which do not have the texts.
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(local_path))]
    pub wrong: Option<PathBuf>,
    /// The format of lines.
    #[command(flatten)]
    pub format: FormatArguments,
    /// Labels of ratings.
    #[command(flatten)]
    pub rated: Rated,
}

impl LabelledTexts {
    /// The file of the wrong predictions for these files, if one is wanted.
    pub fn wrong_file(&self, files: &[Location], s3: &S3Options) -> Result<Option<WrongFile>> {
        self.wrong.as_deref().map(|out| WrongFile::new(out, files, s3)).transpose()
    }
}

/// Flags of explanations.
#[derive(Clone, Debug, Args)]
pub struct Explain {
    /// Model folder, or the training folder that contains it
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub model: Location,
    /// Text to explain [default: texts of standard input]
    ///
    /// Pass a file of texts with --input.
    #[arg(value_name = "TEXT", conflicts_with_all = ["input", "format", "preset", "text_field", "with_title", "delimiter", "quote", "encoding"])]
    pub text: Option<String>,
    /// File of texts, also more than once
    ///
    /// CSV, TSV, JSON, Parquet, Arrow and other files that sentimill reads, plain or compressed; folders and patterns.
    /// s3://bucket/name: the object with this name, or all objects below it. -: standard input.
    #[arg(
        long,
        value_name = "FILE",
        value_parser = PathBufValueParser::new().try_map(Location::of_folder),
        help_heading = "Input"
    )]
    pub input: Vec<Location>,
    /// Format of lines.
    #[command(flatten)]
    pub lines: LineArguments,
    /// Maximum number of words for the label, and against it
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least::<usize>(1))]
    pub top: usize,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Storage.
    #[command(flatten)]
    pub storage: Storage,
    /// Print errors only
    ///
    /// The explanations are printed; warnings and progress are not.
    #[arg(long, short)]
    pub quiet: bool,
}

impl Explain {
    /// The sources of the texts; none for TEXT. A file in its place is refused.
    pub fn sources(&self) -> Result<Vec<Source>> {
        match &self.text {
            Some(text) if Path::new(text).is_file() => {
                let found = "found a file, expected a text";
                let remedy = format!(
                    "pass the texts of a file with --input {}, or the text on standard input",
                    word(text)
                );
                Err(Failed::new(Exit::Usage, format!("{text}: {found}; {remedy}")).into())
            }
            Some(_) => Ok(Vec::new()),
            None => sources(&self.input, &self.model, &self.storage.options()),
        }
    }
}
