//! The server of all tests of this process, and its turns.

use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};
use tests::emr::{Emr, SECRET_KEY};
use tests::programs::{Finished, program, run, without_hadoop};

use crate::job_file::JobFile;

/// Time limit of every wait.
const LIMIT: Duration = Duration::from_secs(300);

static EMR: LazyLock<Option<Emr>> = LazyLock::new(Emr::start);
static TURN: Mutex<()> = Mutex::new(());

/// The server, for one test at a time.
pub struct Turn {
    emr: &'static Emr,
    _turn: MutexGuard<'static, ()>,
}

impl Deref for Turn {
    type Target = Emr;

    fn deref(&self) -> &Emr {
        self.emr
    }
}

/// `None`, with a notice, if something is not installed. Faults and counts of the test before are gone.
pub fn emr() -> Option<Turn> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let emr = EMR.as_ref()?;
    emr.order("DELETE", "faults", &Value::Null);
    emr.order("DELETE", "requests", &Value::Null);
    Some(Turn { emr, _turn: turn })
}

impl Turn {
    /// A command of `emr` for a user of this EMR.
    pub fn command(&self, name: &str) -> Command {
        let mut command = program("emr");
        self.of_user(&mut command).arg(name).env("NO_COLOR", "1");
        command
    }

    /// Runs a command of `emr` about a job to its end. No output contains the user's key.
    #[track_caller]
    pub fn run(&self, name: &str, job: &JobFile, more: &[&str]) -> Finished {
        let mut command = self.command(name);
        if ["run", "watch"].contains(&name) {
            command.args(["--interval", "0.2"]);
        }
        let finished = run(command.arg(job.path()).args(more), b"");
        assert!(!finished.stderr.contains(SECRET_KEY) && !finished.said().contains(SECRET_KEY));
        finished
    }

    /// Runs a Python program of `tests/emr` with this input.
    pub fn python(&self, name: &str, arguments: &[&str], input: &[u8]) -> Finished {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut python = without_hadoop(&project.join(".deps/s3/bin/python"));
        python.arg("-B").arg(project.join("tests/emr").join(name)).args(arguments);
        run(self.of_user(&mut python).env("SENTIMILL_EMR", self.url()), input)
    }

    /// The clusters of a run, the newest first.
    pub fn clusters_of(&self, job: &JobFile) -> Vec<Value> {
        let listed = self.call("ListClusters", &json!({}));
        let names = listed["Clusters"].as_array().unwrap().iter();
        let described =
            names.map(|cluster| self.call("DescribeCluster", &json!({"ClusterId": cluster["Id"]})));
        let described = described.map(|mut answer| answer["Cluster"].take());
        described.filter(|cluster| cluster["Tags"].to_string().contains(&job.run_id())).collect()
    }

    /// The states of a cluster's steps, in their order.
    pub fn step_states(&self, cluster: &Value) -> Vec<String> {
        let steps = self.call("ListSteps", &json!({"ClusterId": cluster["Id"]}));
        let states = steps["Steps"].as_array().unwrap().iter().rev();
        states.map(|step| step["Status"]["State"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until `look` returns a value.
    #[track_caller]
    pub fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            let logs = self.folder();
            assert!(
                begin.elapsed() < LIMIT,
                "waited {} s for {what}; see {}",
                LIMIT.as_secs(),
                logs.display()
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Terminates all clusters, so that the next test finds none.
    pub fn end_clusters(&self) {
        let alive = json!({"ClusterStates": ["STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING"]});
        let listed = self.call("ListClusters", &alive);
        let names: Vec<&Value> =
            listed["Clusters"].as_array().unwrap().iter().map(|cluster| &cluster["Id"]).collect();
        self.call("TerminateJobFlows", &json!({"JobFlowIds": names}));
    }
}

/// The last line of a failed command, which is its message.
pub fn message(finished: &Finished) -> String {
    let line = finished.stderr.lines().last().unwrap_or_default();
    assert!(line.starts_with("emr: ") && line.len() < 600, "{}", finished.stderr);
    line.to_owned()
}

/// Programs without debug information, which is ten times as large as the programs.
pub fn stripped(folder: &Path) {
    for name in ["mapper", "combiner", "reducer", "merge", "sentimill"] {
        let from = tests::programs::folder_of_programs().join(name);
        fs::create_dir_all(folder).unwrap();
        run(Command::new("strip").arg("-o").arg(folder.join(name)).arg(from), b"").succeeded();
    }
}
