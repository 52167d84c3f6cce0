//! Flags for the format of lines, shared by all programs that read lines.

use clap::Args;
use corpus::format::{Asked, ClassRatings, Format, FormatName, Preset};
use program::exit::Exit;

/// The format of a line.
#[derive(Args, Clone, Debug)]
pub struct FormatArguments {
    /// Format of the lines: json, polarity-csv or fasttext
    #[arg(long, value_name = "NAME", default_value_t)]
    format: FormatName,
    /// json: fields of amazon2014, amazon2018, amazon2023 or yelp
    #[arg(long, value_name = "NAME")]
    preset: Option<Preset>,
    /// json: field of the text [default: reviewText]
    #[arg(long, value_name = "NAME")]
    text_field: Option<String>,
    /// json: field of the rating [default: overall]
    #[arg(long, value_name = "NAME")]
    rating_field: Option<String>,
    /// Other formats: stars of classes [default: 1=1,2=5]
    #[arg(long, value_name = "CLASS=STARS")]
    class_ratings: Option<ClassRatings>,
    /// polarity-csv: put the column before the text in front
    #[arg(long)]
    with_title: bool,
}

impl FormatArguments {
    /// Returns the format, or an exit code and a message.
    pub fn format(self) -> Result<Format, (Exit, String)> {
        let asked = Asked {
            name: self.format,
            preset: self.preset,
            text_field: self.text_field,
            rating_field: self.rating_field,
            class_ratings: self.class_ratings,
            with_title: self.with_title,
        };
        asked.format().map_err(|error| (Exit::Usage, format!("{error}; --help tells more")))
    }
}
