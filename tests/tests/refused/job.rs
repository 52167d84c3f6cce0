//! One small job in a new folder, which the real programs complete and a test then breaks and repairs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tests::programs::program;
use xxhash_rust::xxh3::xxh3_128;

/// Eight texts, one of them twice and one of stop words only. Each of three partitions has some.
pub const REVIEWS: &str = r#"{"reviewText": "Great fit, very warm", "overall": 5}
{"reviewText": "great fit very warm!", "overall": 4}
{"reviewText": "Broke after one day", "overall": 1}
{"reviewText": "The and of", "overall": 3}
{"reviewText": "Soft warm socks", "overall": 5}
{"reviewText": "Soft socks, bad smell", "overall": 2}
{"reviewText": "Warm gloves", "overall": 4}
{"reviewText": "Gloves too small", "overall": 2}
{"reviewText": "Nice colour", "overall": 5}
"#;

/// A folder with `reviews.json`, `counts.json`, `sorted` and `tmp`, and with the shards of `run`.
pub struct Job {
    folder: TempDir,
    partitions: u32,
}

/// The exit code and the output of a program.
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    /// With the job's folder as `JOB`, the host as `HOST` and digests as `DIGEST`.
    pub stderr: String,
    bytes: Vec<u8>,
}

impl Job {
    /// A job that is ready to be merged.
    pub fn done(partitions: u32) -> Self {
        let job = Self::mapped(partitions);
        (0..partitions).for_each(|partition| job.reduce("run", partition, &[]));
        job
    }

    /// A job before its reducers.
    pub fn mapped(partitions: u32) -> Self {
        let job = Self { folder: tempfile::tempdir().unwrap(), partitions };
        fs::create_dir(job.path("tmp")).unwrap();
        job.write("reviews.json", REVIEWS);
        job.map("counts.json", REVIEWS, "sorted");
        job
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Maps and sorts reviews.
    pub fn map(&self, counts: &str, reviews: &str, sorted: &str) {
        let mapped = self.program("mapper", &["--counts", counts], reviews);
        assert_eq!(mapped.code, 0, "{}", mapped.stderr);
        let mut lines: Vec<_> = mapped.bytes.split_inclusive(|&byte| byte == b'\n').collect();
        lines.sort_unstable();
        self.write(sorted, lines.concat());
    }

    /// Commits one partition of `sorted`.
    pub fn reduce(&self, run: &str, partition: u32, more: &[&str]) {
        let reduced = self.reducer(run, partition, more, self.read("sorted"));
        assert_eq!(reduced.code, 0, "{}", reduced.stderr);
    }

    /// Runs a reducer that selects its texts from the whole stream.
    pub fn reducer(&self, run: &str, partition: u32, more: &[&str], input: impl AsRef<[u8]>) -> Ended {
        let (partition, partitions) = (partition.to_string(), self.partitions.to_string());
        let attempt = format!("attempt{partition}");
        let mut arguments = vec!["--run", run, "--partition", &partition, "--partitions", &partitions];
        if !more.contains(&"--attempt") {
            arguments.extend(["--attempt", &attempt]);
        }
        if !more.contains(&"--profile") {
            // One of its texts consists of stop words.
            arguments.extend(["--profile", "original"]);
        }
        if !more.contains(&"--any-partitioner") {
            arguments.push("--select");
        }
        arguments.extend(more);
        self.program("reducer", &arguments, input)
    }

    /// Merges `run` to `out.h5`.
    pub fn merge(&self, more: &[&str]) -> Ended {
        self.program("merge", &[&["--run", "run", "--out", "out.h5"], more].concat(), "")
    }

    /// Runs a program in the job's folder.
    pub fn program(&self, name: &str, arguments: &[&str], input: impl AsRef<[u8]>) -> Ended {
        self.program_with(name, arguments, input, &[])
    }

    /// Runs a program that can write files of at most 8 KiB (16 KiB if sh is bash), to simulate a full disk.
    pub fn program_on_a_full_disk(&self, name: &str, arguments: &[&str], input: impl AsRef<[u8]>) -> Ended {
        self.program_with_room(16, name, arguments, input)
    }

    /// Runs a program whose files can have at most `blocks` blocks of 512 bytes (of 1 KiB if sh is bash).
    pub fn program_with_room(
        &self,
        blocks: u32,
        name: &str,
        arguments: &[&str],
        input: impl AsRef<[u8]>,
    ) -> Ended {
        let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let program = built(name);
        let arguments = [&["-c", &limited, program.to_str().unwrap()], arguments].concat();
        self.program("/bin/sh", &arguments, input)
    }

    /// Runs a program in the job's folder with these environment variables.
    pub fn program_with(
        &self,
        name: &str,
        arguments: &[&str],
        input: impl AsRef<[u8]>,
        variables: &[(&str, &str)],
    ) -> Ended {
        let mut child = Command::new(built(name))
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("TMPDIR", self.path("tmp"))
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that refuses its arguments reads nothing, so the pipe may be closed.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        let output = child.wait_with_output().unwrap();
        Ended {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: self.with_placeholders(&String::from_utf8(output.stderr).unwrap()),
            bytes: output.stdout,
        }
    }

    /// Replaces paths, host names and digests in a message, which differ between test runs, with
    /// placeholders.
    fn with_placeholders(&self, message: &str) -> String {
        let message = message.replace(self.folder.path().to_str().unwrap(), "JOB");
        let host = hostname();
        let message = message.replace(&format!(".{host}.attempt"), ".HOST.attempt");
        without_digests(&message)
    }

    /// Checks that a program refuses with this message in its last line, and that no file of the job changes.
    pub fn refuses(&self, run: impl FnOnce() -> Ended, code: i32, message: &str) {
        let before = self.files();
        let ended = run();
        let (said, notices): (Vec<&str>, Vec<&str>) = ended.stderr.lines().partition(|line| !is_notice(line));
        assert_eq!(said, [message], "{notices:?}");
        assert_eq!(ended.stderr.lines().last(), Some(message), "the message comes last");
        assert!(ended.stderr.ends_with('\n'));
        assert_eq!(ended.code, code, "{message}");
        assert_eq!(self.files(), before, "{message}");
    }

    /// Checks that the run merges to the dataset that one reducer gives.
    pub fn merges(&self) {
        let merged =
            self.program("merge", &["--run", "run", "--out", "right.h5", "--counts", "counts.json"], "");
        assert_eq!(merged.code, 0, "{}", merged.stderr);
        let alone = Self::done(1);
        let merged = alone.merge(&[]);
        assert_eq!(merged.code, 0, "{}", merged.stderr);
        assert!(self.read("right.h5") == alone.read("out.h5"), "another dataset than one reducer's");
    }

    /// All files and folders with sizes and digests.
    pub fn files(&self) -> BTreeMap<PathBuf, Option<(u64, u128)>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let content = path.is_file().then(|| fs::read(&path).unwrap());
                if content.is_none() {
                    folders.push(path.clone());
                }
                files.insert(path, content.map(|bytes| (bytes.len() as u64, xxh3_128(&bytes))));
            }
        }
        files
    }

    /// The name of a partition's object in the run's folder.
    pub fn object(&self, partition: u32) -> String {
        let commit: serde_json::Value = serde_json::from_slice(&self.read(&commit(partition))).unwrap();
        format!("run/{}", commit["object"].as_str().unwrap())
    }

    /// Changes a JSON file while `during` runs, and restores it.
    pub fn with_json(&self, name: &str, edit: impl FnOnce(&mut serde_json::Value), during: impl FnOnce()) {
        let mut value = serde_json::from_slice(&self.read(name)).unwrap();
        edit(&mut value);
        self.with_content(name, &serde_json::to_vec_pretty(&value).unwrap(), during);
    }

    /// Replaces the content of a file while `during` runs, and restores it.
    pub fn with_content(&self, name: &str, content: &[u8], during: impl FnOnce()) {
        let before = self.read(name);
        self.write(name, content);
        during();
        self.write(name, before);
    }

    /// Removes a file while `during` runs, and restores it.
    pub fn without(&self, name: &str, during: impl FnOnce()) {
        let before = self.read(name);
        fs::remove_file(self.path(name)).unwrap();
        during();
        self.write(name, before);
    }
}

/// The name of a commit record.
pub fn commit(partition: u32) -> String {
    format!("run/commit/part-{partition:05}.json")
}

/// The content of a file with the byte at this position changed.
pub fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 0x55;
    bytes
}

/// The position of these bytes in a file.
pub fn place_of(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).position(|window| window == wanted).expect("the file holds these bytes")
}

/// The file of a program of this project. Others are named by their path.
pub fn built(name: &str) -> PathBuf {
    if name.starts_with('/') { name.into() } else { program(name).get_program().into() }
}

fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    name.trim().chars().map(fit).take(63).collect()
}

/// Whether a line reports progress to people or to Hadoop.
fn is_notice(line: &str) -> bool {
    let stages =
        ["checking shards", "summing dictionaries", "writing rows", "reading them back", "copying rows"];
    let reasons = ["line_too_long", "bad_line", "no_text", "bad_rating"];
    let is_ledger = line.starts_with("mapper: ") && line.contains(" lines = ") && line.ends_with(" reviews");
    line.starts_with("reporter:")
        || is_ledger && !line.contains("found no review")
        || line == "sentimill: reading"
        || reasons.iter().any(|reason| line.contains(&format!(": {reason} (byte ")))
        || stages.iter().any(|stage| line.starts_with(&format!("merge: {stage} (")))
}

/// Replaces digests, or their prefixes in messages, which have one of four lengths.
fn without_digests(message: &str) -> String {
    let is_hex = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    let mut out = String::new();
    let mut rest = message;
    while let Some(start) = rest.find(is_hex) {
        let (before, from) = rest.split_at(start);
        let length = from.find(|c| !is_hex(c)).unwrap_or(from.len());
        let (digits, after) = from.split_at(length);
        out += before;
        out += if [8, 16, 32, 64].contains(&length) { "DIGEST" } else { digits };
        rest = after;
    }
    out + rest
}
