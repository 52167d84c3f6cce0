//! Flags for the format of lines, shared by all programs that read lines.

use crate::encoding::{Encoding, UTF_8, parse_encoding};
use crate::format::{FieldPath, Format, FormatName, FormatOptions};
use crate::record::RECORD_BYTES_MAX;
use clap::Args;
use program::exit::{Exit, Failed};
use program::size::parse_size_within;

/// The format of the lines.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Format")]
pub struct FormatArguments {
    /// How lines are written, and their fields.
    #[command(flatten)]
    options: FormatOptions,
    /// Encoding of the input [default: UTF-8]
    ///
    /// A name or label of the WHATWG encoding standard, such as windows-1252, GBK or UTF-16LE, for input that is not UTF-8
    /// and has no byte-order mark. Parquet and Arrow files are UTF-8; with --encoding they are refused.
    #[arg(long, value_name = "NAME", value_parser = parse_encoding, hide_short_help = true)]
    encoding: Option<&'static Encoding>,
}

impl FormatArguments {
    /// Whether lines have fastText's format.
    pub fn is_fasttext(&self) -> bool {
        self.name() == FormatName::FastText
    }

    /// The name of the format.
    pub fn name(&self) -> FormatName {
        self.options.name()
    }

    /// The name of the format, if a flag names it.
    pub fn asked(&self) -> Option<FormatName> {
        self.options.name
    }

    /// Whether a flag is one for formats with fields.
    pub fn names_fields(&self) -> bool {
        let FormatOptions { preset, text_field, rating_field, rating_scale, unrated, .. } = &self.options;
        preset.is_some()
            || text_field.is_some()
            || rating_field.is_some()
            || rating_scale.is_some()
            || unrated.is_some()
    }

    /// Whether a field may have labels: the format has fields, and no flag is one for ratings. Labels may be unrated.
    pub fn may_have_labels(&self) -> bool {
        let FormatOptions { rating_field, class_ratings, rating_scale, preset, .. } = &self.options;
        self.name().has_fields()
            && rating_field.is_none()
            && class_ratings.is_none()
            && rating_scale.is_none()
            && preset.is_none()
    }

    /// The encoding of the input.
    pub fn encoding(&self) -> &'static Encoding {
        self.encoding.unwrap_or(UTF_8)
    }

    /// The name of the encoding, if it is not UTF-8.
    pub fn encoding_name(&self) -> Option<&'static str> {
        (self.encoding() != UTF_8).then(|| self.encoding().name())
    }

    /// The same flags with this format, and with this encoding unless one was passed.
    #[must_use]
    pub fn read_as(mut self, name: FormatName, encoding: Option<&'static Encoding>) -> Self {
        self.options.name = Some(name);
        self.encoding = self.encoding.or(encoding);
        self
    }

    /// The same flags, with the format that is found if no flag names one.
    pub fn or_format<E>(mut self, find: impl FnOnce() -> Result<Option<FormatName>, E>) -> Result<Self, E> {
        if self.options.name.is_none() {
            self.options.name = find()?;
        }
        Ok(self)
    }

    /// The same flags, with the settings of a training where no flag was passed.
    #[must_use]
    pub fn or_of_training<'a>(self, setting: impl Fn(&str) -> Option<&'a str>) -> Self {
        Self { options: self.options.or_of_training(setting), ..self }
    }

    /// Returns the format.
    pub fn format(self) -> Result<Format, Failed> {
        self.with_label(None)
    }

    /// As [`Self::format`], with the field of the label in place of that of the rating.
    pub fn with_label(self, label_field: Option<FieldPath>) -> Result<Format, Failed> {
        let options = FormatOptions { label_field, ..self.options };
        options.format().map_err(|error| Failed::new(Exit::Usage, format!("{error}; see --help")))
    }
}

/// Maximum of --line-bytes-max. Cleaning makes a text at most half as long again (Ⱥ has two bytes, ⱥ three), and a
/// record must not exceed the limit of its readers.
const LINE_BYTES_LARGEST: u64 = RECORD_BYTES_MAX as u64 / 8 * 5;

/// Parses the value of --line-bytes-max.
pub fn parse_line_bytes(size: &str) -> Result<u64, String> {
    parse_size_within(size, &(1..=LINE_BYTES_LARGEST))
}
