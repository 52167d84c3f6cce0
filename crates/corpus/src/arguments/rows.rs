//! Flags for the content of a row, shared by all programs that write rows.

use std::fmt;

use crate::clean::Rules;
use crate::labels::{Classes, Labels};
use crate::sample::Sample;
use crate::settings::{Difference, Keep, Settings};
use crate::stop_words;
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use program::exit::{Exit, Failed};
use program::location::{Location, S3Url};
use program::system::Failure;

/// The settings of rows.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Rows")]
pub struct RowArguments {
    /// Preset: modern or original [default: modern]
    ///
    /// original is shorthand for --stopwords nltk --max-tokens 100 --keep first, the settings of the original system.
    /// Other flags override the preset.
    #[arg(long, value_name = "NAME", value_parser = ["modern", "original"], hide_possible_values = true)]
    profile: Option<String>,
    /// Keep numbers, punctuation and symbols as words
    ///
    /// Each character of punctuation and each symbol is a word by itself. `mapper` has the same flag, and both must have
    /// it.
    #[arg(long)]
    punctuation: bool,
    /// Stop words: nltk, nltk-negations, none or FILE
    ///
    /// Stop words are removed from every text. nltk-negations is nltk without negations such as "not". A file, a path or
    /// s3://bucket/name, has one word per line. [default: none]
    #[arg(long, value_name = "LIST", value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    stopwords: Option<Location>,
    /// Maximum tokens per row, 0 for all [default: 400]
    ///
    /// A longer row is cut to the part that --keep names.
    #[arg(long, value_name = "N")]
    max_tokens: Option<u32>,
    /// Kept part: first, last or ends [default: ends]
    ///
    /// Which tokens of a longer row are kept. first: the first --max-tokens. last: the last --max-tokens. ends: half of
    /// --max-tokens from each end.
    #[arg(long, value_name = "PART")]
    keep: Option<Keep>,
    /// Lowest rating with label 1 [default: 4]
    ///
    /// Rows with a lower rating have label 0.
    #[arg(long, value_name = "STARS", value_parser = clap::value_parser!(u8).range(1..=5))]
    positive_from: Option<u8>,
    /// Classes of ratings, in place of two labels
    ///
    /// Pairs of ratings and a name, such as 1-2=negative,3=neutral,4-5=positive: the labels are 0, 1 and 2 in this
    /// order. 2 to 5 classes. A text whose most frequent rating has no class is dropped and counted as not_labelled.
    #[arg(long, value_name = "CLASSES", conflicts_with = "positive_from")]
    labels: Option<Classes>,
    /// Share of the distinct texts to use [default: 1]
    ///
    /// A number above 0 and up to 1. The hash of a text decides, so every run takes the same texts, and 0.25 takes a part
    /// of those that 0.5 takes. The other texts are dropped and counted as not_sampled; their words are not counted.
    #[arg(long, value_name = "SHARE")]
    sample: Option<Sample>,
}

/// Maximum size of a list of stop words in S3.
pub const STOP_WORDS_BYTES_MAX: u64 = 16 << 20;

/// Reads a list of stop words from S3, for programs that have a client. Returns the content.
pub type ReadFromS3<'a> = &'a dyn Fn(&S3Url) -> Result<Vec<u8>, Failed>;

impl RowArguments {
    /// Returns the settings.
    pub fn settings(&self, read: ReadFromS3<'_>) -> Result<Settings, Failed> {
        self.over(Settings::default(), read)
    }

    /// Returns the settings of the dataset whose vocabulary is reused. A flag that contradicts them is an
    /// error. The sample is not reused: a test set has all its texts, unless its own flag sets a sample.
    pub fn settings_after(
        &self,
        dataset: &Location,
        theirs: &Settings,
        read: ReadFromS3<'_>,
    ) -> Result<Settings, Failed> {
        let Settings { unicode_version, .. } = Settings::default();
        let cleaning_version = theirs.rules().unwrap_or_default().version();
        let sample = self.sample.unwrap_or_default();
        let taken = Settings { cleaning_version, unicode_version, sample, ..theirs.clone() };
        match self.over(taken.clone(), read)?.difference(&taken) {
            None => Ok(taken),
            Some(Difference { setting, ours, theirs }) => Err(Failed::new(
                Exit::Settings,
                format!(
                    "--vocabulary {dataset}: its {setting} is {theirs}, the flags set {ours}; remove the flags that differ: the settings of the dataset are used"
                ),
            )),
        }
    }

    /// Returns `settings` with the values of the flags that were passed.
    fn over(&self, settings: Settings, read: ReadFromS3<'_>) -> Result<Settings, Failed> {
        let profile = match self.profile.as_deref() {
            None => settings.clone(),
            Some("original") => Settings::original(),
            Some(_) => Settings::default(),
        };
        let rules = match self.punctuation {
            true => Rules::Punctuation,
            false => settings.rules().unwrap_or_default(),
        };
        Ok(Settings {
            cleaning_version: rules.version(),
            stop_words: match &self.stopwords {
                None => profile.stop_words,
                Some(list) => stop_words_of(list, rules, read)?,
            },
            max_tokens: self.max_tokens.unwrap_or(profile.max_tokens),
            keep: self.keep.unwrap_or(profile.keep),
            labels: match (&self.labels, self.positive_from) {
                (Some(classes), _) => Labels::Classes(classes.clone()),
                (None, Some(positive_from)) => Labels::PositiveFrom(positive_from),
                (None, None) => settings.labels.clone(),
            },
            sample: self.sample.unwrap_or(settings.sample),
            ..settings
        })
    }
}

fn stop_words_of(list: &Location, rules: Rules, read: ReadFromS3<'_>) -> Result<Vec<String>, Failed> {
    match list {
        Location::Local(name) => match name.to_str() {
            Some("nltk") => return Ok(stop_words::nltk()),
            Some("nltk-negations") => return Ok(stop_words::nltk_negations()),
            Some("none") => return Ok(Vec::new()),
            _ => {}
        },
        Location::S3(_) => {}
    }
    let refused = |exit, found: &dyn fmt::Display| Failed::new(exit, format!("--stopwords {list}: {found}"));
    let bytes = match list {
        Location::Local(path) => program::bounded::read(path, STOP_WORDS_BYTES_MAX).map_err(|error| {
            let expected = "expected nltk, nltk-negations, none, or a file of one word per line";
            let failure = Failure::reading("read the file", &error);
            refused(Exit::MissingInput, &format!("{failure}; {expected}"))
        })?,
        Location::S3(url) => read(url)?,
    };
    let lines = String::from_utf8(bytes)
        .map_err(|_| refused(Exit::MissingInput, &"is not UTF-8; convert it with iconv -t UTF-8"))?;
    stop_words::listed(&lines, rules).map_err(|error| refused(Exit::Settings, &error))
}
