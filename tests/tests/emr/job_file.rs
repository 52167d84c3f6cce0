//! Job files of the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;
use tests::programs::run;

use crate::served::{Turn, stripped};

static PROGRAMS: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emr-programs");
    stripped(&folder);
    folder
});

/// A job file in a folder of its own.
pub struct JobFile {
    folder: TempDir,
    name: String,
    run_id: String,
}

/// The nodes of a new cluster.
const GROUPS: &str = r#"
[[cluster.groups]]
role = "primary"
type = "m6i.xlarge"

[[cluster.groups]]
role = "core"
type = "m6i.xlarge"
count = 2
"#;

impl JobFile {
    /// A job with this input on a new cluster.
    pub fn new(turn: &Turn, name: &str, input: &str) -> Self {
        Self::with(turn, name, input, "", "")
    }

    /// A job with keys of the table `cluster`, and further tables.
    pub fn with(turn: &Turn, name: &str, input: &str, cluster: &str, more: &str) -> Self {
        Self::written(turn, name, input, &format!("log = \"s3://bucket/logs/\"\n{cluster}\n{GROUPS}\n{more}"))
    }

    fn written(turn: &Turn, name: &str, input: &str, cluster: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let programs = PROGRAMS.display();
        let text = format!(
            r#"name = "{name}"
run = "s3://bucket/runs/{name}"
dataset = "s3://bucket/datasets/{name}.h5"
programs = "{programs}"

[input]
places = ["{input}"]

[hadoop]
reducers = 2
settings = {{ "mapreduce.map.maxattempts" = 1, "mapreduce.reduce.maxattempts" = 1, "mapreduce.task.progress-report.interval" = 1000 }}

[cluster]
region = "us-east-1"
{cluster}
"#
        );
        fs::write(folder.path().join("JOB.toml"), text).unwrap();
        let mut job = Self { folder, name: name.to_owned(), run_id: String::new() };
        let plan = job.plan(turn);
        plan["run_id"].as_str().unwrap().clone_into(&mut job.run_id);
        job
    }

    /// The path of the file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("JOB.toml")
    }

    /// The id of the run.
    pub fn run_id(&self) -> String {
        self.run_id.clone()
    }

    /// The key of the dataset in the bucket.
    pub fn dataset(&self) -> String {
        format!("datasets/{}.h5", self.name)
    }

    /// The plan, as JSON.
    #[track_caller]
    pub fn plan(&self, turn: &Turn) -> Value {
        let finished = run(turn.command("plan").arg(self.path()).arg("--json"), b"").succeeded();
        serde_json::from_slice(&finished.stdout).unwrap()
    }
}

/// Lines of the demonstration's corpus: some are no reviews.
pub fn reviews(lines: u32, seed: u32) -> Vec<u8> {
    let mut demo: Command = tests::programs::program("demo-corpus");
    run(demo.args(["--reviews", &lines.to_string(), "--seed", &seed.to_string()]), b"").succeeded().stdout
}
