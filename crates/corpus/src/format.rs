//! Formats of raw lines, and the fields and classes that hold the text and the rating.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use thiserror::Error;

pub use crate::class_ratings::{ClassRatings, NoClassRatings};
use crate::csv::dialect::{AskedDialect, Delimiter, Quote};
pub use crate::fields::{FieldPath, FieldPaths, Fields, NoFieldPath, TwoLists};
pub use crate::scale::{NoScale, Scale};
pub use crate::unrated::{NoUnratedValues, UnratedValues};

/// The format of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON object, or the Python literal of an older dump.
    Json(Fields),
    /// Columns: the class first, the text last.
    PolarityCsv {
        /// The rating of each class.
        ratings: ClassRatings,
        /// Whether the column before the text is prepended to the text.
        with_title: bool,
    },
    /// `__label__CLASS text`.
    FastText {
        /// The rating of each class.
        ratings: ClassRatings,
    },
    /// CSV or TSV with a header. The mapper does not read it, because a header and line breaks in quotes cannot be split
    /// at lines.
    Delimited {
        /// How records are written.
        dialect: AskedDialect,
        /// The columns.
        fields: Fields,
    },
}

impl Format {
    /// The name of the format in options.
    pub fn name(&self) -> FormatName {
        match self {
            Self::Json(_) => FormatName::Json,
            Self::PolarityCsv { .. } => FormatName::PolarityCsv,
            Self::FastText { .. } => FormatName::FastText,
            Self::Delimited { dialect, .. } => match dialect.default {
                Delimiter::Tab => FormatName::Tsv,
                Delimiter::Comma | Delimiter::Semicolon | Delimiter::Bar => FormatName::Csv,
            },
        }
    }

    /// Whether lines are JSON objects.
    pub fn is_json(&self) -> bool {
        matches!(self, Self::Json(_))
    }

    /// Whether the content is a table with a header.
    pub fn is_delimited(&self) -> bool {
        matches!(self, Self::Delimited { .. })
    }

    /// The same format for texts whose ratings are not read. A table needs no column of them: that of the text takes its
    /// place.
    #[must_use]
    pub fn without_ratings(mut self) -> Self {
        if let Self::Json(fields) | Self::Delimited { fields, .. } = &mut self
            && let Some(text) = fields.text.first()
        {
            (fields.rating, fields.has_labels) = (text.clone(), true);
        }
        self
    }

    /// Whether the text and the rating are named fields or columns.
    pub fn has_fields(&self) -> bool {
        self.fields().is_some()
    }

    /// The named fields or columns, for a format that has them.
    pub fn fields(&self) -> Option<&Fields> {
        match self {
            Self::Json(fields) | Self::Delimited { fields, .. } => Some(fields),
            Self::PolarityCsv { .. } | Self::FastText { .. } => None,
        }
    }

    /// Whether the values of the rating field are labels and no ratings.
    pub fn has_labels(&self) -> bool {
        self.fields().is_some_and(|fields| fields.has_labels)
    }

    /// Whether a line has a list with a review in each element.
    pub fn has_list(&self) -> bool {
        matches!(self, Self::Json(fields) if fields.list() != Ok(None))
    }

    /// The ratings of classes, for a format that has classes.
    pub fn class_ratings(&self) -> Option<&ClassRatings> {
        match self {
            Self::Json(fields) | Self::Delimited { fields, .. } => fields.classes.as_ref(),
            Self::PolarityCsv { ratings, .. } | Self::FastText { ratings } => Some(ratings),
        }
    }

    /// The settings that find the text in a line, as names of flags and their values.
    pub fn of_texts(&self) -> Vec<(&'static str, String)> {
        let format = ("format", self.name().to_string());
        match self {
            Self::Json(fields) | Self::Delimited { fields, .. } => {
                let paths: Vec<_> = fields.text.iter().map(ToString::to_string).collect();
                let mut settings = vec![format, ("text-field", paths.join(","))];
                if let Self::Delimited { dialect, .. } = self {
                    settings.extend(dialect.delimiter.map(|delimiter| ("delimiter", delimiter.to_string())));
                    settings.extend(dialect.quote.map(|quote| ("quote", quote.to_string())));
                }
                settings
            }
            Self::PolarityCsv { with_title, .. } => vec![format, ("with-title", with_title.to_string())],
            Self::FastText { .. } => vec![format],
        }
    }

    /// The settings that find the text and the rating in a line, as names of flags and their values.
    pub fn of_reviews(&self) -> Vec<(&'static str, String)> {
        let mut settings = self.of_texts();
        if let Some(fields) = self.fields() {
            let name = if fields.has_labels { "label-field" } else { "rating-field" };
            settings.push((name, fields.rating.to_string()));
            settings.extend(fields.scale.map(|scale| ("rating-scale", scale.to_string())));
            settings.extend((!fields.unrated.is_empty()).then(|| ("unrated", fields.unrated.to_string())));
        }
        settings.extend(self.class_ratings().map(|ratings| ("class-ratings", ratings.to_string())));
        settings
    }

    /// A format that finds the same texts; the inverse of [`Format::of_texts`]. `None` if a setting is missing or
    /// unknown.
    pub fn with_texts<'a>(setting: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let name: FormatName = setting("format")?.parse().ok()?;
        let mut options = FormatOptions { name: Some(name), ..FormatOptions::default() };
        match name {
            FormatName::PolarityCsv => options.with_title = setting("with-title")?.parse().ok()?,
            FormatName::FastText => {}
            _ => options.text_field = Some(setting("text-field")?.parse().ok()?),
        }
        options.or_of_training(setting).format().ok()
    }
}

impl Default for Format {
    fn default() -> Self {
        Self::Json(Fields::default())
    }
}

/// The name of a format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormatName {
    /// [`Format::Json`]
    #[default]
    Json,
    /// [`Format::PolarityCsv`]
    PolarityCsv,
    /// [`Format::FastText`]
    FastText,
    /// [`Format::Delimited`] by commas.
    Csv,
    /// [`Format::Delimited`] by tabs.
    Tsv,
}

impl FormatName {
    /// Whether the text and the rating are named fields or columns.
    pub fn has_fields(self) -> bool {
        matches!(self, Self::Json | Self::Csv | Self::Tsv)
    }

    /// Whether the content is a table with a header.
    pub fn is_delimited(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::PolarityCsv => "polarity-csv",
            Self::FastText => "fasttext",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
        }
    }
}

impl fmt::Display for FormatName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for FormatName {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let all = [Self::Json, Self::PolarityCsv, Self::FastText, Self::Csv, Self::Tsv];
        all.into_iter().find(|format| format.name() == name).ok_or(UnknownFormat)
    }
}

/// The name of a format is unknown.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("expected json, csv, tsv, polarity-csv or fasttext")]
pub struct UnknownFormat;

/// Well-known review files with their own field names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Amazon reviews of 2014 and 2018.
    Amazon2014,
    /// Amazon reviews of 2023.
    Amazon2023,
    /// The Yelp open dataset.
    Yelp,
}

impl Preset {
    /// The field names of these files.
    pub fn fields(self) -> Fields {
        match self {
            Self::Amazon2014 => Fields::default(),
            Self::Amazon2023 => Fields::named("text", "rating"),
            Self::Yelp => Fields::named("text", "stars"),
        }
    }
}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        match name {
            "amazon2014" | "amazon2018" => Ok(Self::Amazon2014),
            "amazon2023" => Ok(Self::Amazon2023),
            "yelp" => Ok(Self::Yelp),
            _ => Err(UnknownPreset),
        }
    }
}

/// The name of a preset is unknown.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("expected amazon2014, amazon2018, amazon2023 or yelp")]
pub struct UnknownPreset;

/// The format options that a user passed. Programs with other flags for them fill in their own.
#[derive(Args, Clone, Debug, Default)]
pub struct FormatOptions {
    /// json, csv, tsv, fasttext, … [default: by extension]
    ///
    /// json, csv, tsv, polarity-csv or fasttext. The default is that of the extension .csv, .tsv, .json, .jsonl or .ndjson of all
    /// files, also compressed; otherwise it is json. json reads one object per line, also the Python literals of older
    /// Amazon dumps; sentimill, ngrams and vectors also read a JSON array. csv and tsv read tables with a header, not in mapper.
    /// polarity-csv reads CSV with the class in the first column and the text in the last. fasttext reads
    /// `__label__CLASS text`.
    #[arg(id = "format", long = "format", value_name = "NAME")]
    pub name: Option<FormatName>,
    /// Fields of amazon2014, 2018, 2023 or yelp
    ///
    /// Shorthand for --text-field and --rating-field: amazon2014, amazon2018, amazon2023 or yelp.
    #[arg(long, value_name = "NAME")]
    pub preset: Option<Preset>,
    /// Fields of the text [default: reviewText]
    ///
    /// The texts of several fields are joined by a space: summary,reviewText. A dot leads into an object: data.text.
    /// [] leads into a list, each element of which is a review: reviews[].text. In a name, write \. for a dot, \, for a
    /// comma, \[ for a bracket and \\ for a backslash. In csv and tsv a field is the name of a
    /// column, or its number from 1.
    #[arg(long, value_name = "LIST")]
    pub text_field: Option<FieldPaths>,
    /// Field of the rating [default: overall]
    ///
    /// One field, as in --text-field. It contains a number of stars from 1 to 5, a number of --rating-scale, or a class of
    /// --class-ratings.
    #[arg(long, value_name = "NAME")]
    pub rating_field: Option<FieldPath>,
    /// The field of the label, in place of a rating.
    #[arg(skip)]
    pub label_field: Option<FieldPath>,
    /// Star rating of each class, as in good=5,bad=1
    ///
    /// The default is 1=1,2=5 for polarity-csv and fasttext, and none for json, csv and tsv, where values that are not
    /// listed are numbers of stars, unless a listed value is a number. A line whose class has no rating is a bad line. In a
    /// class, write \, for a comma.
    #[arg(long, value_name = "LIST")]
    pub class_ratings: Option<ClassRatings>,
    /// Scale of the rating, as in 1-10 or 0-100
    ///
    /// LOW-HIGH: numbers from LOW to HIGH are mapped linearly to 1 to 5 stars and rounded, halves up. Texts such as 7/10,
    /// 80 %, 3,5, 4 out of 5 stars and ★★★★☆ are read as numbers too. For json, csv and tsv.
    #[arg(long, value_name = "LOW-HIGH", allow_hyphen_values = true, hide_short_help = true)]
    pub rating_scale: Option<Scale>,
    /// Ratings of unrated reviews, as in null,0
    ///
    /// Reviews with one of these values are counted as `unrated` and skipped. They are not bad lines. null is also an
    /// absent field and an empty cell. For json, csv and tsv.
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub unrated: Option<UnratedValues>,
    /// polarity-csv: prepend the title to the text
    ///
    /// The title is the column before the text.
    #[arg(long, hide_short_help = true)]
    pub with_title: bool,
    /// csv and tsv: delimiter of columns [default: found in each file]
    ///
    /// A comma, tab, ';' or '|'. The default is the one with which the first lines of a file are most consistent: a comma
    /// in csv and a tab in tsv, if no other is better.
    #[arg(long, value_name = "CHARACTER", hide_short_help = true)]
    pub delimiter: Option<Delimiter>,
    /// csv and tsv: meaning of quotes [default: found in each file]
    ///
    /// double: a text in quotes may contain delimiters, line breaks and "" for a quote. backslash: a backslash escapes the
    /// next character, too. none: quotes are characters, and each line is a record. The default is found as that of
    /// --delimiter.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub quote: Option<Quote>,
}

impl FormatOptions {
    /// The name of the format, or the default.
    pub fn name(&self) -> FormatName {
        self.name.unwrap_or_default()
    }

    /// Returns the format, or an error if one of the options belongs to another format.
    pub fn format(self) -> Result<Format, Misplaced> {
        let name = self.name();
        self.refuse(name.name(), |formats| !formats.contains(&name))?;
        let classes = self.class_ratings;
        let ratings = classes.clone().unwrap_or_default();
        let preset = self.preset.map(Preset::fields).unwrap_or_default();
        let has_labels = self.label_field.is_some();
        let fields = Fields {
            text: self.text_field.map_or(preset.text, |FieldPaths(paths)| paths),
            rating: self.label_field.or(self.rating_field).unwrap_or(preset.rating),
            classes,
            scale: self.rating_scale,
            unrated: self.unrated.unwrap_or_default(),
            has_labels,
        };
        let (delimiter, quote) = (self.delimiter, self.quote);
        let dialect = |default| AskedDialect { default, delimiter, quote };
        Ok(match name {
            FormatName::Json => {
                fields.list()?;
                Format::Json(fields)
            }
            FormatName::Csv => Format::Delimited { dialect: dialect(Delimiter::Comma), fields },
            FormatName::Tsv => Format::Delimited { dialect: dialect(Delimiter::Tab), fields },
            FormatName::PolarityCsv => Format::PolarityCsv { ratings, with_title: self.with_title },
            FormatName::FastText => Format::FastText { ratings },
        })
    }

    /// Fills in what no flag says by the settings of a training, as [`Format::of_texts`] names them. Its delimiter, quotes and
    /// title are those of its format, and its classes those of formats with fields, or of its format.
    #[must_use]
    pub fn or_of_training<'a>(mut self, setting: impl Fn(&str) -> Option<&'a str>) -> Self {
        fn parsed<T: FromStr>(text: Option<&str>) -> Option<T> {
            text?.parse().ok()
        }
        let name = self.name();
        let has_fields = name.has_fields();
        let trained: Option<FormatName> = parsed(setting("format"));
        let is_same = trained == Some(name);
        let has_same_classes = is_same || (has_fields && trained.is_some_and(FormatName::has_fields));
        let has_rating = self.rating_field.is_some() || self.rating_scale.is_some() || self.unrated.is_some();
        if has_fields && self.preset.is_none() {
            self.text_field = self.text_field.or_else(|| parsed(setting("text-field")));
            if !has_rating && self.class_ratings.is_none() {
                self.rating_field = parsed(setting("rating-field"));
                self.rating_scale = parsed(setting("rating-scale"));
                self.unrated = parsed(setting("unrated"));
            }
        }
        if !has_rating && self.preset.is_none() && has_same_classes {
            self.class_ratings = self.class_ratings.or_else(|| parsed(setting("class-ratings")));
        }
        if is_same {
            self.with_title |= setting("with-title") == Some("true");
            self.delimiter = self.delimiter.or_else(|| parsed(setting("delimiter")));
            self.quote = self.quote.or_else(|| parsed(setting("quote")));
        }
        self
    }

    /// Returns an error if any option was passed, for the format named `found`, which has no options.
    pub fn nothing_for(&self, found: &'static str) -> Result<(), Misplaced> {
        self.refuse(found, |_| true)
    }

    /// Returns an error for the first option that was passed and belongs to other formats only.
    fn refuse(
        &self,
        found: &'static str,
        are_foreign: impl Fn(&[FormatName]) -> bool,
    ) -> Result<(), Misplaced> {
        use FormatName::{Csv, FastText, Json, PolarityCsv, Tsv};
        let with_fields = (&[Json, Csv, Tsv][..], "json, csv or tsv");
        let all = (&[Json, Csv, Tsv, PolarityCsv, FastText][..], "formats with ratings");
        let tables = (&[Csv, Tsv][..], "csv or tsv");
        let options: [(&str, bool, &[FormatName], &str); 10] = [
            ("--preset", self.preset.is_some(), with_fields.0, with_fields.1),
            ("--text-field", self.text_field.is_some(), with_fields.0, with_fields.1),
            ("--rating-field", self.rating_field.is_some(), with_fields.0, with_fields.1),
            ("--label-field", self.label_field.is_some(), with_fields.0, with_fields.1),
            ("--class-ratings", self.class_ratings.is_some(), all.0, all.1),
            ("--rating-scale", self.rating_scale.is_some(), with_fields.0, with_fields.1),
            ("--unrated", self.unrated.is_some(), with_fields.0, with_fields.1),
            ("--with-title", self.with_title, &[PolarityCsv], "polarity-csv"),
            ("--delimiter", self.delimiter.is_some(), tables.0, tables.1),
            ("--quote", self.quote.is_some(), tables.0, tables.1),
        ];
        let misplaced =
            options.into_iter().find(|(_, is_given, formats, _)| *is_given && are_foreign(formats));
        misplaced
            .map_or(Ok(()), |(option, _, _, expected)| Err(Misplaced::Option { option, found, expected }))
    }
}

/// Options that the format does not have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Misplaced {
    /// An option of other formats.
    #[error(
        "{option} is not used by the format {found}, only by {expected}; remove it or choose another --format"
    )]
    Option {
        /// The option.
        option: &'static str,
        /// The chosen format.
        found: &'static str,
        /// The formats that have the option.
        expected: &'static str,
    },
    /// Fields of two lists.
    #[error(transparent)]
    TwoLists(#[from] TwoLists),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Rating;

    #[test]
    fn only_listed_classes_have_a_rating() {
        let stars =
            |list: &str, class: &str| list.parse::<ClassRatings>().unwrap().rating(class).map(Rating::stars);
        assert_eq!(
            [stars("1=1,2=5", "1"), stars("1=1,2=5", "2"), stars("1=1,2=5", "3")],
            [Some(1), Some(5), None]
        );
        assert_eq!([stars("a=b=4,=3", "a=b"), stars("a=b=4,=3", "")], [Some(4), Some(3)]);
        assert_eq!("1=1,2=5".parse(), Ok(ClassRatings::default()));
        assert_eq!(ClassRatings::default().to_string(), "1=1,2=5");
    }

    #[test]
    fn a_malformed_list_of_classes_is_refused_with_the_wrong_pair() {
        for (list, part) in
            [("", ""), ("1", "1"), ("1=1,", ""), ("1=0", "1=0"), ("1=1.0", "1=1.0"), ("1=1 ,2=5", "1=1 ")]
        {
            assert_eq!(list.parse::<ClassRatings>(), Err(NoClassRatings::Pair(part.to_owned())), "{list}");
        }
        assert_eq!("1=1,1=2".parse::<ClassRatings>(), Err(NoClassRatings::Twice("1".to_owned())));
        let six = "a=1,b=6".parse::<ClassRatings>().unwrap_err().to_string();
        assert!(six.starts_with("\"b=6\" has more than 5 stars") && six.contains("ngrams train"), "{six}");
    }

    #[test]
    fn a_class_may_have_a_comma() {
        let list = r"5\,0=5,so\, so=3,a\b=1";
        let ratings: ClassRatings = list.parse().unwrap();
        let stars = ["5,0", "so, so", r"a\b", "5"].map(|class| ratings.rating(class).map(Rating::stars));
        assert_eq!(stars, [Some(5), Some(3), Some(1), None]);
        assert_eq!(ratings.to_string(), list);
    }

    #[test]
    fn an_explicit_field_overrides_the_preset() {
        let options = FormatOptions {
            preset: "yelp".parse().ok(),
            rating_field: "useful".parse().ok(),
            ..FormatOptions::default()
        };
        assert_eq!(options.format(), Ok(Format::Json(Fields::named("text", "useful"))));
        assert_eq!(FormatOptions::default().format(), Ok(Format::default()));
    }

    #[test]
    fn the_settings_of_texts_survive_the_round_trip() {
        let ratings = ClassRatings::default();
        for format in [
            Format::Json(Fields { text: r"a\.b,c.d".parse::<FieldPaths>().unwrap().0, ..Fields::default() }),
            Format::PolarityCsv { ratings: ratings.clone(), with_title: true },
            Format::FastText { ratings },
            Format::Delimited {
                dialect: AskedDialect { delimiter: Some(Delimiter::Bar), ..AskedDialect::of(Delimiter::Tab) },
                fields: Fields::default(),
            },
            Format::Delimited {
                dialect: AskedDialect { quote: Some(Quote::None), ..AskedDialect::of(Delimiter::Comma) },
                fields: Fields::default(),
            },
        ] {
            let settings = format.of_texts();
            let setting =
                |name: &str| settings.iter().find(|(key, _)| *key == name).map(|(_, value)| &value[..]);
            assert_eq!(Format::with_texts(setting), Some(format));
        }
        assert_eq!(Format::with_texts(|_| None), None);
        assert_eq!(Format::with_texts(|_| Some("other")), None);
    }

    #[test]
    fn an_option_of_another_format_is_refused() {
        let titles = FormatOptions { with_title: true, ..FormatOptions::default() };
        assert_eq!(
            titles.format().unwrap_err().to_string(),
            "--with-title is not used by the format json, only by polarity-csv; remove it or choose another --format"
        );
        let name = Some(FormatName::FastText);
        let fields = FormatOptions { name, text_field: "text".parse().ok(), ..FormatOptions::default() };
        assert_eq!(
            fields.format(),
            Err(Misplaced::Option {
                option: "--text-field",
                found: "fasttext",
                expected: "json, csv or tsv"
            })
        );
        let quotes = FormatOptions { quote: Some(Quote::None), ..FormatOptions::default() };
        assert_eq!(
            quotes.format(),
            Err(Misplaced::Option { option: "--quote", found: "json", expected: "csv or tsv" })
        );
    }
}
