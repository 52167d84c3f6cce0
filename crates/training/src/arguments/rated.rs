//! Flags of the labels of texts.

use clap::Args;
use corpus::format::FieldPath;
use corpus::labels::{Classes, Labels};

/// Labels of formats that have fields or ratings.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Labels")]
pub struct Rated {
    /// Field of the label, any text, in place of a rating
    ///
    /// One field or column, as in --text-field. Each of its values is a label: a text, a number, true or false. Labels are
    /// numbered in the order of their bytes. For json, csv and tsv.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["positive_from", "labels", "rating_field", "class_ratings", "rating_scale"])]
    pub label_field: Option<FieldPath>,
    /// Lowest rating with label 1 [default: 4]
    ///
    /// For formats with ratings. The labels of --format fasttext are those of its lines.
    #[arg(long, value_name = "STARS", value_parser = clap::value_parser!(u8).range(1..=5), hide_short_help = true)]
    pub positive_from: Option<u8>,
    /// Classes of ratings, in place of two labels
    ///
    /// Pairs of ratings and a name, such as 1-2=negative,3=neutral,4-5=positive. A review whose rating has no class is
    /// skipped.
    #[arg(long, value_name = "CLASSES", conflicts_with = "positive_from", hide_short_help = true)]
    pub labels: Option<Classes>,
}

impl Rated {
    /// The labels of ratings.
    pub fn all(&self) -> Labels {
        match (&self.labels, self.positive_from) {
            (Some(classes), _) => Labels::Classes(classes.clone()),
            (None, positive_from) => Labels::PositiveFrom(positive_from.unwrap_or(4)),
        }
    }
}
