//! The settings of a dataset.

use corpus::digest::Digest;
use corpus::settings::Settings;

/// All settings that determine the content of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct DatasetSettings {
    /// Settings of its shards.
    pub rows: Settings,
    /// Maximum number of words in the vocabulary.
    pub vocabulary_size: u64,
    /// Id digest of the dataset whose vocabulary was reused, if any.
    pub vocabulary_of: Option<Digest>,
    /// Id digest of the dataset whose texts were excluded, if any.
    pub without: Option<Digest>,
}

corpus::read_from_objects!(DatasetSettings);
