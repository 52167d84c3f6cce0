//! Keeps the words of all texts of a dataset, so that more runs can be merged with it when its own runs no longer exist.
//!
//! They are a run of one partition. Its names depend only on its content, so merging again puts the same objects.

use std::path::Path;
use std::time::SystemTime;

use corpus::digest::Digest;
use corpus::record::Votes;
use corpus::settings::Settings;
use dataset::SCHEMA_VERSION;
use dataset::collect::{Collection, Collector};
use dataset::commit::{Commit, ListedFile, PartObject, RECORD_BYTES_MAX, Rest, commit_key};
use dataset::manifest::{Ledger, Seal, SealedShard, words_name};
use dataset::shard::ShardReader;
use durable::sha256;
use making::{at, manifest_of};
use program::exit::{Exit, Failed};
use program::location::Location;
use program::progress::Progress;
use program::temporary;
use store::{Key, ObjectContent, Put, Recorded, S3Options, Store};

use crate::commits::{complete, read_commits};
use crate::seal::seal_of;
use crate::verify::DICTIONARY_BYTES_MAX;
use crate::{Result, put_seal};

/// Memory for rows.
const MEMORY_BYTES: usize = 128 << 20;
/// Stands for the host in the names of shards. The attempt is a digest.
const HOST: &str = "merge";

/// Where the words of a dataset are kept.
pub fn store_beside(dataset: &Location, s3: &S3Options) -> Result<Store> {
    let folder = match dataset {
        Location::Local(path) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.with_file_name(words_name(&name)).to_string_lossy().into_owned()
        }
        Location::S3(url) => url.with_file_name(&words_name(url.file_name())).to_string(),
    };
    Ok(Store::open_with(&folder, s3)?)
}

/// A dataset whose words were kept.
#[derive(Clone, Debug)]
pub struct DatasetWords {
    /// The words, as a run of one partition.
    pub(crate) store: Store,
    /// The dataset, for messages.
    pub(crate) name: String,
    /// The shards of which the dataset was made.
    pub(crate) shards: Vec<SealedShard>,
}

/// The words that were kept for a dataset.
pub fn words_of(dataset: &Location, s3: &S3Options) -> Result<DatasetWords> {
    let store = store_beside(dataset, s3)?;
    let refused = |found: String| {
        let why = format!(
            "{dataset}: {found}, expected a dataset and its words, as merge --keep-words writes them; merge its runs again \
             with --keep-words, or pass them with --run"
        );
        Err(Failed::new(Exit::MissingInput, why))
    };
    let Some(manifest) = manifest_of(dataset, s3)? else { return refused("it has no manifest".to_owned()) };
    match kept(&store)? {
        None => refused(format!("its words were not kept in {}", store.url())),
        Some(commit) if commit.row_digest != manifest.seal.row_digest => {
            refused(format!("{} has the words of another dataset", store.url()))
        }
        Some(_) => Ok(DatasetWords { store, name: dataset.to_string(), shards: manifest.seal.shards }),
    }
}

/// The texts of a dataset.
pub(crate) struct Kept {
    settings: Settings,
    rows: Collector,
    rest: Collector,
}

impl Kept {
    pub(crate) fn new(settings: &Settings, scratch: &Path) -> Self {
        let of_rest = settings.of_rest();
        Self {
            rows: Collector::new(settings.clone(), MEMORY_BYTES / 4 * 3, scratch),
            rest: Collector::new(of_rest, MEMORY_BYTES / 4, scratch),
            settings: settings.clone(),
        }
    }

    /// Adds a text with all its votes.
    pub(crate) fn add(&mut self, text: &[u8], hash: u64, votes: Votes) -> Result<()> {
        if self.rows.add_text(text, hash, votes)?.is_incomplete() {
            self.rest.add_text(text, hash, votes)?;
        }
        Ok(())
    }

    /// Puts the texts into a run of their own.
    pub(crate) fn put(self, store: &Store, ledger: &Ledger, scratch: &Path) -> Result<()> {
        let Self { settings, rows, rest } = self;
        let (rows, rest) = (rows.finish()?, rest.finish()?);
        let mut attempt = rows.totals.row_digest;
        attempt += rest.totals.row_digest;
        let attempt = attempt.to_string();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let (totals, of_rest) = (rows.totals, rest.totals);
        let (distinct_words, words_of_rest) = (rows.size().words, rest.size().words);
        let put = |kind: PartObject, collection, settings: &Settings| {
            put_shard(store, kind.key(0, HOST, &attempt), (collection, settings), scratch)
        };
        let ListedFile { name: object, bytes, sha256 } = put(PartObject::Shard, rows, &settings)?;
        let file = put(PartObject::Rest, rest, &settings.of_rest())?;
        let mut commit = Commit {
            schema_version: SCHEMA_VERSION,
            run: store.url(),
            partition: 0,
            partitions: 1,
            object,
            bytes,
            sha256,
            etag: None,
            host: HOST.to_owned(),
            attempt,
            job: None,
            committed_unix_s: now.map_or(0, |since| since.as_secs()),
            counts: ledger.reducer,
            kept_words: totals.kept_words,
            distinct_words,
            row_digest: totals.row_digest,
            settings,
            texts: None,
            rest: Some(Rest {
                file,
                counts: of_rest.counts,
                kept_words: of_rest.kept_words,
                distinct_words: words_of_rest,
                row_digest: of_rest.row_digest,
            }),
        };
        let json = serde_json::to_vec_pretty(&commit).expect("a record of plain values is JSON");
        if let Recorded::Other(_) = store.put_record(&Key::new(&commit_key(0))?, &json, RECORD_BYTES_MAX)? {
            let there = kept(store)?.filter(|there| there.object == commit.object);
            commit = there.ok_or_else(|| other_words(store))?;
        }
        put_seal(store, &seal_of(&[commit], ledger.mapper))
    }
}

/// Whether a store has the words of a dataset that was made of the runs of this manifest.
pub(crate) fn has_words_of(store: &Store, seal: &Seal) -> Result<bool> {
    Ok(kept(store)?.is_some_and(|commit| commit.row_digest == seal.row_digest))
}

/// Refuses a place that has the words of another dataset.
pub(crate) fn check_place(store: &Store, row_digest: Digest) -> Result<()> {
    match kept(store)? {
        Some(there) if there.row_digest != row_digest => Err(other_words(store)),
        _ => Ok(()),
    }
}

fn other_words(store: &Store) -> Failed {
    let why = format!(
        "{}: has the words of another dataset, expected those of this one or nothing; delete it, or choose another --out",
        store.url()
    );
    Failed::new(Exit::Usage, why)
}

/// The record of the words that were kept.
pub(crate) fn kept(store: &Store) -> Result<Option<Commit>> {
    let commits = read_commits(store)?;
    if commits.is_empty() {
        return Ok(None);
    }
    Ok(complete(store, commits)?.pop())
}

/// Writes a shard, reads it back and puts it.
fn put_shard(
    store: &Store,
    name: String,
    (collection, settings): (Collection, &Settings),
    scratch: &Path,
) -> Result<ListedFile> {
    let folder = at(scratch, "create a temporary folder", temporary::folder_in(scratch))?;
    let path = folder.path().join("shard.h5");
    collection.write_shard(&path, settings, &Progress::default()).map_err(dataset::Error::in_tmpdir)?;
    let mut shard = ShardReader::open(&path)?;
    shard.keep_dictionary(DICTIONARY_BYTES_MAX)?;
    shard.verify_blocks(dataset::threads(making::THREADS_MAX), || (), |(), _| (), |()| ())?;
    let sha256::Summary { bytes, sha256 } =
        at(&path, "read it back", sha256::summary(&path, store.progress()))?;
    let key = Key::new(&name)?;
    if store.put_if_absent(&key, ObjectContent::File(&path))? == Put::AlreadyThere {
        let there = store.local_copy(&key, scratch)?;
        if at(there.path(), "read the existing file", sha256::of_file(there.path()))? != sha256 {
            let why =
                format!("{}/{key}: exists with other content, expected these words; delete it", store.url());
            return Err(Failed::new(Exit::MissingInput, why));
        }
    }
    Ok(ListedFile { name, bytes, sha256 })
}
