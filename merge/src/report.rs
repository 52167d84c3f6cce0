//! The JSON documents of `merge --check --json` and `merge gc --json`.

use dataset::Digests;
use making::CheckedFile;
use serde::Serialize;
use store::Listed;

/// A dataset that was read and found to be complete.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Path of the dataset, as the user passed it.
    pub dataset: String,
    /// Its rows.
    pub rows: u64,
    /// Whether all bytes were compared with a manifest beside it; otherwise only the content was checked.
    pub manifest: bool,
    /// The other files that the manifest lists.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<CheckedFile>,
    /// Digests of rows, ids and vocabulary.
    pub digests: Digests,
}

/// The objects of a run that no commit record names.
#[derive(Clone, Debug, Serialize)]
pub struct GarbageReport {
    /// The run.
    pub run: String,
    /// Whether the orphans were deleted.
    pub deleted: bool,
    /// Why the orphans must not be deleted, if so.
    pub refused: Option<String>,
    /// Shards of attempts that were not elected.
    pub orphans: Vec<Object>,
    /// Objects that no reducer wrote. They are never deleted.
    pub strangers: Vec<Object>,
}

/// An object of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Object {
    /// Its name in the run.
    pub object: String,
    /// Its size.
    pub bytes: u64,
}

impl Object {
    /// Returns the object of a list.
    pub fn of(listed: &Listed) -> Self {
        Self { object: listed.key.to_string(), bytes: listed.bytes }
    }
}
