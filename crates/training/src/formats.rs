//! The format of an input: by flags, then by the extension of its name, then as the training of the model read its input.

use std::path::Path;

use corpus::arguments::FormatArguments;
use corpus::encoding::{Encoding, parse_encoding};
use corpus::format::FormatName;
use corpus::labels::Labels;
use reading::{is_table_name, of_extension};
use runs::training::{RunSettings, SETTINGS, read_json};
use serde_json::{Value, json};

use crate::arguments::{LabelledTexts, Rated};

/// Settings of ratings, by the names of their flags. Without ratings they have no effect.
const OF_RATINGS: [&str; 3] = ["rating-field", "class-ratings", "rating-scale"];

/// The settings of a training and of the input of its dataset, by the names of their flags.
#[derive(Clone, Debug, Default)]
pub struct Trained(Value);

/// An input of which the format is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Unknown<'a> {
    /// Its name; `-` is standard input.
    pub name: &'a str,
    /// The format of a flag.
    pub asked: Option<FormatName>,
    /// Whether flags name fields or columns.
    pub has_fields: bool,
    /// Whether it was found to be a Parquet or Arrow file.
    pub is_table: bool,
    /// Whether a program may wait for the answer of each line, so that a table is read only if a flag says so.
    pub is_asking: bool,
}

impl Trained {
    /// The settings in the training folder in which the model is; none if it is in no training folder.
    pub fn of(model: &Path) -> Self {
        let training: Option<RunSettings> =
            model.parent().and_then(|folder| read_json(&folder.join(SETTINGS)));
        training.map(|training| Self::from(&training)).unwrap_or_default()
    }

    /// The same settings for a model with these labels of ratings, which a training on a dataset does not have among its own.
    #[must_use]
    pub fn with_labels(mut self, labels: &Labels) -> Self {
        self.0["labels"] = json!(labels.classes().map(ToString::to_string));
        self.0["positive-from"] = json!(labels.positive_from());
        self
    }

    /// The text of a setting.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// The text of a setting, unless it is one of ratings.
    pub fn without_ratings(&self, name: &str) -> Option<&str> {
        self.setting(name).filter(|_| !OF_RATINGS.contains(&name))
    }

    /// The number of a setting.
    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    /// The format of an input, and its encoding if it is that of the training.
    pub fn format(&self, of: Unknown<'_>) -> (FormatName, Option<&'static Encoding>) {
        let trained: Option<FormatName> = self.setting("format").and_then(|name| name.parse().ok());
        let usable = trained.filter(|name| name.has_fields() || !of.has_fields);
        let by_name = by_extension(of.name, usable);
        let default = usable.filter(|name| !(of.is_asking && name.is_delimited()));
        let name = of.asked.or(by_name).or(default).unwrap_or_default();
        // A file of another format is probably of another program.
        let is_same = !of.is_table && !is_table_name(of.name) && (by_name.is_none() || by_name == trained);
        let encoding = self.setting("encoding").filter(|_| is_same);
        (name, encoding.and_then(|name| parse_encoding(name).ok()))
    }

    /// The format and the labels of a file of texts with labels, by these flags.
    pub fn of_labelled(
        &self,
        place: &str,
        LabelledTexts { format, rated, .. }: &LabelledTexts,
    ) -> (FormatArguments, Rated) {
        let (name, encoding) = self.format(Unknown {
            name: place,
            asked: format.asked(),
            has_fields: format.names_fields() || rated.label_field.is_some(),
            is_table: false,
            is_asking: false,
        });
        let format = format.clone().read_as(name, encoding);
        let rated = self.labels(rated.clone(), &format);
        // The flags of the training for ratings say nothing about labels.
        let format = match rated.label_field {
            Some(_) => format.or_of_training(|name| self.without_ratings(name)),
            None => format.or_of_training(|name| self.setting(name)),
        };
        (format, rated)
    }

    /// The labels of texts. Without a flag for them, they are those of the training.
    fn labels(&self, mut rated: Rated, format: &FormatArguments) -> Rated {
        if rated.label_field.is_none() && rated.labels.is_none() && rated.positive_from.is_none() {
            let label_field = self.setting("label-field").filter(|_| format.may_have_labels());
            rated.label_field = label_field.and_then(|field| field.parse().ok());
            if rated.label_field.is_none() {
                rated.labels = self.setting("labels").and_then(|classes| classes.parse().ok());
                rated.positive_from = self.number("positive-from").and_then(|stars| stars.try_into().ok());
            }
        }
        rated
    }
}

impl From<&RunSettings> for Trained {
    fn from(training: &RunSettings) -> Self {
        let mut settings = training.recipe.clone();
        training.input.iter().for_each(|(name, value)| settings[name] = json!(value));
        Self(settings)
    }
}

/// The format of a file with this name, if its extension tells. The class is the first column of a polarity file.
fn by_extension(name: &str, trained: Option<FormatName>) -> Option<FormatName> {
    match of_extension(name) {
        Some(FormatName::Csv) if trained == Some(FormatName::PolarityCsv) => trained,
        found => found,
    }
}
