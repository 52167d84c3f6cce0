//! The commit: elects exactly one attempt of a partition.
//!
//! The shard and the objects beside it are put under names that contain the attempt. Then one put-if-absent of the partition's commit
//! record elects it. A later attempt compares its result with that of the elected attempt. If rows and
//! settings are equal, it succeeds. If they differ, it fails.

use std::io;
use std::path::Path;

use dataset::commit::{Commit, ListedFile, RECORD_BYTES_MAX, commit_key};
use durable::sha256;
use program::exit::{Exit, Failed};
use program::system::Failure;
use store::{Key, ObjectContent, Put, Recorded, Store};

use crate::Result;

/// Result of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This attempt was elected.
    Won(Commit),
    /// Another attempt was elected, and its shard has the same rows.
    Same(Commit),
}

/// The commit record of a partition that is already committed.
pub fn earlier(store: &Store, partition: u32) -> Result<Option<Commit>> {
    let key = Key::new(&commit_key(partition))?;
    let record = store.get_small(&key, RECORD_BYTES_MAX)?;
    record.map(|record| parsed(store, &key, &record)).transpose()
}

fn parsed(store: &Store, key: &Key, record: &[u8]) -> Result<Commit> {
    serde_json::from_slice(record).map_err(|found| {
        let expected = format!("expected one of schema version {}", dataset::SCHEMA_VERSION);
        let remedy =
            "it was damaged or written by another version of the programs: start again with a new --run";
        let object = format!("{}/{key}", store.url());
        let why = format!("{object} is not a commit record ({found}), {expected}; {remedy}");
        Failed::new(Exit::Internal, why)
    })
}

/// Puts a file as this object, unless an earlier try of this attempt has done so. Returns the store's name for
/// this version of the object.
pub fn put_object(store: &Store, object: &ListedFile, file: &Path) -> Result<Option<String>> {
    let key = Key::new(&object.name)?;
    match store.put_if_absent(&key, ObjectContent::File(file))? {
        Put::Stored(info) => Ok(info.etag),
        Put::AlreadyThere => {
            let there = store.local_copy(&key, file.parent().unwrap_or(Path::new(".")))?;
            let info = store.head(&key)?;
            let sha256 = sha256::of_file_reporting(there.path(), store.progress());
            let sha256 = sha256.map_err(|error| temporary_failed(there.path(), &error))?;
            if there.bytes() == object.bytes && sha256 == object.sha256 {
                Ok(info.and_then(|info| info.etag))
            } else {
                let found = "exists with other content, expected the object of this attempt";
                let why = format!("{}/{key}: {found}; pass another --attempt", store.url());
                Err(Failed::new(Exit::Internal, why))
            }
        }
    }
}

/// Elects this attempt, or returns the attempt elected before. The record is read back, because a record that
/// the store has damaged elects no attempt.
pub fn elect(store: &Store, commit: Commit, scratch: &Path) -> Result<Outcome> {
    let key = Key::new(&commit_key(commit.partition))?;
    let mut record = serde_json::to_vec_pretty(&commit).expect("a record of plain values is JSON");
    record.push(b'\n');
    match store.put_record(&key, &record, RECORD_BYTES_MAX)? {
        Recorded::AsGiven => Ok(Outcome::Won(commit)),
        Recorded::Other(there) => {
            let elected = parsed(store, &key, &there)?;
            agree(store, &commit, &elected, scratch)?;
            // If this attempt was started twice, the first process may have exited after the commit and
            // before its report.
            let is_own = elected.object == commit.object;
            Ok(if is_own { Outcome::Won(elected) } else { Outcome::Same(elected) })
        }
    }
}

/// Checks that a committed partition matches this attempt's result and that its record is valid. All fields
/// except job, time and etag are compared with this attempt or with the object that the record names.
pub fn agree(store: &Store, ours: &Commit, elected: &Commit, scratch: &Path) -> Result<()> {
    match difference(ours, elected) {
        None => check_objects(store, ours, elected, scratch),
        Some((what, ours, theirs)) => {
            // A flag decides which objects there are.
            let exit = if what == OBJECTS { Exit::Settings } else { Exit::Internal };
            let Commit { partition, attempt, .. } = elected;
            let why = format!(
                "partition {partition} was committed by attempt {attempt} with {what} {theirs}, this attempt has {ours}; \
                 nothing was changed; for other data or settings, pass a new run: --run NEW"
            );
            Err(Failed::new(exit, why))
        }
    }
}

/// The kinds of objects, among the fields in which attempts must agree.
const OBJECTS: &str = "the objects";

/// The first field in which attempts of one partition must agree and differ, with both values.
fn difference(ours: &Commit, theirs: &Commit) -> Option<(&'static str, String, String)> {
    if let Some(difference) = ours.settings.difference(&theirs.settings) {
        return Some((difference.setting, difference.ours, difference.theirs));
    }
    let pairs = [
        (OBJECTS, ours.kinds(), theirs.kinds()),
        ("the schema version", ours.schema_version.to_string(), theirs.schema_version.to_string()),
        ("the partition", ours.partition.to_string(), theirs.partition.to_string()),
        ("the number of partitions", ours.partitions.to_string(), theirs.partitions.to_string()),
        ("the row digest", ours.row_digest.to_string(), theirs.row_digest.to_string()),
        ("the counts", ours.counts.to_string(), theirs.counts.to_string()),
        ("kept words", ours.kept_words.to_string(), theirs.kept_words.to_string()),
        ("distinct words", ours.distinct_words.to_string(), theirs.distinct_words.to_string()),
        ("the digest of kept words", of_rest(ours), of_rest(theirs)),
        ("the run", ours.run.clone(), theirs.run.clone()),
    ];
    pairs.into_iter().find(|(_, ours, theirs)| ours != theirs)
}

/// The digest of what `--keep-words` kept, for messages.
fn of_rest(commit: &Commit) -> String {
    commit.rest.as_ref().map_or_else(String::new, |rest| rest.row_digest.to_string())
}

/// Checks that a record names existing objects of its host and attempt, which match the record. Attempts with
/// equal rows usually have equal bytes. If this attempt has no such object, or one with other bytes, the object
/// is read.
fn check_objects(store: &Store, ours: &Commit, elected: &Commit, scratch: &Path) -> Result<()> {
    let damaged = |found: String| {
        let object = format!("{}/{}", store.url(), commit_key(elected.partition));
        let remedy = "the record or the object that it names was damaged: start again with a new --run";
        Err(Failed::new(Exit::Internal, format!("{object} {found}; {remedy}")))
    };
    // Both have the same kinds of objects.
    for ((_, ours), (kind, object)) in ours.objects().into_iter().zip(elected.objects()) {
        let name = kind.key(elected.partition, &elected.host, &elected.attempt);
        let key = match Key::new(&object.name) {
            Ok(key) if object.name == name => key,
            _ => return damaged("names no object of its host and attempt".to_owned()),
        };
        let Some(there) = store.head(&key)? else {
            return damaged(format!("names {key}, which does not exist"));
        };
        if there.bytes != object.bytes {
            return damaged(format!("records {} bytes for {key}, found {}", object.bytes, there.bytes));
        }
        if object.sha256 == ours.sha256 {
            continue;
        }
        let copy = store.local_copy(&key, scratch)?;
        let found = sha256::of_file_reporting(copy.path(), store.progress());
        let found = found.map_err(|error| temporary_failed(copy.path(), &error))?;
        if found != object.sha256 {
            return damaged(format!("records another SHA-256 for {key} than the one found, {found}"));
        }
    }
    Ok(())
}

/// The error of a temporary file that could not be written or read.
pub(crate) fn temporary_failed(path: &Path, error: &io::Error) -> Failed {
    let remedy = "set TMPDIR to a folder on another disk";
    let why = Failure::writing("write a temporary file", error, remedy);
    Failed::new(Exit::Io, format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use corpus::digest::Digest;
    use corpus::settings::Settings;
    use dataset::commit::PartObject;

    use super::*;

    fn run() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("run").to_str().unwrap()).unwrap();
        (folder, store)
    }

    /// The record of an attempt whose shard has this content, which is stored.
    fn stored(folder: &Path, store: &Store, attempt: &str, content: &[u8]) -> Commit {
        let shard = folder.join(attempt);
        fs::write(&shard, content).unwrap();
        let object = listed(&PartObject::Shard.key(3, "host", attempt), content);
        let etag = put_object(store, &object, &shard).unwrap();
        let ListedFile { name: object, bytes, sha256 } = object;
        Commit {
            schema_version: 1,
            run: store.url(),
            partition: 3,
            partitions: 8,
            object,
            bytes,
            sha256,
            etag,
            host: "host".to_owned(),
            attempt: attempt.to_owned(),
            job: None,
            committed_unix_s: 1,
            counts: Default::default(),
            kept_words: 0,
            distinct_words: 0,
            row_digest: Digest::default(),
            settings: Settings::default(),
            texts: None,
            rest: None,
        }
    }

    fn listed(name: &str, content: &[u8]) -> ListedFile {
        ListedFile { name: name.to_owned(), bytes: content.len() as u64, sha256: sha256::of_bytes(content) }
    }

    /// The same record with texts of this content, which are stored.
    fn with_texts(folder: &Path, store: &Store, commit: Commit, content: &[u8]) -> Commit {
        let file = folder.join("texts");
        fs::write(&file, content).unwrap();
        let texts = listed(&PartObject::Texts.key(3, "host", &commit.attempt), content);
        put_object(store, &texts, &file).unwrap();
        Commit { texts: Some(texts), ..commit }
    }

    #[test]
    fn the_first_attempt_is_elected_and_others_with_its_rows_agree() {
        let (folder, store) = run();
        assert_eq!(earlier(&store, 3).unwrap(), None);
        let first = stored(folder.path(), &store, "first", b"rows");
        let second = stored(folder.path(), &store, "second", b"rows");
        let elect = |commit: &Commit| elect(&store, commit.clone(), folder.path()).unwrap();
        assert_eq!(elect(&first), Outcome::Won(first.clone()));
        assert_eq!(earlier(&store, 3).unwrap(), Some(first.clone()));
        assert_eq!(elect(&second), Outcome::Same(first.clone()));
        // Its first process may have exited before its report.
        let again = Commit { committed_unix_s: 2, ..first.clone() };
        assert_eq!(elect(&again), Outcome::Won(first));
    }

    #[test]
    fn a_record_that_names_the_object_of_another_attempt_is_damaged() {
        let (folder, store) = run();
        let [first, second] = ["first", "second"].map(|name| stored(folder.path(), &store, name, b"rows"));
        assert!(agree(&store, &first, &second, folder.path()).is_ok());
        let crossed = Commit { object: first.object.clone(), ..second };
        let error = agree(&store, &first, &crossed, folder.path()).unwrap_err();
        assert!(error.message.contains(" names no object of its host and attempt; "), "{error}");
    }

    #[test]
    fn a_shard_of_another_content_does_not_pass_for_an_earlier_try() {
        let (folder, store) = run();
        let first = stored(folder.path(), &store, "first", b"rows");
        assert_eq!(stored(folder.path(), &store, "first", b"rows"), first);
        for other in [&b"cows"[..], b"rows and more"] {
            let shard = folder.path().join("first");
            fs::write(&shard, other).unwrap();
            let error = put_object(&store, &listed(&first.object, other), &shard).unwrap_err();
            assert!(error.message.contains(": exists with other content, "), "{error}");
        }
    }

    #[test]
    fn all_objects_of_the_elected_attempt_are_checked() {
        let (folder, store) = run();
        let [first, second] = ["first", "second"].map(|name| {
            with_texts(folder.path(), &store, stored(folder.path(), &store, name, b"rows"), b"texts")
        });
        let without = Commit { texts: None, ..second.clone() };
        let agree = |ours: &Commit, elected: &Commit| agree(&store, ours, elected, folder.path());
        assert!(agree(&second, &first).is_ok());
        // A task that starts again has no texts yet.
        assert!(agree(&Commit { texts: Some(ListedFile::default()), ..second.clone() }, &first).is_ok());

        for (ours, elected, expected) in [
            (
                &second,
                &Commit { texts: None, ..first.clone() },
                "with the objects shard, this attempt has shard + texts",
            ),
            (&without, &first, "with the objects shard + texts, this attempt has shard"),
        ] {
            let error = agree(ours, elected).unwrap_err();
            assert!(error.exit == Exit::Settings && error.message.contains(expected), "{error}");
            assert!(error.message.contains("pass a new run: --run NEW"), "{error}");
        }
        let crossed = Commit { texts: first.texts.clone(), ..second.clone() };
        let error = agree(&first, &crossed).unwrap_err();
        assert!(error.message.contains(" names no object of its host and attempt; "), "{error}");
        let path = folder.path().join("run").join(&first.texts.as_ref().unwrap().name);
        for (content, expected) in [
            (&b"taxes"[..], "records another SHA-256 for data/part-00003.host.first.texts.parquet"),
            (b"text", "records 5 bytes for data/part-00003.host.first.texts.parquet, found 4"),
        ] {
            fs::write(&path, content).unwrap();
            let other = Commit { texts: Some(ListedFile::default()), ..second.clone() };
            let error = agree(&other, &first).unwrap_err();
            assert!(error.message.contains(expected), "{error}");
        }
        fs::remove_file(&path).unwrap();
        let error = agree(&second, &first).unwrap_err();
        assert!(error.message.contains("texts.parquet, which does not exist; "), "{error}");
    }
}
