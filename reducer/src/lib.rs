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
mod sorted_runs;
pub mod task;

use std::fs;
use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::SystemTime;

use corpus::clean::Rules;
use dataset::commit::{Commit, shard_key};
use dataset::shard::{ShardReader, ShardWriter};
use durable::sha256;
use program::exit::{Exit, Failed};
use program::hadoop::Runner;
use program::progress::Progress;
use program::temporary;
use store::Store;

use crate::collect::{Collection, Collector};
use crate::commit::{Outcome, agree, earlier, elect, put_shard, temporary_failed};
use crate::reading::Reading;
pub use crate::reading::no_thread;
use crate::report::Report;
use crate::task::Task;

/// Maximum number of threads that verify a shard. A Hadoop container has one or two cores, however many the
/// machine has.
const THREADS_MAX: NonZeroUsize = NonZeroUsize::new(2).expect("2 is more than 0");

/// Result of a reducer.
pub type Result<T> = std::result::Result<T, Failed>;

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
        let why = "found no record, expected at least one; check that the program that writes them succeeded";
        return Err(Failed::new(Exit::BadInput, why));
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
    let folder =
        temporary::folder_in(&task.scratch).map_err(|error| temporary_failed(&task.scratch, &error))?;
    let path = folder.path().join("shard.h5");
    write_shard(&path, task, collection, store.progress())?;
    let failed = |error| temporary_failed(&path, &error);
    let bytes = fs::metadata(&path).map_err(failed)?.len();
    let sha256 = sha256::of_file_reporting(&path, store.progress()).map_err(failed)?;
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
    let written = ShardWriter::create(path, &task.settings, size).and_then(|shard| {
        let mut shard = shard.reporting(progress.clone());
        collection.write(&mut shard)?;
        shard.finish(totals.row_digest)
    });
    written.map_err(dataset::Error::in_tmpdir)?;
    let mut written = ShardReader::open(path).map_err(|error| unverified(&error.to_string()))?;
    let same = written.size() == size
        && written.settings() == &task.settings
        && written.digests().row_digest == totals.row_digest;
    if !same {
        return Err(unverified("other sizes, settings or digest"));
    }
    let verified = written.keep_dictionary(task.memory_bytes as u64).and_then(|()| {
        written.verify_blocks(dataset::threads(THREADS_MAX), || (), |(), _| progress.advance(1), |()| ())
    });
    verified.map_err(|error| match error {
        // The reducer does not change words, so the word is wrong in the records. The message does not contain it, because
        // logs must not contain review text.
        dataset::Error::Broken { rule: dataset::RULE_OF_WORDS, .. } => {
            let (or_a_digit, or_the_flag) = match task.settings.rules() {
                Some(Rules::Punctuation) => ("", ""),
                _ => (" or a digit", ", and pass --punctuation if mapper had it"),
            };
            Failed::new(
                Exit::BadInput,
                format!(
                    "the records have a word that is not cleaned, for example one with a capital letter{or_a_digit}; feed this \
                     program the output of mapper or combiner{or_the_flag}"
                ),
            )
        }
        other => unverified(&other.to_string()),
    })
}

fn unverified(found: &str) -> Failed {
    let why =
        format!("the shard read back differs from the shard written ({found}); check the disk of TMPDIR");
    Failed::new(Exit::Io, why)
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
