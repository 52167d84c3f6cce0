//! Options of a dataset to make.

use corpus::arguments::DatasetArguments;
use store::S3Options;

use crate::beside::TextsName;
use crate::error::Result;
use crate::input_file::DatasetFile;
use crate::output::Output;

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
        let existing = Existing::of_force(flags.force);
        let vocabulary = match &flags.vocabulary {
            Some(dataset) => VocabularyFrom::Dataset(DatasetFile::of(dataset, s3)?),
            None => VocabularyFrom::Frequency(flags.vocabulary_size.unwrap_or(VOCABULARY_SIZE)),
        };
        let without = flags.without.as_ref().map(|dataset| DatasetFile::of(dataset, s3)).transpose()?;
        let (padded, ids) = (flags.padded, flags.parquet);
        Ok(Self { out, vocabulary, without, padded, ids, texts, existing })
    }
}

/// What happens to an existing dataset that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is kept, and the new one is refused.
    Keep,
    /// It is replaced, if its SHA-256 is the one in the manifest beside it.
    Replace,
}

impl Existing {
    /// By `--force`.
    pub fn of_force(force: bool) -> Self {
        if force { Self::Replace } else { Self::Keep }
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

/// Default maximum number of words in the vocabulary.
const VOCABULARY_SIZE: u64 = 10_000;
