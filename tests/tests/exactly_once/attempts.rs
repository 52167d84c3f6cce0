//! Runs attempts of a reducer and merges as function calls, and checks their results.

use std::fs;
use std::path::Path;

use corpus::ledger::MapperCounts;
use corpus::settings::Settings;
use dataset::commit::{COMMIT_PREFIX, Commit, DATA_PREFIX, RECORD_BYTES_MAX, commit_key};
use durable::sha256;
use making::{DatasetOptions, ProgressBars, VocabularyFrom};
use merge::gc;
use merge::{Options, Outcome, Sources};
use program::hadoop::Runner;
use reducer::task::{Others, Task};
use store::{Key, Store};

use crate::hadoop::Maps;
use crate::scratch;

/// Size of the vocabulary: less than the number of words in a corpus, so that the cut is tested too.
pub const VOCABULARY_SIZE: u64 = 150;
/// Sufficient for a small corpus, and small enough to be allocated thousands of times.
const MEMORY_BYTES: usize = 1 << 20;

/// Raw lines and their expected dataset.
pub struct Corpus {
    /// The lines.
    pub lines: Vec<u8>,
    dataset: Vec<u8>,
}

impl Corpus {
    /// Synthetic reviews, and their dataset from one mapper and one reducer without faults.
    pub fn of(n_lines: u64, seed: u64) -> Self {
        let mut lines = Vec::new();
        synthetic::write(n_lines, seed, &mut lines).unwrap();
        let folder = scratch();
        let store = Store::open(folder.path().join("run").to_str().unwrap()).unwrap();
        let maps = Maps::of(&lines, 1, 1);
        let input = maps.input(0, &mut synthetic::random::Random::new(0));
        reduce(&store, input, &task(0, 1, "only", folder.path())).unwrap();
        let out = folder.path().join("reviews.h5");
        merged(&store, &out, maps.counts, folder.path()).unwrap();
        Self { lines, dataset: fs::read(out).unwrap() }
    }

    /// Panics if the file is not this corpus's dataset, byte for byte.
    pub fn assert_is_dataset(&self, file: &Path) {
        assert!(fs::read(file).unwrap() == self.dataset, "{} is another dataset", file.display());
    }

    /// Panics unless the run has exactly one commit per partition. Each commit names an object that matches
    /// it, merge makes the dataset, and what `gc` removes is not needed.
    pub fn assert_whole(&self, store: &Store, partitions: u32, counts: MapperCounts, folder: &Path) {
        let commits = store.list(COMMIT_PREFIX).unwrap();
        let names: Vec<_> = commits.iter().map(|listed| listed.key.to_string()).collect();
        assert_eq!(names, (0..partitions).map(commit_key).collect::<Vec<_>>());
        for partition in 0..partitions {
            let commit = elected(store, partition).unwrap();
            assert!(commit.texts.is_some(), "the record of partition {partition} names no texts");
            for (_, object) in commit.objects() {
                let copy = store.local_copy(&Key::new(&object.name).unwrap(), folder).unwrap();
                assert_eq!(sha256::of_file(copy.path()).unwrap(), object.sha256, "{}", object.name);
            }
        }
        let out = folder.join("whole.h5");
        merged(store, &out, counts, folder).unwrap();
        self.assert_is_dataset(&out);
        let garbage = gc::find(store).unwrap();
        assert!(garbage.refusal.is_none(), "{:?}", garbage.refusal);
        garbage.orphans.iter().for_each(|orphan| store.delete(&orphan.key).unwrap());
        assert_eq!(store.list(DATA_PREFIX).unwrap().len(), 3 * partitions as usize);
        let again = merged(store, &out, counts, folder).unwrap();
        assert!(matches!(again, Outcome::Unchanged(_)), "{again:?}");
        let afresh = folder.join("afresh.h5");
        merged(store, &afresh, counts, folder).unwrap();
        self.assert_is_dataset(&afresh);
    }
}

/// The task of a reducer attempt.
pub fn task(partition: u32, partitions: u32, attempt: &str, scratch: &Path) -> Task {
    Task {
        partition,
        partitions,
        others: Others::Refuse,
        host: "host".to_owned(),
        attempt: attempt.to_owned(),
        job: None,
        runner: Runner::Hadoop,
        settings: Settings::default(),
        texts: true,
        keeps_words: true,
        memory_bytes: MEMORY_BYTES,
        scratch: scratch.to_owned(),
    }
}

/// Runs an attempt of a reducer. Returns the commit that it reports.
pub fn reduce(store: &Store, input: Vec<u8>, task: &Task) -> reducer::Result<Commit> {
    reducer::run(std::io::Cursor::new(input), std::io::sink(), std::io::sink(), store, task)
}

/// Merges the run.
pub fn merged(store: &Store, out: &Path, counts: MapperCounts, scratch: &Path) -> merge::Result<Outcome> {
    let options = Options {
        dataset: DatasetOptions {
            out: out.to_owned().into(),
            vocabulary: VocabularyFrom::Frequency(VOCABULARY_SIZE),
            without: None,
            padded: None,
            ids: false,
            texts: None,
            existing: making::Existing::Keep,
        },
        counted: merge::Counted { mapper: Some(counts), limits: corpus::ledger::Limits::NONE },
        threads: std::num::NonZeroUsize::MIN,
        ranges: None,
        keep: None,
        scratch: scratch.to_owned(),
    };
    let sources = Sources { runs: vec![store.clone()], datasets: Vec::new() };
    merge::run(&sources, &options, &ProgressBars::to_nobody())
}

/// The commit of a partition, if it has one.
pub fn elected(store: &Store, partition: u32) -> Option<Commit> {
    let record = store.get_small(&Key::new(&commit_key(partition)).unwrap(), RECORD_BYTES_MAX).unwrap()?;
    Some(serde_json::from_slice(&record).unwrap())
}
