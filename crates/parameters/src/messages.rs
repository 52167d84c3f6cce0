//! Messages of the service `sentimill.parameters.v1.Parameters`, as protocol buffers. `build.rs` lists its methods.
//!
//! Row numbers are little-endian `u32`s and values are encoded as in [`crate::values`], each in one field of bytes: a list
//! of numbers would be decoded number by number.

use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, Serialize};

/// Creates a table, or compares an existing one of this name.
#[derive(Clone, PartialEq, Message)]
pub struct CreateRequest {
    /// Name of the table.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Number of rows on all servers.
    #[prost(uint64, tag = "2")]
    pub n_rows: u64,
    /// Floats per row.
    #[prost(uint32, tag = "3")]
    pub dim: u32,
    /// First values: uniform with this divisor, 0: all zero. See [`crate::Initial`].
    #[prost(float, tag = "4")]
    pub divisor: f32,
    /// Key of the random numbers of first values.
    #[prost(uint64, repeated, tag = "5")]
    pub key: Vec<u64>,
    /// Learning rate of Adagrad; 0: pushed values are added.
    #[prost(float, tag = "6")]
    pub rate: f32,
    /// What the rows mean, such as a digest of the vocabulary. Workers with another text are refused.
    #[prost(string, tag = "7")]
    pub content: String,
    /// The part of the rows that the client expects on this server,
    #[prost(uint32, tag = "8")]
    pub shard: u32,
    /// of this number of servers.
    #[prost(uint32, tag = "9")]
    pub n_shards: u32,
    /// Whether the values that workers push for a row in a step are averaged. The rate is then 0.
    #[prost(bool, tag = "10")]
    pub is_mean: bool,
    /// Count from which on a key has a row; 0: rows have no keys.
    #[prost(uint64, tag = "11")]
    pub min_count: u64,
}

/// The lines of a worker's input before a place.
#[derive(Clone, Copy, PartialEq, Eq, Message, Serialize, Deserialize)]
pub struct LineCounts {
    /// Lines that were trained on.
    #[prost(uint64, tag = "1")]
    pub trained: u64,
    /// Lines that were skipped.
    #[prost(uint64, tag = "2")]
    pub skipped: u64,
    /// Lines that a killed process had read.
    #[prost(uint64, tag = "3")]
    pub lost: u64,
}

/// A key and a count of it.
#[derive(Clone, PartialEq, Message)]
pub struct KeyCount {
    /// The key.
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// The count.
    #[prost(uint64, tag = "2")]
    pub n: u64,
}

/// Keys in a snapshot.
#[derive(Clone, PartialEq, Message)]
pub struct KeysState {
    /// Keys with a row, in the order of rows.
    #[prost(message, repeated, tag = "1")]
    pub keys: Vec<KeyCount>,
    /// Other keys.
    #[prost(message, repeated, tag = "2")]
    pub rare: Vec<KeyCount>,
    /// Sum of all counts.
    #[prost(uint64, tag = "3")]
    pub n_counted: u64,
    /// Counts of keys that came when all rows were used.
    #[prost(uint64, tag = "4")]
    pub n_left_out: u64,
}

/// Asks for the keys of rows.
#[derive(Clone, PartialEq, Message)]
pub struct KeysRequest {
    /// The first row.
    #[prost(uint64, tag = "1")]
    pub from: u64,
    /// The reply waits until a worker has completed more steps than these, but not for long; absent: it does not wait.
    #[prost(uint64, optional, tag = "2")]
    pub steps: Option<u64>,
}

/// The keys of some rows.
#[derive(Clone, PartialEq, Message)]
pub struct KeysReply {
    /// Keys with their counts, by row.
    #[prost(message, repeated, tag = "1")]
    pub keys: Vec<KeyCount>,
    /// Number of all keys with a row.
    #[prost(uint64, tag = "2")]
    pub n_keys: u64,
    /// Sum of all counts.
    #[prost(uint64, tag = "3")]
    pub n_counted: u64,
    /// Counts of keys that came when all rows were used.
    #[prost(uint64, tag = "4")]
    pub n_left_out: u64,
    /// Number of workers that have not left.
    #[prost(uint32, tag = "5")]
    pub n_workers: u32,
    /// The most steps that one of them has completed.
    #[prost(uint64, tag = "6")]
    pub most_steps: u64,
}

/// The table exists.
#[derive(Clone, PartialEq, Message)]
pub struct CreateReply {
    /// Its number.
    #[prost(uint32, tag = "1")]
    pub table: u32,
}

/// A worker begins or returns.
#[derive(Clone, PartialEq, Message)]
pub struct JoinRequest {
    /// The worker.
    #[prost(uint32, tag = "1")]
    pub worker: u32,
    /// Number of workers that it expects.
    #[prost(uint32, tag = "2")]
    pub n_workers: u32,
}

/// The place at which the worker continues.
#[derive(Clone, PartialEq, Message)]
pub struct JoinReply {
    /// Number of its completed steps; [`crate::LEFT`] if it has left.
    #[prost(uint64, tag = "1")]
    pub step: u64,
    /// Maximum number of steps by which it can be ahead of the slowest worker; absent: any.
    #[prost(uint64, optional, tag = "2")]
    pub staleness: Option<u64>,
    /// Whether it was removed. Its pushes are refused, and it can read the rows when the others have left.
    #[prost(bool, tag = "3")]
    pub is_removed: bool,
    /// The place of its last push that had one.
    #[prost(bytes = "vec", tag = "4")]
    pub place: Vec<u8>,
}

/// Rows of a table.
#[derive(Clone, PartialEq, Message)]
pub struct RowNumbers {
    /// The table.
    #[prost(uint32, tag = "1")]
    pub table: u32,
    /// Row numbers, `u32` each.
    #[prost(bytes = "bytes", tag = "2")]
    pub rows: Bytes,
}

/// Reads rows.
#[derive(Clone, PartialEq, Message)]
pub struct PullRequest {
    /// The worker; absent: a reader that is no worker, and does not wait.
    #[prost(uint32, optional, tag = "1")]
    pub worker: Option<u32>,
    /// The step for which the rows are read; [`crate::LEFT`]: when all other workers have left.
    #[prost(uint64, tag = "2")]
    pub step: u64,
    /// The rows.
    #[prost(message, repeated, tag = "3")]
    pub reads: Vec<RowNumbers>,
    /// What a rank was asked for, for [`crate::Server::requested`].
    #[prost(uint32, tag = "4")]
    pub asked: u32,
}

/// Rows, or the request to ask again.
#[derive(Clone, PartialEq, Message)]
pub struct PullReply {
    /// Values of each read, `f32` each.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub values: Vec<Bytes>,
    /// Completed steps of the slowest worker before the rows were read, also if the worker must wait.
    #[prost(uint64, tag = "2")]
    pub read_at: u64,
    /// The slowest worker is too far behind. Nothing was read; ask again.
    #[prost(bool, tag = "3")]
    pub must_wait: bool,
    /// The slowest worker.
    #[prost(uint32, tag = "4")]
    pub slowest: u32,
}

/// Updates of rows of a table.
#[derive(Clone, PartialEq, Message)]
pub struct RowUpdates {
    /// The table.
    #[prost(uint32, tag = "1")]
    pub table: u32,
    /// Row numbers, `u32` each, ascending.
    #[prost(bytes = "bytes", tag = "2")]
    pub rows: Bytes,
    /// Their values, in the encoding.
    #[prost(bytes = "bytes", tag = "3")]
    pub values: Bytes,
    /// Encoding: 0 is f32, 1 is bf16, 2 is top-k.
    #[prost(uint32, tag = "4")]
    pub encoding: u32,
    /// Values per row of top-k.
    #[prost(uint32, tag = "5")]
    pub k: u32,
}

/// Updates rows. The request is identified by worker, step and part.
#[derive(Clone, PartialEq, Message)]
pub struct PushRequest {
    /// The worker.
    #[prost(uint32, tag = "1")]
    pub worker: u32,
    /// Its step.
    #[prost(uint64, tag = "2")]
    pub step: u64,
    /// The number of this request within the step.
    #[prost(uint32, tag = "3")]
    pub part: u32,
    /// Whether it is the last one of the step.
    #[prost(bool, tag = "4")]
    pub is_last: bool,
    /// The lowest `read_at` of the rows on which the updates are based.
    #[prost(uint64, tag = "5")]
    pub read_at: u64,
    /// The updates.
    #[prost(message, repeated, tag = "6")]
    pub updates: Vec<RowUpdates>,
    /// Counts of keys, on the first server, as in [`crate::keys`].
    #[prost(bytes = "bytes", tag = "7")]
    pub counts: Bytes,
    /// The place of the worker in its input after the step, on the first server.
    #[prost(bytes = "vec", tag = "8")]
    pub place: Vec<u8>,
    /// The lines before this place.
    #[prost(message, optional, tag = "9")]
    pub lines: Option<LineCounts>,
    /// With a place: identifies the process, whose steps no other process repeats.
    #[prost(uint64, tag = "10")]
    pub process: u64,
}

/// The updates are durable.
#[derive(Clone, PartialEq, Message)]
pub struct PushReply {
    /// Whether they were accepted before, so that this request had no effect.
    #[prost(bool, tag = "1")]
    pub is_repeated: bool,
}

/// A worker ends.
#[derive(Clone, PartialEq, Message)]
pub struct LeaveRequest {
    /// The worker.
    #[prost(uint32, tag = "1")]
    pub worker: u32,
    /// A number of a rank, for [`crate::Server::sum`].
    #[prost(uint64, tag = "2")]
    pub number: u64,
    /// If a rank ends all ranks.
    #[prost(message, optional, tag = "3")]
    pub ending: Option<Ending>,
}

/// Why all ranks end.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Ending {
    /// The exit code, 0 if there is nothing to do.
    #[prost(uint32, tag = "1")]
    pub code: u32,
    /// The message of the error.
    #[prost(string, tag = "2")]
    pub message: String,
}

/// The worker has left.
#[derive(Clone, PartialEq, Message)]
pub struct LeaveReply {}

/// Asks for statistics.
#[derive(Clone, PartialEq, Message)]
pub struct StatisticsRequest {}

/// Statistics.
#[derive(Clone, PartialEq, Message)]
pub struct StatisticsReply {
    /// [`crate::Statistics`] as JSON.
    #[prost(string, tag = "1")]
    pub json: String,
}
