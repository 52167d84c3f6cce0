//! Flags for the format of lines, shared by all programs that read lines.

use crate::csv::{Delimiter, Quote};
use crate::encoding::{Encoding, UTF_8, parse_encoding};
use crate::format::{
    ClassRatings, FieldPath, FieldPaths, Format, FormatName, FormatOptions, Preset, Scale, UnratedValues,
};
use clap::Args;
use program::exit::{Exit, Failed};

/// The format of the lines.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Format")]
pub struct FormatArguments {
    /// json, csv, tsv, fasttext, …
    ///
    /// json, csv, tsv, polarity-csv or fasttext. json reads one object per line, also the Python literals of older
    /// Amazon dumps; sentimill, ngrams and vectors also read a JSON array. csv and tsv read tables with a header, not in mapper.
    /// polarity-csv reads CSV with the class in the first column and the text in the last. fasttext reads
    /// `__label__CLASS text`.
    #[arg(long, value_name = "NAME", default_value_t)]
    format: FormatName,
    /// Fields of amazon2014, 2018, 2023 or yelp
    ///
    /// Shorthand for --text-field and --rating-field: amazon2014, amazon2018, amazon2023 or yelp.
    #[arg(long, value_name = "NAME")]
    preset: Option<Preset>,
    /// Fields of the text [default: reviewText]
    ///
    /// The texts of several fields are joined by a space: summary,reviewText. A dot leads into an object: data.text.
    /// [] leads into a list, each element of which is a review: reviews[].text. In a name, write \. for a dot, \, for a
    /// comma, \[ for a bracket and \\ for a backslash. In csv and tsv a field is the name of a
    /// column, or its number from 1.
    #[arg(long, value_name = "LIST")]
    text_field: Option<FieldPaths>,
    /// Field of the rating [default: overall]
    ///
    /// One field, as in --text-field. It contains a number of stars from 1 to 5, a number of --rating-scale, or a class of
    /// --class-ratings.
    #[arg(long, value_name = "NAME")]
    rating_field: Option<FieldPath>,
    /// Star rating of each class, as in good=5,bad=1
    ///
    /// The default is 1=1,2=5 for polarity-csv and fasttext, and none for json, csv and tsv, where values that are not
    /// listed are numbers of stars, unless a listed value is a number. A line whose class has no rating is a bad line. In a
    /// class, write \, for a comma.
    #[arg(long, value_name = "LIST")]
    class_ratings: Option<ClassRatings>,
    /// Scale of the rating, as in 1-10 or 0-100
    ///
    /// LOW-HIGH: numbers from LOW to HIGH are mapped linearly to 1 to 5 stars and rounded, halves up. Texts such as 7/10,
    /// 80 %, 3,5, 4 out of 5 stars and ★★★★☆ are read as numbers too. For json, csv and tsv.
    #[arg(long, value_name = "LOW-HIGH", allow_hyphen_values = true, hide_short_help = true)]
    rating_scale: Option<Scale>,
    /// Ratings of unrated reviews, as in null,0
    ///
    /// Reviews with one of these values are counted as `unrated` and skipped. They are not bad lines. null is also an
    /// absent field and an empty cell. For json, csv and tsv.
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    unrated: Option<UnratedValues>,
    /// polarity-csv: prepend the title to the text
    ///
    /// The title is the column before the text.
    #[arg(long, hide_short_help = true)]
    with_title: bool,
    /// csv and tsv: delimiter of columns [default: found in each file]
    ///
    /// A comma, tab, ';' or '|'. The default is the one with which the first lines of a file are most consistent: a comma
    /// in csv and a tab in tsv, if no other is better.
    #[arg(long, value_name = "CHARACTER", hide_short_help = true)]
    delimiter: Option<Delimiter>,
    /// csv and tsv: meaning of quotes [default: found in each file]
    ///
    /// double: a text in quotes may contain delimiters, line breaks and "" for a quote. backslash: a backslash escapes the
    /// next character, too. none: quotes are characters, and each line is a record. The default is found as that of
    /// --delimiter.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    quote: Option<Quote>,
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
        self.format == FormatName::FastText
    }

    /// Whether a field may have labels: the format has fields, and no flag is one for ratings.
    pub fn may_have_labels(&self) -> bool {
        let has_fields = matches!(self.format, FormatName::Json | FormatName::Csv | FormatName::Tsv);
        has_fields
            && self.rating_field.is_none()
            && self.class_ratings.is_none()
            && self.rating_scale.is_none()
            && self.preset.is_none()
            && self.unrated.is_none()
    }

    /// The encoding of the input.
    pub fn encoding(&self) -> &'static Encoding {
        self.encoding.unwrap_or(UTF_8)
    }

    /// The name of the encoding, if it is not UTF-8.
    pub fn encoding_name(&self) -> Option<&'static str> {
        (self.encoding() != UTF_8).then(|| self.encoding().name())
    }

    /// Returns the format.
    pub fn format(self) -> Result<Format, Failed> {
        self.with_label(None)
    }

    /// As [`Self::format`], with the field of the label in place of that of the rating.
    pub fn with_label(self, label_field: Option<FieldPath>) -> Result<Format, Failed> {
        let options = FormatOptions {
            label_field,
            name: self.format,
            preset: self.preset,
            text_field: self.text_field,
            rating_field: self.rating_field,
            class_ratings: self.class_ratings,
            rating_scale: self.rating_scale,
            unrated: self.unrated,
            with_title: self.with_title,
            delimiter: self.delimiter,
            quote: self.quote,
        };
        options.format().map_err(|error| Failed::new(Exit::Usage, format!("{error}; see --help")))
    }
}
