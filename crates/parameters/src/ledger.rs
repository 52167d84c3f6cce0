//! Counts what a server accepted, and how stale it was.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::messages::LineCounts;

/// Larger stalenesses are counted together, under this one.
const STALENESS_MAX: u64 = 1024;

/// Accepted pushes. A push that was repeated is counted once. The counts are part of the durable state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Number of pushes.
    pub pushes: u64,
    /// Number of rows in them.
    pub rows: u64,
    /// Bytes of their row numbers and values.
    pub bytes: u64,
    /// Number of pushes of each worker.
    pub pushes_of: Vec<u64>,
    /// Number of pushes by staleness: the step of a push, minus the completed steps of the slowest worker when its rows were
    /// read. Larger ones are counted under 1024.
    pub staleness: BTreeMap<u64, u64>,
}

impl Ledger {
    pub(crate) fn new(n_workers: u32) -> Self {
        Self { pushes_of: vec![0; n_workers as usize], ..Self::default() }
    }

    pub(crate) fn add(&mut self, worker: u32, rows: u64, bytes: u64, staleness: u64) {
        self.pushes += 1;
        self.rows += rows;
        self.bytes += bytes;
        self.pushes_of[worker as usize] += 1;
        *self.staleness.entry(staleness.min(STALENESS_MAX)).or_default() += 1;
    }

    /// Whether each push is counted under its worker and its staleness.
    pub fn balances(&self) -> bool {
        let of_workers: u64 = self.pushes_of.iter().sum();
        let by_staleness: u64 = self.staleness.values().sum();
        (of_workers, by_staleness) == (self.pushes, self.pushes)
    }
}

/// Counts since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinceStart {
    /// Pushes that had been accepted before.
    pub repeated: u64,
    /// Pushes that were refused because the rows were older than the bound.
    pub too_old: u64,
    /// Other refused pushes.
    pub refused: u64,
    /// Bytes of the log that were made durable, and in how many calls.
    pub log_bytes: u64,
    /// Writes to the log, each with one or more pushes.
    pub log_writes: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Snapshots that could not be written.
    pub failed_snapshots: u64,
}

/// What a server has done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Statistics {
    /// The part of the rows on this server,
    pub shard: u32,
    /// of this number of servers.
    pub servers: u32,
    /// Maximum staleness; `None`: unbounded.
    pub bound: Option<u64>,
    /// Workers.
    pub workers: Vec<WorkerStatistics>,
    /// Tables.
    pub tables: Vec<TableStatistics>,
    /// Keys, on the first server if rows have keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeyStatistics>,
    /// Accepted pushes.
    pub ledger: Ledger,
    /// Whether the counts of the ledger agree.
    pub balanced: bool,
    /// Accepted pushes that wait for other workers, with `--staleness 0`.
    pub waiting_pushes: u64,
    /// Counts since the start.
    pub since_start: SinceStart,
}

/// A worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerStatistics {
    /// Completed steps; `None` after its last step.
    pub steps: Option<u64>,
    /// Whether it was removed because it was silent for too long.
    pub removed: bool,
    /// Seconds since its last request; `None` if there was none since the start.
    pub silent_s: Option<f64>,
    /// The lines before the place of its last push that had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineCounts>,
}

/// Keys with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyStatistics {
    /// Number of keys with a row.
    pub rows: u64,
    /// Sum of the counts of all keys.
    pub counted: u64,
    /// Counts of keys that came when all rows were used.
    pub left_out: u64,
}

/// A table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TableStatistics {
    /// Name.
    pub name: String,
    /// Rows on all servers.
    pub rows: u64,
    /// Floats per row.
    pub dim: u32,
}
