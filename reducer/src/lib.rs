//! Converts records into a shard and commits it to the store exactly once.
//!
//! Records are sorted by text. Each text becomes a row. The rows of one partition become one HDF5 file with
//! its own dictionary, and their texts a Parquet file, if asked for. The files are written, read back completely,
//! put into the store and committed. A reducer is independent of other partitions and needs no vocabulary.

pub mod arguments;
mod commit;
mod reading;
mod report;
pub mod task;
mod texts;

use std::fs;
use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use corpus::clean::Rules;
use corpus::settings::Settings;
use dataset::collect::{Collection, Collector};
use dataset::commit::{Commit, ListedFile, PartObject, Rest};
use dataset::shard::ShardReader;
use durable::sha256;
use program::exit::{Exit, Failed};
use program::hadoop::Runner;
use program::progress::Progress;
use program::temporary;
use store::Store;

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
    let collected = collect(input, task, texts, store.progress())?;
    let totals = collected.rows.totals;
    // With several partitions or under Hadoop, a partition may be empty.
    if totals.counts.reviews == 0 && task.partitions == 1 && task.runner == Runner::User {
        let why = "found no record, expected at least one; check that the program that writes them succeeded";
        return Err(Failed::new(Exit::BadInput, why));
    }
    let elected = match before {
        Some(before) => {
            agree(store, &unplaced(store, task, &collected), &before, &task.scratch)?;
            report
                .notice(&format!("partition {} was already committed, with the same rows", task.partition))?;
            before
        }
        None => commit(&mut report, store, task, collected)?,
    };
    report.counters(&totals.counts)?;
    report.commit(output, &elected)?;
    Ok(elected)
}

/// What a reducer makes of its texts.
struct Collected {
    rows: Collection,
    /// The texts of the rows, if they are stored.
    texts: Option<Texts>,
    /// The texts that rows do not describe completely, if they are stored.
    rest: Option<Collection>,
}

fn collect(
    input: impl Read + Send + 'static,
    task: &Task,
    mut texts: Option<Texts>,
    progress: &Progress,
) -> Result<Collected> {
    let collector = |settings, memory_bytes| {
        Collector::new(settings, memory_bytes, &task.scratch).reporting(progress.clone())
    };
    let mut rows = collector(task.settings.clone(), task.memory_of_rows());
    let mut rest = task.keeps_words.then(|| collector(task.settings.of_rest(), task.memory_of_rest()));
    Reading::start(input, task)?.each(|text| {
        let added = rows.add(text)?;
        if let (Some(row), Some(texts)) = (added.row(), &mut texts) {
            texts.add(row, text.bytes)?;
        }
        if let Some(rest) = rest.as_mut().filter(|_| added.is_incomplete()) {
            rest.add(text)?;
        }
        Ok(())
    })?;
    Ok(Collected { rows: rows.finish()?, texts, rest: rest.map(Collector::finish).transpose()? })
}

fn commit(
    report: &mut Report<impl Write>,
    store: &Store,
    task: &Task,
    collected: Collected,
) -> Result<Commit> {
    let mut commit = unplaced(store, task, &collected);
    let (rows, row_digest) = (commit.counts.rows, commit.row_digest);
    report.status(&format!("writing a shard of {rows} rows"))?;
    let folder =
        temporary::folder_in(&task.scratch).map_err(|error| temporary_failed(&task.scratch, &error))?;
    let progress = store.progress();
    let memory_bytes = task.memory_of_rows();
    let file = |kind| file_of(kind, folder.path());
    let listed = |kind| listed(kind, task, folder.path(), progress);
    write_shard(&file(PartObject::Shard), (&task.settings, memory_bytes), collected.rows, progress)?;
    ListedFile { name: commit.object, bytes: commit.bytes, sha256: commit.sha256 } =
        listed(PartObject::Shard)?;
    if let Some(texts) = collected.texts {
        report.status(&format!("writing the texts of {rows} rows"))?;
        texts.write(&file(PartObject::Texts), row_digest, progress)?;
        commit.texts = Some(listed(PartObject::Texts)?);
    }
    if let (Some(record), Some(rest)) = (&mut commit.rest, collected.rest) {
        report.status(&format!("writing {} texts that rows do not describe", record.counts.distinct))?;
        write_shard(&file(PartObject::Rest), (&task.settings.of_rest(), memory_bytes), rest, progress)?;
        record.file = listed(PartObject::Rest)?;
    }
    commit.etag = put_objects(report, store, &commit, folder.path())?;
    match elect(store, commit, &task.scratch)? {
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

/// Writes a shard, closes it, and reads it back completely.
fn write_shard(
    path: &Path,
    (settings, memory_bytes): (&Settings, usize),
    collection: Collection,
    progress: &Progress,
) -> Result<()> {
    let (size, totals) = (collection.size(), collection.totals);
    collection.write_shard(path, settings, progress).map_err(dataset::Error::in_tmpdir)?;
    let mut written = ShardReader::open(path).map_err(|error| unverified(&error.to_string()))?;
    let same = written.size() == size
        && written.settings() == settings
        && written.digests().row_digest == totals.row_digest;
    if !same {
        return Err(unverified("other sizes, settings or digest"));
    }
    let verified = written.keep_dictionary(memory_bytes as u64).and_then(|()| {
        written.verify_blocks(dataset::threads(THREADS_MAX), || (), |(), _| progress.advance(1), |()| ())
    });
    verified.map_err(|error| match error {
        // The reducer does not change words, so the word is wrong in the records. The message does not contain it, because
        // logs must not contain review text.
        dataset::Error::Broken { rule: dataset::RULE_OF_WORDS, .. } => {
            let (or_a_digit, or_the_flag) = match settings.rules() {
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
fn unplaced(store: &Store, task: &Task, Collected { rows, rest, .. }: &Collected) -> Commit {
    let totals = rows.totals;
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
        distinct_words: rows.size().words,
        row_digest: totals.row_digest,
        settings: task.settings.clone(),
        texts: task.texts.then(ListedFile::default),
        rest: rest.as_ref().map(|rest| Rest {
            file: ListedFile::default(),
            counts: rest.totals.counts,
            kept_words: rest.totals.kept_words,
            distinct_words: rest.size().words,
            row_digest: rest.totals.row_digest,
        }),
    }
}
