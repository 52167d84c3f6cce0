//! Converts records into a shard and commits it to the store exactly once.
//!
//! Records are sorted by text. Each text becomes a row. The rows of one partition become one HDF5 file with
//! its own dictionary. The file is written, read back completely, put into the store and committed. A reducer
//! is independent of other partitions and needs no vocabulary.

pub mod arguments;
mod buffer;
mod collect;
mod commit;
mod reading;
mod report;
mod runs;
pub mod task;

use std::fs;
use std::io::{self, Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use corpus::group::GroupError;
use corpus::record::ReadError;
use dataset::commit::{Commit, shard_key};
use durable::sha256;
use dataset::shard::{ShardReader, ShardWriter};
use program::exit::{Exit, Fails};
use program::hadoop::Runner;
use program::progress::Progress;
use program::system::Failure;
use program::temporary;
use store::Store;
use thiserror::Error;

use crate::collect::{Collection, Collector};
use crate::commit::{Outcome, agree, earlier, elect, put_shard};
use crate::reading::Reading;
use crate::report::Report;
use crate::task::Task;

/// Maximum number of threads that verify a shard. A Hadoop container has one or two cores, however many the
/// machine has.
const THREADS_MAX: NonZeroUsize = NonZeroUsize::new(2).expect("2 is more than 0");

/// Why a reducer failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The input is not a stream of sorted records.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// A text is not UTF-8.
    #[error("line {line}: the text is not UTF-8; feed this program the output of mapper or combiner")]
    NotUtf8 {
        /// Line number of the text's first record.
        line: u64,
    },
    /// A word is not a cleaned word. The message does not contain it, because logs must not contain review
    /// text.
    #[error(
        "the records have a word that is not cleaned, for example one with a capital letter or a digit; feed this program the output \
         of mapper or combiner"
    )]
    NotCleaned,
    /// A text belongs to another partition.
    #[error(
        "line {line}: the text belongs to partition {found} of {partitions}, expected {expected}; use --select to read one partition from all records, or --any-partitioner if another partitioner split them"
    )]
    WrongPartition {
        /// Line number of the text's first record.
        line: u64,
        /// The partition of the text.
        found: u32,
        /// The partition of this reducer.
        expected: u32,
        /// Number of partitions.
        partitions: u32,
    },
    /// The shard could not be written or read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// The shard does not contain what was written.
    #[error("the shard read back differs from the shard written ({0}); check the disk of TMPDIR")]
    Unverified(String),
    /// A temporary file could not be written or read.
    #[error(
        "{}: {}",
        path.display(),
        Failure::writing("write the temporary shard", source, "set TMPDIR to a folder on another disk")
    )]
    Scratch {
        /// The file or its folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// An object is not a commit record.
    #[error(
        "{object} is not a commit record ({found}), expected one of schema version {}; it was damaged or written by another version of the programs: start again with a new --run",
        dataset::SCHEMA_VERSION
    )]
    Record {
        /// The object.
        object: String,
        /// What is wrong with it.
        found: serde_json::Error,
    },
    /// A commit record does not match its object.
    #[error(
        "{object} {found}; the record or the object that it names was damaged: start again with a new --run"
    )]
    Damaged {
        /// The record.
        object: String,
        /// The value in the record and the actual one.
        found: String,
    },
    /// An object with other content has the name of this attempt's shard.
    #[error(
        "{object}: exists with other content, expected the shard of this attempt; pass another --attempt"
    )]
    NameTaken {
        /// The object.
        object: String,
    },
    /// Two attempts of a partition differ.
    #[error(
        "partition {partition} was committed by attempt {attempt} with {what} {theirs}, this attempt has {ours}; \
         nothing was changed; for other data or settings, pass a new run: --run NEW"
    )]
    Disagree {
        /// The partition.
        partition: u32,
        /// The elected attempt.
        attempt: String,
        /// The field that differs.
        what: &'static str,
        /// Its value in this attempt.
        ours: String,
        /// Its value in the elected attempt.
        theirs: String,
    },
    /// A run of one partition has no records.
    #[error("found no record, expected at least one; check that the program that writes them succeeded")]
    NoRecord,
    /// A thread could not be started.
    #[error("{}", Failure::reading("start a thread", .0))]
    Thread(#[source] io::Error),
    /// Standard output or standard error could not be written.
    #[error("standard output: {}", Failure::writing("write the result", .0, "redirect it to another disk"))]
    Output(#[source] io::Error),
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Group(GroupError::Read(ReadError::Io(_)))
            | Self::Thread(_)
            | Self::Output(_)
            | Self::Scratch { .. }
            | Self::Unverified(_) => Exit::Io,
            Self::Group(_)
            | Self::NotUtf8 { .. }
            | Self::NotCleaned
            | Self::WrongPartition { .. }
            | Self::NoRecord => Exit::BadInput,
            Self::Dataset(error) => error.exit(),
            Self::Store(error) => error.exit(),
            Self::Record { .. } | Self::Damaged { .. } | Self::NameTaken { .. } | Self::Disagree { .. } => {
                Exit::Internal
            }
        }
    }
}

/// Result of a reducer.
pub type Result<T> = std::result::Result<T, Error>;

/// Reads all records of `input`, commits their shard, and prints the commit on `output`. Notices and counters
/// go to `log`. Returns the commit record of the elected attempt.
pub fn run(
    input: impl Read + Send + 'static,
    output: impl Write,
    log: impl Write,
    store: &Store,
    task: &Task,
) -> Result<Commit> {
    // A commit that exists already is made without a temporary file.
    temporary::clear(&task.scratch);
    let mut report = Report { log, runner: task.runner };
    let before = earlier(store, task.partition)?;
    let collection = collect(input, task, store.progress())?;
    let totals = collection.totals;
    // With several partitions or under Hadoop, a partition may be empty.
    if totals.counts.reviews == 0 && task.partitions == 1 && task.runner == Runner::User {
        return Err(Error::NoRecord);
    }
    let elected = match before {
        Some(before) => {
            agree(store, &unplaced(store, task, &collection), &before, &task.scratch)?;
            report
                .notice(&format!("partition {} was already committed, with the same rows", task.partition))?;
            before
        }
        None => commit(&mut report, store, task, collection)?,
    };
    report.counters(&totals.counts)?;
    report.commit(output, &elected)?;
    Ok(elected)
}

fn collect(input: impl Read + Send + 'static, task: &Task, progress: &Progress) -> Result<Collection> {
    let mut collector =
        Collector::new(task.settings.clone(), task.memory_bytes, &task.scratch).reporting(progress.clone());
    Reading::start(input, task)?.each(|text| Ok(collector.add(text)?))?;
    Ok(collector.finish()?)
}

fn commit(
    report: &mut Report<impl Write>,
    store: &Store,
    task: &Task,
    collection: Collection,
) -> Result<Commit> {
    let (totals, unplaced) = (collection.totals, unplaced(store, task, &collection));
    report.status(&format!("writing a shard of {} rows", totals.counts.rows))?;
    let folder = temporary::folder_in(&task.scratch)
        .map_err(|source| Error::Scratch { path: task.scratch.clone(), source })?;
    let path = folder.path().join("shard.h5");
    write_shard(&path, task, collection, store.progress()).map_err(|error| match error {
        Error::Dataset(error) => Error::Dataset(error.in_tmpdir()),
        other => other,
    })?;
    let unreadable = |source| Error::Scratch { path: path.clone(), source };
    let bytes = fs::metadata(&path).map_err(unreadable)?.len();
    let sha256 = sha256::of_file_reporting(&path, store.progress()).map_err(unreadable)?;
    report.status(&format!("storing {bytes} bytes in the run"))?;
    let object = shard_key(task.partition, &task.host, &task.attempt);
    let etag = put_shard(store, &object, &path, bytes, &sha256)?;
    let commit = Commit { object, bytes, sha256, etag, ..unplaced };
    match elect(store, commit, &task.scratch)? {
        Outcome::Won(commit) => Ok(commit),
        Outcome::Same(elected) => {
            report.notice(&format!("attempt {} was elected, with the same rows", elected.attempt))?;
            Ok(elected)
        }
    }
}

/// Writes the shard, closes it, and reads it back completely.
fn write_shard(path: &Path, task: &Task, collection: Collection, progress: &Progress) -> Result<()> {
    let (size, totals) = (collection.size(), collection.totals);
    let mut shard = ShardWriter::create(path, &task.settings, size)?.reporting(progress.clone());
    collection.write(&mut shard)?;
    shard.finish(totals.row_digest)?;
    let mut written = ShardReader::open(path).map_err(|error| Error::Unverified(error.to_string()))?;
    let same = written.size() == size
        && written.settings() == &task.settings
        && written.digests().row_digest == totals.row_digest;
    if !same {
        return Err(Error::Unverified("other sizes, settings or digest".to_owned()));
    }
    let verified = written.keep_dictionary(task.memory_bytes as u64).and_then(|()| {
        written.verify_blocks(dataset::threads(THREADS_MAX), || (), |(), _| progress.advance(1), |()| ())
    });
    verified.map_err(|error| match error {
        // The reducer does not change words, so the word is wrong in the records.
        dataset::Error::Broken { rule: dataset::RULE_OF_WORDS, .. } => Error::NotCleaned,
        other => Error::Unverified(other.to_string()),
    })
}

/// The commit record of this attempt, without its object.
fn unplaced(store: &Store, task: &Task, collection: &Collection) -> Commit {
    let totals = collection.totals;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Commit {
        schema_version: dataset::SCHEMA_VERSION,
        run: store.url(),
        partition: task.partition,
        partitions: task.partitions,
        object: String::new(),
        bytes: 0,
        sha256: String::new(),
        etag: None,
        host: task.host.clone(),
        attempt: task.attempt.clone(),
        job: task.job.clone(),
        committed_unix_s: now.map_or(0, |since| since.as_secs()),
        counts: totals.counts,
        kept_words: totals.kept_words,
        distinct_words: collection.size().words,
        row_digest: totals.row_digest,
        settings: task.settings.clone(),
    }
}
