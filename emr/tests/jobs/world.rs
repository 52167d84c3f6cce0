//! The EMR that all tests share, and a user with job files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tests::emr::{Emr, SECRET_KEY};
use tests::programs::{Finished, folder_of_programs, run, without_hadoop};

/// The price of the only instance type, per hour.
pub const PRICE: f64 = 0.192 + 0.048;

/// An EMR, and a folder with the programs that are sent to it.
pub struct World {
    pub emr: Emr,
    folder: PathBuf,
}

/// The shared world; `None` if something is not installed. It ends with this process. Faults are those of the whole
/// service, so one test uses it at a time.
pub fn world() -> Option<MutexGuard<'static, World>> {
    static WORLD: LazyLock<Option<Mutex<World>>> = LazyLock::new(|| {
        let emr = Emr::start()?;
        // Below the server's folder, so that it is deleted with it.
        let folder = emr.folder().join("user");
        fs::create_dir_all(folder.join("programs")).unwrap();
        for name in ["mapper", "combiner", "reducer", "merge", "sentimill"] {
            // As `make dist` does; debugging information is most of a program.
            let mut strip = Command::new("strip");
            strip.arg("-o").arg(folder.join("programs").join(name)).arg(folder_of_programs().join(name));
            assert!(strip.status().unwrap().success());
        }
        let mut reviews = Vec::new();
        synthetic::write(2000, 4, &mut reviews).unwrap();
        fs::write(folder.join("reviews.json"), &reviews).unwrap();
        emr.put("in/reviews.json", &reviews);
        Some(Mutex::new(World { emr, folder }))
    });
    let world = WORLD.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
    world.emr.order("DELETE", "faults", &json!({}));
    Some(world)
}

impl World {
    /// A file of the user.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes the job file `NAME.toml` with the run `s3://bucket/runs/NAME`, after `changes` of texts.
    pub fn job(&self, name: &str, changes: &[(&str, &str)]) -> PathBuf {
        let mut text = format!(
            r#"name = "{name}"
run = "s3://bucket/runs/{name}"
dataset = "s3://bucket/datasets/{name}.h5"
programs = "programs"
[input]
places = ["s3://bucket/in/"]
[hadoop]
reducers = 2
settings = {{ "mapreduce.map.maxattempts" = 2, "mapreduce.task.progress-report.interval" = 1000 }}
[cluster]
region = "us-east-1"
release = "emr-7.10.0"
log = "s3://bucket/logs/"
keep = false
[[cluster.groups]]
role = "primary"
type = "m5.xlarge"
[[cluster.groups]]
role = "core"
type = "m5.xlarge"
count = 2
[prices.instances."m5.xlarge"]
ec2 = 0.192
emr = 0.048
"#
        );
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        let path = self.path(&format!("{name}.toml"));
        fs::write(&path, text).unwrap();
        path
    }

    /// A command of a user with keys.
    pub fn command(&self, subcommand: &str) -> Command {
        let mut command = without_hadoop(Path::new(env!("CARGO_BIN_EXE_emr")));
        command.arg(subcommand);
        self.emr.of_user(&mut command);
        command
    }

    /// Runs `emr SUBCOMMAND JOB …` to its end. No output may contain the user's secret key.
    pub fn emr(&self, subcommand: &str, job: &Path, more: &[&str]) -> Finished {
        let finished = run(self.command(subcommand).arg(job).args(more), b"");
        assert!(!finished.stderr.contains(SECRET_KEY) && !finished.said().contains(SECRET_KEY));
        finished
    }

    /// The clusters of a job, the newest first, as (id, state).
    pub fn clusters(&self, job: &str) -> Vec<(String, String)> {
        let listed = self.emr.call("ListClusters", &json!({}));
        let clusters = listed["Clusters"].as_array().unwrap().iter();
        let of_job = clusters.filter(|cluster| text(&cluster["Name"]).starts_with(&format!("{job} ")));
        of_job.map(|cluster| (text(&cluster["Id"]), text(&cluster["Status"]["State"]))).collect()
    }
}

/// The text of a JSON value.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Standard output as JSON.
pub fn document(finished: &Finished) -> Value {
    serde_json::from_slice(&finished.stdout).unwrap()
}

/// The last line of standard error, which is the error of a command that fails.
pub fn error(finished: &Finished) -> &str {
    finished.stderr.trim_end().lines().last().unwrap_or_default()
}
