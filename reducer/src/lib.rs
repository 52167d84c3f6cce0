//! Converts records into a shard and commits it to the store exactly once.
//!
//! Records are sorted by text. Each text becomes a row. The rows of one partition become one HDF5 file with
//! its own dictionary, and their texts a Parquet file, if asked for. The files are written, read back completely,
//! put into the store and committed. A reducer is independent of other partitions and needs no vocabulary.

pub mod arguments;
mod buffer;
mod collect;
mod commit;
mod reading;
mod report;
mod sorted_runs;
pub mod task;
mod texts;

use std::fs;
use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use corpus::clean::Rules;
use dataset::commit::{Commit, ListedFile, PartObject};
use dataset::shard::{ShardReader, ShardWriter};
use durable::sha256;
use program::exit::{Exit, Failed};
use program::hadoop::Runner;
use program::progress::Progress;
use program::temporary;
use store::Store;

use crate::collect::{Collection, Collector};
use crate::commit::{Outcome, agree, earlier, elect, put_object, temporary_failed};
use crate::reading::Reading;
pub use crate::reading::no_thread;
use crate::report::Report;
use crate::task::Task;
use crate::texts::Texts;

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
    // A partition that is committed already needs no other texts.
    let texts = (task.texts && before.is_none())
        .then(|| Texts::new(task.settings.clone(), task.memory_of_rows(), &task.scratch));
    let (collection, texts) = collect(input, task, texts, store.progress())?;
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
        None => commit(&mut report, store, task, collection, texts)?,
    };
    report.counters(&totals.counts)?;
    report.commit(output, &elected)?;
    Ok(elected)
}

fn collect(
    input: impl Read + Send + 'static,
    task: &Task,
    mut texts: Option<Texts>,
    progress: &Progress,
) -> Result<(Collection, Option<Texts>)> {
    let collector = Collector::new(task.settings.clone(), task.memory_of_rows(), &task.scratch);
    let mut collector = collector.reporting(progress.clone());
    Reading::start(input, task)?.each(|text| {
        if let (Some(row), Some(texts)) = (collector.add(text)?, &mut texts) {
            texts.add(&row, text.bytes)?;
        }
        Ok(())
    })?;
    Ok((collector.finish()?, texts))
}

fn commit(
    report: &mut Report<impl Write>,
    store: &Store,
    task: &Task,
    collection: Collection,
    texts: Option<Texts>,
) -> Result<Commit> {
    let (totals, unplaced) = (collection.totals, unplaced(store, task, &collection));
    report.status(&format!("writing a shard of {} rows", totals.counts.rows))?;
    let folder =
        temporary::folder_in(&task.scratch).map_err(|error| temporary_failed(&task.scratch, &error))?;
    let progress = store.progress();
    write_shard(&file_of(PartObject::Shard, folder.path()), task, collection, progress)?;
    let texts = match texts {
        Some(texts) => {
            report.status(&format!("writing the texts of {} rows", totals.counts.rows))?;
            texts.write(&file_of(PartObject::Texts, folder.path()), totals.row_digest, progress)?;
            Some(listed(PartObject::Texts, task, folder.path(), progress)?)
        }
        None => None,
    };
    let ListedFile { name: object, bytes, sha256 } =
        listed(PartObject::Shard, task, folder.path(), progress)?;
    let commit = Commit { object, bytes, sha256, texts, ..unplaced };
    let etag = put_objects(report, store, &commit, folder.path())?;
    match elect(store, Commit { etag, ..commit }, &task.scratch)? {
        Outcome::Won(commit) => Ok(commit),
        Outcome::Same(elected) => {
            report.notice(&format!("attempt {} was elected, with the same rows", elected.attempt))?;
            Ok(elected)
        }
    }
}

/// The file of an object before it is put.
fn file_of(kind: PartObject, folder: &Path) -> PathBuf {
    folder.join(format!("shard.{}", kind.extension()))
}

/// The object of this attempt for a complete file.
fn listed(kind: PartObject, task: &Task, folder: &Path, progress: &Progress) -> Result<ListedFile> {
    let file = file_of(kind, folder);
    let failed = |error| temporary_failed(&file, &error);
    let bytes = fs::metadata(&file).map_err(failed)?.len();
    let sha256 = sha256::of_file_reporting(&file, progress).map_err(failed)?;
    Ok(ListedFile { name: kind.key(task.partition, &task.host, &task.attempt), bytes, sha256 })
}

/// Puts all objects of this record. Returns the store's name for this version of the shard.
fn put_objects(
    report: &mut Report<impl Write>,
    store: &Store,
    commit: &Commit,
    folder: &Path,
) -> Result<Option<String>> {
    let mut etag = None;
    for (kind, object) in commit.objects() {
        report.status(&format!("storing {} bytes in the run", object.bytes))?;
        let version = put_object(store, &object, &file_of(kind, folder))?;
        if kind == PartObject::Shard {
            etag = version;
        }
    }
    Ok(etag)
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
    let verified = written.keep_dictionary(task.memory_of_rows() as u64).and_then(|()| {
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

/// The commit record of this attempt, without its objects.
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
        texts: task.texts.then(ListedFile::default),
    }
}
