//! Reads the texts of files, of standard input, of objects and of datasets.

use std::fs::File;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::Path;

use ::ngrams::{Reading, Texts, Words};
use arguments::FormatArguments;
use batches::{Division, Part};
use corpus::labels::Labels;
use corpus::ledger::Share;
use program::location::Location;
use store::S3Options;
use texts::{DatasetTexts, Ledger, Lines};

use crate::arguments::Rated;
use crate::error::{Error, Result};
use crate::places;
use crate::tell::tell;

/// How an input is read.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The format of lines.
    pub format: &'a FormatArguments,
    /// The labels of ratings.
    pub rated: &'a Rated,
    /// Number of threads.
    pub threads: NonZeroUsize,
    /// Options for S3.
    pub s3: S3Options,
}

/// The first bytes of a dataset.
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";

impl Input<'_> {
    /// Reads all texts. Skipped lines are reported.
    pub fn read(&self, places: &[String], reading: Reading) -> Result<Texts> {
        self.read_telling(places, reading, tell)
    }

    /// Reads texts that were read before in another way. Skipped lines are not reported again.
    pub fn read_again(&self, places: &[String], reading: Reading) -> Result<Texts> {
        self.read_telling(places, reading, |_| {})
    }

    fn read_telling(&self, places: &[String], reading: Reading, tell: impl Fn(&str)) -> Result<Texts> {
        if let [place] = places
            && is_dataset(place)
        {
            return self.read_dataset(place, reading, tell);
        }
        let (exit, message) = match self.format.clone().format() {
            Ok(format) => {
                let lines = Lines {
                    inputs: places.to_vec(),
                    s3: self.s3.clone(),
                    format,
                    labels: self.labels(),
                    bad_lines_max: Share::OF_BAD_LINES,
                    threads: self.threads,
                };
                let read = texts::read(&lines, reading, &tell)?;
                if let Ledger::FastText { unlabelled, .. } = read.ledger
                    && unlabelled > 0
                {
                    let lines = report::whole(unlabelled);
                    let are =
                        if unlabelled == 1 { "line without a label is" } else { "lines without a label are" };
                    tell(&format!("{lines} {are} skipped"));
                }
                return Ok(read.texts);
            }
            Err(refused) => refused,
        };
        Err(Error::Refused { exit, message })
    }

    fn read_dataset(&self, place: &str, reading: Reading, tell: impl Fn(&str)) -> Result<Texts> {
        if reading.words != Words::Cleaned {
            return Err(Error::Setting {
                setting: "--words",
                found: "not cleaned".to_owned(),
                expected: format!("cleaned for the dataset {place}, whose texts are cleaned"),
            });
        }
        let location = Location::of_file(place.into()).map_err(|error| Error::internal(&error))?;
        let path = places::dataset(&location, &self.s3)?;
        let dataset = DatasetTexts::open(&path, Division::all_test(), self.threads)?;
        let split = dataset.read(Part::Test, reading)?;
        dataset.warnings(place, &split).iter().for_each(|warning| tell(warning));
        Ok(split.texts)
    }

    fn labels(&self) -> Labels {
        match (&self.rated.labels, self.rated.positive_from) {
            (Some(classes), _) => Labels::Classes(classes.clone()),
            (None, positive_from) => Labels::PositiveFrom(positive_from.unwrap_or(4)),
        }
    }
}

/// Whether a place is a dataset: a local HDF5 file, or an object with its extension.
pub fn is_dataset(place: &str) -> bool {
    if place.starts_with("s3://") {
        return place.ends_with(".h5");
    }
    let mut begin = [0; HDF5.len()];
    let path = Path::new(place);
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && begin == HDF5
}
