//! Reads the texts and labels of files, of standard input, of objects and of datasets, for trainings and evaluations.

use std::num::NonZeroUsize;

use batches::{Division, Part};
use classifiers::{Reading, Texts, Words};
use corpus::arguments::FormatArguments;
use corpus::ledger::Limits;
use corpus::scripts::unspaced;
use corpus::settings::Settings;
use program::exit::{Exit, Failed};
use program::location::Location;
use reading::{OtherExtension, Source};
use serde::{Serialize, Serializer};
use store::S3Options;

use crate::arguments::Rated;
use crate::error::{Error, Result};
use crate::lines::FastTextLine;
use crate::places::{self, is_dataset};
use crate::texts::{self, DatasetTexts, Ledger, Lines, Wanted};

/// How an input is read.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The format of lines.
    pub format: &'a FormatArguments,
    /// The labels of ratings.
    pub rated: &'a Rated,
    /// What a line of fastText's format is.
    pub fasttext: FastTextLine,
    /// Limits of bad lines and of lines that are not in their encoding.
    pub limits: Limits,
    /// Number of threads.
    pub threads: NonZeroUsize,
    /// The settings of the rows whose splits the lines have; `None`: rows have all words.
    pub rows: Option<&'a Settings>,
    /// Options for S3.
    pub s3: S3Options,
    /// Reports skipped lines, and what the preparation of a dataset costs.
    pub tell: fn(&str),
}

/// The texts of an input.
#[derive(Debug)]
pub struct ReadInput {
    /// The texts of all wanted splits.
    pub splits: Vec<Texts>,
    /// The counts of lines; none for a dataset.
    pub ledger: Option<Ledger>,
}

/// The counts of lines, as one object.
#[derive(Clone, Copy, Debug)]
pub struct Counters(pub Ledger);

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.counters())
    }
}

impl Input<'_> {
    /// Reads all texts. Skipped lines are reported.
    pub fn read(&self, places: &[String], reading: Reading) -> Result<(Texts, Option<Ledger>)> {
        let wanted = vec![Wanted { part: Part::Test, reading }];
        let ReadInput { mut splits, ledger } = self.read_splits(places, Division::all_test(), wanted)?;
        Ok((splits.remove(0), ledger))
    }

    /// Reads the texts of a file or dataset that are evaluated: the test split, if it is a fraction. Skipped lines are
    /// reported.
    pub fn read_evaluated(
        &self,
        place: &str,
        test_fraction: Option<f64>,
        words: Words,
        memory_bytes: usize,
    ) -> Result<(Texts, Option<Ledger>)> {
        let division = division(test_fraction)?;
        // The words of the model may be behind any limit of the dictionary.
        let (words_max, words_bytes_max) = (usize::MAX, usize::MAX);
        let reading = Reading { words, memory_bytes, has_keys: true, ..Reading::default() };
        let reading = Reading { words_max, words_bytes_max, ..reading };
        let wanted = vec![Wanted { part: Part::Test, reading }];
        let ReadInput { mut splits, ledger } = self.read_splits(&[place.to_owned()], division, wanted)?;
        let texts = splits.remove(0);
        if texts.n_texts() == 0 && test_fraction.is_some() {
            let found = "no text is in the test split";
            return Err(Error::useless_texts(place, found, "raise --test-fraction, or omit it"));
        }
        Ok((texts, ledger))
    }

    /// Reads the texts of some splits, which are those of a dataset with all words. Skipped lines are reported.
    pub fn read_splits(
        &self,
        places: &[String],
        division: Division,
        wanted: Vec<Wanted>,
    ) -> Result<ReadInput> {
        if let [place] = places
            && is_dataset(place)
        {
            return self.read_dataset(place, division, wanted);
        }
        let format = self.format.clone().with_label(self.rated.label_field.clone())?;
        let is_cleaned = wanted.iter().any(|wanted| wanted.reading.words.rules().is_some());
        if self.format.is_fasttext() && self.fasttext == FastTextLine::Words && is_cleaned {
            return Err(Error::setting(
                "--format",
                "fasttext",
                "another one with --words cleaned: lines in fastText's format are not cleaned",
            ));
        }
        let lines = Lines {
            inputs: places.to_vec(),
            s3: self.s3.clone(),
            format,
            labels: self.rated.all(),
            fasttext: self.fasttext,
            encoding: self.format.encoding(),
            limits: self.limits,
            threads: self.threads,
            rows: self.rows.cloned(),
        };
        let (splits, ledger) = match &wanted[..] {
            [Wanted { part, reading }] if division.is_all(*part) => {
                let read = texts::read(&lines, reading.clone(), self.tell)?;
                (vec![read.texts], read.ledger)
            }
            _ => texts::read_splits(&lines, division, wanted, self.tell)?,
        };
        tell_skipped(&ledger, self.tell);
        for (place, texts) in places.iter().zip(&splits).take(1) {
            let words_per_text = texts.counts().n_tokens as f64 / texts.n_texts().max(1) as f64;
            let warning = unspaced(texts.dictionary.words().iter(), words_per_text);
            warning.iter().for_each(|warning| (self.tell)(&format!("warning: {place}: {warning}")));
        }
        Ok(ReadInput { splits, ledger: Some(ledger) })
    }

    fn read_dataset(&self, place: &str, division: Division, wanted: Vec<Wanted>) -> Result<ReadInput> {
        if wanted.iter().any(|wanted| wanted.reading.words.rules().is_none()) {
            return Err(Error::setting(
                "--words",
                "not cleaned",
                format!(
                    "cleaned for the dataset {place}, whose texts are cleaned; pass the lines that it was made of, or a \
                     model trained with --words cleaned"
                ),
            ));
        }
        let location = Location::of_file(place.into()).map_err(|error| Error::internal(&error))?;
        let path = places::dataset(&location, &self.s3)?;
        let dataset = DatasetTexts::open(&path, division, self.threads)?;
        let words = Words::of_rows(&dataset.settings().rows);
        if let Some(other) = wanted.iter().map(|wanted| wanted.reading.words).find(|other| *other != words) {
            let expected = format!("{} for the dataset {place}", words.name());
            return Err(Error::setting("--words", other.name(), expected));
        }
        let mut splits = Vec::new();
        for Wanted { part, reading } in wanted {
            let split = dataset.read(part, reading)?;
            if splits.is_empty() {
                dataset.warnings(place, &split).iter().for_each(|warning| (self.tell)(warning));
            }
            splits.push(split.texts);
        }
        Ok(ReadInput { splits, ledger: None })
    }
}

/// The flags of a format, or the format of the extensions of all files. A dataset among them has no lines.
pub fn or_by_extension<'a>(
    format: &FormatArguments,
    places: impl Iterator<Item = &'a String>,
    s3: &S3Options,
) -> Result<FormatArguments> {
    let lines = || places.filter(|place| !is_dataset(place)).cloned().collect::<Vec<_>>();
    Ok(format.clone().or_format(|| reading::format_of(&lines(), s3, OtherExtension::Same))?)
}

/// The division whose test split is evaluated: a fraction, or all texts.
pub fn division(test_fraction: Option<f64>) -> Result<Division> {
    match test_fraction {
        Some(fraction) => Ok(Division::by_fractions(fraction, 0.0)?),
        None => Ok(Division::all_test()),
    }
}

/// The sources of an input that is read several times. Standard input and pipes are refused by the name of what reads them,
/// and with another remedy than a file.
pub fn repeatable(place: &str, s3: &S3Options, reader: &str, remedy: &str) -> Result<Vec<Source>> {
    let sources = reading::find(&[place.to_owned()], s3)?;
    match sources.iter().find(|source| source.is_stream()) {
        None => Ok(sources),
        Some(stream) => {
            let found = format!("{reader}: found {}, which can be read once only", stream.name);
            let message = format!("{found}; write the texts to a file and evaluate it, or {remedy}");
            Err(Failed::new(Exit::Usage, message).into())
        }
    }
}

fn tell_skipped(ledger: &Ledger, tell: fn(&str)) {
    if let Ledger::FastText { other_labels: n @ 1.., .. } = *ledger {
        let lines = if n == 1 { "1 line has".to_owned() } else { format!("{} lines have", report::whole(n)) };
        tell(&format!(
            "warning: {lines} several labels, or a label behind the text: each word that starts with __label__ is a label; \
             sentimill reads only the first one at the start of a line"
        ));
    }
    match *ledger {
        Ledger::FastText { unlabelled: 1, .. } => tell("1 line without a label is skipped"),
        Ledger::FastText { unlabelled, .. } if unlabelled > 0 => {
            tell(&format!("{} lines without a label are skipped", report::whole(unlabelled)));
        }
        Ledger::Reviews { .. } if ledger.n_skipped() > 0 => tell(&ledger.to_string()),
        Ledger::FastText { .. } | Ledger::Reviews { .. } => {}
    }
}
