//! The JSON documents of `merge --check --json` and `merge gc --json`.

use dataset::Digests;
use making::CheckedFile;
use serde::Serialize;
use store::Listed;

use crate::Result;
use crate::plan::Planned;

/// A plan of a merge.
#[derive(Clone, Debug, Serialize)]
pub struct PlanReport {
    /// URL of the list of the tasks.
    pub list: String,
    /// Number of tasks.
    pub tasks: usize,
    /// Number of shards.
    pub shards: usize,
    /// Number of rows of all shards.
    pub rows: u64,
}

impl PlanReport {
    /// Describes a plan.
    pub fn of(planned: &Planned) -> Result<Self> {
        Ok(Self {
            list: planned.list()?,
            tasks: planned.tasks().count(),
            shards: planned.plan.seal.shards.len(),
            rows: planned.plan.seal.ledger.reducer.rows,
        })
    }

    /// The same facts as lines.
    pub fn text(&self) -> String {
        let Self { list, tasks, shards, rows } = self;
        format!("shards: {shards}, rows: {rows}\ntasks: {tasks}, {list}\n")
    }
}

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
