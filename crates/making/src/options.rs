//! Options of a dataset to make.

use corpus::arguments::{DatasetArguments, VocabularyArguments};
use dataset::manifest::{croissant_name, ids_name, padded_name};
use store::S3Options;

use crate::beside::{Beside, Kind, TextsName};
use crate::error::Result;
use crate::input_file::DatasetFile;
use crate::output::{Existing, Output};

/// Options of the dataset to make.
#[derive(Clone, Debug)]
pub struct DatasetOptions {
    /// The path or URL of the dataset.
    pub out: Output,
    /// The source of its vocabulary.
    pub vocabulary: VocabularyFrom,
    /// A dataset whose texts are excluded.
    pub without: Option<DatasetFile>,
    /// Number of ids per row of a padded copy, if one is to be made.
    pub padded: Option<u64>,
    /// Whether its ids are also written to a Parquet file.
    pub ids: bool,
    /// The name of a Parquet file of its texts, if one is to be written. Only for contents that have texts.
    pub texts: Option<TextsName>,
    /// What happens to an existing dataset that differs.
    pub existing: Existing,
}

impl DatasetOptions {
    /// The options for these flags, with this file of texts. Finds the other datasets on which the new one depends.
    pub fn of(
        flags: &DatasetArguments,
        out: Output,
        texts: Option<TextsName>,
        s3: &S3Options,
    ) -> Result<Self> {
        let existing = Existing::of_force(flags.files.force);
        let vocabulary = VocabularyFrom::of(&flags.vocabulary, s3)?;
        let without =
            flags.vocabulary.without.as_ref().map(|dataset| DatasetFile::of(dataset, s3)).transpose()?;
        let (padded, ids) = (flags.files.padded, flags.files.parquet);
        Ok(Self { out, vocabulary, without, padded, ids, texts, existing })
    }

    /// The files to write beside the dataset of this name. The description is last.
    pub(crate) fn requested(&self, dataset: &str) -> Vec<Beside> {
        let described = self.ids || self.texts.is_some();
        let kinds = [
            (Kind::Padded, self.padded.map(|_| padded_name(dataset))),
            (Kind::Ids, self.ids.then(|| ids_name(dataset))),
            (Kind::Texts, self.texts.as_ref().map(ToString::to_string)),
            (Kind::Croissant, described.then(|| croissant_name(dataset))),
        ];
        kinds.into_iter().filter_map(|(kind, name)| Some(Beside { kind, name: name? })).collect()
    }
}

/// The source of a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VocabularyFrom {
    /// The most frequent words of this data, at most this number.
    Frequency(u64),
    /// The whole vocabulary of another dataset, in its order.
    Dataset(DatasetFile),
}

impl VocabularyFrom {
    /// The vocabulary for these flags. Finds the other dataset, if there is one.
    pub fn of(flags: &VocabularyArguments, s3: &S3Options) -> Result<Self> {
        Ok(match &flags.vocabulary {
            Some(dataset) => Self::Dataset(DatasetFile::of(dataset, s3)?),
            None => Self::Frequency(flags.vocabulary_size.unwrap_or(VOCABULARY_SIZE)),
        })
    }
}

/// Default maximum number of words in the vocabulary.
const VOCABULARY_SIZE: u64 = 10_000;
