//! The datasets on which a new one depends, and the settings that follow from them.

use corpus::settings::Settings;
use dataset::DatasetSettings;
use dataset::dataset_file::DatasetReader;
use dataset::vocabulary::Vocabulary;

use crate::error::{Error, Result};
use crate::input_file::{DatasetFile, check_cleaning, check_rows};
use crate::options::VocabularyFrom;
use crate::vocabulary::{most_frequent, recounted};

/// The datasets on which a new one depends, and its settings.
pub struct Inputs {
    vocabulary: Option<DatasetReader>,
    without: Option<DatasetReader>,
    settings: DatasetSettings,
}

impl Inputs {
    /// Opens the other datasets. Those of other settings than `rows` are refused.
    pub fn open(from: &VocabularyFrom, without: Option<&DatasetFile>, rows: &Settings) -> Result<Self> {
        let open = |file: &DatasetFile| -> Result<DatasetReader> {
            let dataset = file.open()?;
            check_cleaning(&file.name, &dataset.settings().rows, rows)?;
            Ok(dataset)
        };
        let (vocabulary, vocabulary_size) = match from {
            VocabularyFrom::Frequency(size) => (None, *size),
            VocabularyFrom::Dataset(file) => {
                let other = open(file)?;
                check_rows(&file.name, &other.settings().rows, rows)?;
                let size = other.vocabulary().words.len() as u64;
                (Some(other), size)
            }
        };
        let without = without.map(open).transpose()?;
        let settings = DatasetSettings {
            rows: rows.clone(),
            vocabulary_size,
            vocabulary_of: vocabulary.as_ref().map(|dataset| dataset.digests().id_digest),
            without: without.as_ref().map(|dataset| dataset.digests().id_digest),
        };
        Ok(Self { vocabulary, without, settings })
    }

    /// The settings of the new dataset.
    pub fn settings(&self) -> &DatasetSettings {
        &self.settings
    }

    /// The dataset whose texts are excluded.
    pub fn without(&self) -> Option<&DatasetReader> {
        self.without.as_ref()
    }

    /// The vocabulary of the new dataset. `each_word` visits words once, with their counts.
    pub fn vocabulary<E: From<Error>>(
        &self,
        each_word: impl FnOnce(&mut dyn FnMut(&[u8], u64)) -> Result<(), E>,
    ) -> Result<Vocabulary, E> {
        match &self.vocabulary {
            None => most_frequent(self.settings.vocabulary_size, each_word),
            Some(other) => recounted(other.vocabulary().words.clone(), each_word),
        }
    }
}
