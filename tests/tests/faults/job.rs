//! A small job, its expected files, and a folder for one more run of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use dataset::commit::Commit;
use tempfile::TempDir;
use tests::lines::sorted_as_c;
use tests::pipe::{self, mapped, split_by_hadoop};
use tests::programs::{program, run};

pub const PARTITIONS: u32 = 2;

/// The files that merge names in the folder of the dataset.
pub const MERGED: [&str; 3] = ["reviews.h5", "reviews.manifest.json", "reviews.padded.h5"];

/// The input of a job and its expected results.
pub struct Job {
    /// Lines of reviews.
    raw: Vec<u8>,
    /// The mapper's ledger, as JSON.
    counts: Vec<u8>,
    /// The sorted records of each partition.
    pub records: Vec<Vec<u8>>,
    /// The bytes of each partition's shard, followed by those of its texts.
    pub objects: Vec<Vec<u8>>,
    pub dataset: Vec<u8>,
    pub padded: Vec<u8>,
}

/// A job whose files have minimum size.
pub static JOB: LazyLock<Job> = LazyLock::new(|| Job::of(600));

/// A job whose reducers spill, because their memory is smaller than their rows.
pub static SPILLING: LazyLock<Job> = LazyLock::new(|| Job::of(20_000));

impl Job {
    fn of(lines: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut raw = Vec::new();
        synthetic::write(lines, 1, &mut raw).unwrap();
        let counts = folder.path().join("mapper.json");
        let records = mapped(&raw, &counts);
        let records = split_by_hadoop(&sorted_as_c(&records), PARTITIONS);
        let mut job = Self {
            raw,
            counts: fs::read(counts).unwrap(),
            records,
            objects: Vec::new(),
            dataset: Vec::new(),
            padded: Vec::new(),
        };
        let room = Room::new();
        room.reduce_all(&job);
        job.objects = room.objects().into_values().collect();
        run(&mut room.merge(&job), b"").succeeded();
        job.dataset = fs::read(room.out("reviews.h5")).unwrap();
        job.padded = fs::read(room.out("reviews.padded.h5")).unwrap();
        job
    }
}

/// A folder with a run, an output folder and a folder for temporary files.
pub struct Room {
    folder: TempDir,
}

impl Room {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { folder }
    }

    /// All files that the programs may touch are below this folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn run(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    pub fn scratch(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// A file that merge writes.
    pub fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join("out").join(name)
    }

    /// An attempt of a partition.
    pub fn reducer(&self, partition: u32, attempt: &str) -> Command {
        let mut reducer = pipe::reducer(&self.run(), partition, PARTITIONS);
        reducer.args(["--texts", "--memory", "1MiB", "--attempt", attempt]).env("TMPDIR", self.scratch());
        reducer
    }

    pub fn reduce_all(&self, job: &Job) {
        for (partition, records) in (0..).zip(&job.records) {
            run(&mut self.reducer(partition, "only"), records).succeeded();
        }
    }

    /// Merge with all its outputs.
    pub fn merge(&self, job: &Job) -> Command {
        self.merge_to(job, &self.out("reviews.h5"))
    }

    pub fn merge_to(&self, job: &Job, dataset: &Path) -> Command {
        let counts = self.folder.path().join("mapper.json");
        // Another merge may be reading the file.
        if !counts.exists() {
            fs::write(&counts, &job.counts).unwrap();
        }
        let mut merge = pipe::merge(&self.run(), dataset);
        merge.args(["--padded", "20", "--counts"]).arg(counts);
        merge.env("TMPDIR", self.scratch());
        merge
    }

    /// Divides the merge into tasks. Returns the list.
    pub fn plan(&self, job: &Job) -> Vec<u8> {
        let counts = self.folder.path().join("mapper.json");
        fs::write(&counts, &job.counts).unwrap();
        let mut plan = program("merge");
        plan.args(["plan", "--tasks", "2", "--counts"]).arg(counts).arg("--run").arg(self.run());
        run(&mut plan, b"").succeeded();
        fs::read(self.run().join("merge/merge/tasks.txt")).unwrap()
    }

    /// Runs tasks on one thread, so that its steps are always the same.
    pub fn work(&self) -> Command {
        let mut work = program("merge");
        work.args(["work", "--threads", "1", "--run"]).arg(self.run()).env("TMPDIR", self.scratch());
        work
    }

    /// Merge with all its outputs, from the results of tasks.
    pub fn assemble(&self) -> Command {
        let mut assemble = program("merge");
        assemble.args(["assemble", "--padded", "20", "--out"]).arg(self.out("reviews.h5"));
        assemble.arg("--run").arg(self.run()).env("TMPDIR", self.scratch());
        assemble
    }

    /// The whole job with `sentimill` and all outputs. It uses one thread, so that its steps are always the
    /// same.
    pub fn sentimill(&self, job: &Job) -> Command {
        let raw = self.folder.path().join("reviews.json");
        fs::write(&raw, &job.raw).unwrap();
        let mut sentimill = program("sentimill");
        sentimill.arg("--input").arg(raw).arg("--out").arg(self.out("reviews.h5"));
        sentimill
            .args(["--padded", "20", "--memory", "1MiB", "--threads", "1"])
            .env("TMPDIR", self.scratch());
        sentimill
    }

    pub fn collect_garbage(&self) -> Command {
        let mut gc = program("merge");
        gc.args(["gc", "--delete", "--run"]).arg(self.run());
        gc
    }

    /// Deletes all results of merge.
    pub fn unmerge(&self) {
        for gone in [self.path().join("out"), self.scratch()] {
            if gone.exists() {
                fs::remove_dir_all(gone).unwrap();
            }
        }
        fs::create_dir(self.scratch()).unwrap();
        let _ = fs::remove_file(self.run().join("manifest.json"));
    }

    /// The shards and texts in the store, by name. Hidden files are excluded.
    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        visible(&self.run().join("data"))
    }

    /// The commit records in the store, by name.
    pub fn commits(&self) -> BTreeMap<String, Commit> {
        let records = visible(&self.run().join("commit"));
        let parsed = records.into_iter().map(|(name, json)| (name, serde_json::from_slice(&json).unwrap()));
        parsed.collect()
    }

    /// Every file below, including hidden ones, that still has a temporary name.
    pub fn unfinished(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if is_hidden(&path) || (path.is_file() && path.starts_with(self.scratch())) {
                    found.push(path);
                } else if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        found
    }

    /// Checks that no killed program's files remain.
    #[track_caller]
    pub fn assert_no_leftovers(&self, how: &str) {
        assert_eq!(self.unfinished(), Vec::<PathBuf>::new(), "{how}: left behind");
    }

    /// Checks that every named file of the run is complete.
    #[track_caller]
    pub fn assert_nothing_half_written(&self, job: &Job, how: &str) {
        for (name, bytes) in self.objects() {
            let partition: usize = name["part-".len()..][..5].parse().unwrap();
            let expected = &job.objects[2 * partition + usize::from(name.ends_with(".parquet"))];
            assert!(bytes == *expected, "{how}: {name} is not the object, or not all of it");
        }
        for (name, commit) in self.commits() {
            for (_, object) in commit.objects() {
                assert!(self.run().join(&object.name).is_file(), "{how}: {name} names {}", object.name);
            }
        }
    }

    /// Checks that every file next to the dataset is one of these, and complete.
    #[track_caller]
    pub fn assert_whole(&self, files: &BTreeMap<String, Vec<u8>>, how: &str) {
        for (name, bytes) in visible(&self.path().join("out")) {
            assert!(files.get(&name) == Some(&bytes), "{how}: {name} is not whole");
        }
    }

    #[track_caller]
    pub fn assert_dataset(&self, job: &Job, how: &str) {
        for (name, expected) in [("reviews.h5", &job.dataset), ("reviews.padded.h5", &job.padded)] {
            assert_same(&self.out(name), expected, how);
        }
    }
}

/// Asserts equality without printing the difference.
#[track_caller]
pub fn assert_same(path: &Path, expected: &[u8], how: &str) {
    let found = fs::read(path).unwrap_or_else(|error| panic!("{how}: {}: {error}", path.display()));
    assert!(found == expected, "{how}: {} has other bytes than in a run where all went well", path.display());
}

pub fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// The files of a folder that are not hidden, by name. Empty if the folder does not exist.
pub fn visible(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeMap::new() };
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| !is_hidden(path));
    let named =
        |path: PathBuf| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap());
    paths.map(named).collect()
}
