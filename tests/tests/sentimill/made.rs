//! Makes a dataset and all files that belong to it in two ways: with the pipe, and with the program under
//! test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::demo::DEMO;
use tests::files::snapshot;
use tests::pipe::{Pipe, merge};
use tests::programs::{Finished, program, run};

/// A dataset, and all that belongs to it.
pub struct Made {
    pub dataset: Vec<u8>,
    padded: Option<Vec<u8>>,
    /// The Parquet files and their description, by extension.
    pub tables: Vec<(&'static str, Vec<u8>)>,
    /// Without the members about a run and its shards.
    manifest: Value,
    /// The ledger and the card, as printed.
    card: String,
}

/// The result of the pipe for the demo corpus.
pub static BY_PIPE: LazyLock<Made> = LazyLock::new(|| Flags::default().by_pipe(&DEMO.raw));

impl Made {
    /// Reads the files next to this dataset. `card` is the output of the program. How the input was read is not compared: the
    /// reducer does not know it, and the pipe reads no tables.
    fn read(dataset: &Path, card: &str) -> Self {
        let manifest = fs::read(dataset.with_extension("manifest.json")).unwrap();
        let mut manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let seal = &mut manifest["seal"];
        (seal["run"], seal["shards"]) = (Value::Null, json!([]));
        let ledger = seal["ledger"].as_object_mut().unwrap();
        ["tables", "input"].iter().for_each(|name| drop(ledger.remove(*name)));
        ledger["mapper"].as_object_mut().unwrap().remove("table_lines");
        let card: Vec<_> = card.lines().filter(|line| !line.ends_with("(table_lines)")).collect();
        let card = card.join("\n");
        let padded = fs::read(dataset.with_extension("padded.h5")).ok();
        let read = |extension| Some((extension, fs::read(dataset.with_extension(extension)).ok()?));
        let tables =
            ["ids.parquet", "texts.parquet", "croissant.json"].into_iter().filter_map(read).collect();
        Self { dataset: fs::read(dataset).unwrap(), padded, tables, manifest, card }
    }

    /// Asserts equality without printing megabytes.
    #[track_caller]
    pub fn assert_same(&self, expected: &Self, how: &str) {
        assert_eq!(self.card, expected.card, "{how}");
        assert_eq!(self.manifest, expected.manifest, "{how}");
        assert!(self.dataset == expected.dataset, "{how}: another dataset");
        assert!(self.padded == expected.padded, "{how}: another padded copy");
        let names = |made: &Self| made.tables.iter().map(|(extension, _)| *extension).collect::<Vec<_>>();
        assert_eq!(names(self), names(expected), "{how}");
        assert!(self.tables == expected.tables, "{how}: other Parquet files or another description");
    }
}

/// Arguments other than those that name files.
#[derive(Clone, Copy, Default)]
pub struct Flags<'a> {
    pub lines: &'a [&'a str],
    pub rows: &'a [&'a str],
    pub dataset: &'a [&'a str],
}

/// Threads and memory of the program, which must not affect the result.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub threads: usize,
    pub memory: &'static str,
}

impl Manner {
    /// One thread, and memory for everything.
    pub const ALONE: Self = Self { threads: 1, memory: "512MiB" };
    /// So little memory that all reviews and rows are spilled, and partitions are folded in several passes.
    pub const SPARING: Self = Self { threads: 3, memory: "1MiB" };
}

impl Flags<'_> {
    /// The result of the pipe for these lines.
    pub fn by_pipe(&self, raw: &[u8]) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let owned = |arguments: &[&str]| arguments.iter().map(|&argument| argument.to_owned()).collect();
        // Merge checks the share of bad lines again, with its own flag.
        let accepted: &[&str] =
            if self.lines.contains(&"--bad-lines-max") { &["--bad-lines-max", "1"] } else { &[] };
        let pipe = Pipe {
            partitions: 2,
            mapper: owned(self.lines),
            reducer: owned(self.rows),
            merge: owned(&[self.dataset, accepted].concat()),
            ..Pipe::default()
        };
        let dataset = pipe.dataset(raw, folder.path());
        // The second merge prints the same except for one line.
        let again =
            run(merge(&folder.path().join("run"), &dataset).args(self.dataset), b"").succeeded().said();
        Made::read(&dataset, again.split_once('\n').unwrap().1)
    }

    /// The result of the program for these lines on standard input.
    #[track_caller]
    pub fn by_mill(&self, manner: Manner, raw: &[u8]) -> Made {
        let room = Room::new();
        let made = run(&mut room.sentimill(manner, self, &["-"]), raw).succeeded();
        room.made(&made)
    }

    /// Checks that the program's result equals that of the pipe.
    #[track_caller]
    pub fn check(&self, manners: &[Manner], raw: &[u8], how: &str) {
        let expected = self.by_pipe(raw);
        for &manner in manners {
            self.by_mill(manner, raw).assert_same(&expected, &format!("{how}, {manner:?}"));
        }
    }
}

/// A folder for the program: its dataset is `out/reviews.h5`, its temporary files are in `tmp`.
pub struct Room(TempDir);

impl Room {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Self(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// The program, ready to run in the folder.
    pub fn sentimill(&self, manner: Manner, flags: &Flags<'_>, inputs: &[&str]) -> Command {
        let mut sentimill = program("sentimill");
        sentimill.current_dir(self.0.path()).env("TMPDIR", self.path("tmp"));
        sentimill.args(["--out", "out/reviews.h5", "--memory", manner.memory]);
        sentimill.args(["--threads", &manner.threads.to_string()]);
        sentimill.args(flags.lines).args(flags.rows).args(flags.dataset).arg("--input").args(inputs);
        sentimill
    }

    /// The result of the program in this folder.
    pub fn made(&self, finished: &Finished) -> Made {
        Made::read(&self.path("out/reviews.h5"), &finished.said())
    }

    /// The names of all files in the folder, including hidden ones.
    pub fn files(&self) -> Vec<String> {
        let name = |path: PathBuf| path.strip_prefix(self.0.path()).unwrap().to_str().unwrap().to_owned();
        snapshot(self.0.path()).into_keys().map(name).collect()
    }
}

/// The bad lines of a file that a program reports.
pub fn told_by(program: &str, stderr: &str, file: &str) -> Vec<String> {
    let places = stderr.lines().filter_map(|line| line.strip_prefix(&format!("{program}: ")));
    let places = places.filter(|line| line.starts_with(&format!("{file}:")));
    places
        .map(|line| line.trim_end_matches("; further lines with this reason are only counted").to_owned())
        .collect()
}

/// The bad lines that the mapper reports.
pub fn told_by_mapper(room: &Room, file: &str) -> Vec<String> {
    let mut mapper = program("mapper");
    mapper.current_dir(room.path("")).args(["--input", file]);
    told_by("mapper", &run(&mut mapper, b"").succeeded().stderr, file)
}
