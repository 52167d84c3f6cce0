//! What the logs of a job say about its tasks: the containers of failed attempts, and the inputs of map tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Maximum number of running attempts that are remembered.
const ATTEMPTS_MAX: usize = 100_000;

/// The attempts of jobs.
#[derive(Debug, Default)]
pub struct Attempts {
    /// The container of each attempt that has not failed.
    containers: BTreeMap<String, String>,
    /// The containers of attempts that failed.
    failed: BTreeSet<String>,
}

impl Attempts {
    /// Reads a line of an application master.
    pub fn read(&mut self, line: &str) {
        let Some((_, rest)) = line.split_once("TaskAttemptImpl: ") else { return };
        if let Some((attempt, container)) = started(rest) {
            if self.containers.len() < ATTEMPTS_MAX {
                self.containers.insert(attempt.to_owned(), container.to_owned());
            }
        } else if let Some(container) = failed(rest).and_then(|attempt| self.containers.remove(attempt)) {
            self.failed.insert(container);
        }
    }

    /// Whether the log with this path is of the container of a failed attempt.
    pub fn has_failed(&self, path: &str) -> bool {
        path.split('/').any(|segment| self.failed.contains(segment))
    }
}

/// Whether the log with this path is of an application master, which runs in the first container of an application.
pub fn is_of_master(path: &str) -> bool {
    path.split('/').any(|segment| segment.starts_with("container_") && segment.ends_with("_000001"))
}

/// `TaskAttempt: [attempt_1_0001_m_000000_0] using containerId: [container_1_0001_01_000002 on NM: [host:8041]`
fn started(text: &str) -> Option<(&str, &str)> {
    let (attempt, rest) = text.strip_prefix("TaskAttempt: [")?.split_once(']')?;
    let (_, container) = rest.split_once("containerId: [")?;
    Some((attempt, container.split(' ').next()?))
}

/// `attempt_1_0001_m_000000_0 TaskAttempt Transitioned from RUNNING to FAIL_FINISHING_CONTAINER`
fn failed(text: &str) -> Option<&str> {
    let (attempt, rest) = text.split_once(" TaskAttempt Transitioned from ")?;
    rest.split_once(" to ").filter(|(_, state)| state.starts_with("FAIL")).map(|_| attempt)
}

/// Maximum number of splits that are remembered.
const SPLITS_MAX: usize = 100_000;

/// The split of each task.
#[derive(Debug, Default)]
pub struct Splits(BTreeMap<String, Split>);

/// A part of a file, which one map task reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// URL of the file.
    pub file: String,
    begin: u64,
    bytes: u64,
}

impl Splits {
    /// Reads a line of a log. `task` is its container, or the log itself.
    pub fn read(&mut self, task: &str, line: &str) {
        if let Some(split) = split(line).filter(|_| self.0.len() < SPLITS_MAX) {
            self.0.insert(task.to_owned(), split);
        }
    }

    /// The split of a task.
    pub fn of(&self, task: &str) -> Option<&Split> {
        self.0.get(task)
    }
}

/// `hdfs://host/part.gz, bytes 0 to 1234`
impl fmt::Display for Split {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, bytes {} to {}", self.file, self.begin, self.begin + self.bytes)
    }
}

/// `… INFO [main] org.apache.hadoop.mapred.MapTask: Processing split: hdfs://host/part.gz:0+1234`
fn split(line: &str) -> Option<Split> {
    let (_, text) = line.split_once("Processing split: ")?;
    // A combined split has a list of paths, and no scheme first.
    let (file, range) = text.trim_end().rsplit_once(':').filter(|(file, _)| file.contains("://"))?;
    let (begin, bytes) = range.split_once('+')?;
    Some(Split { file: file.to_owned(), begin: begin.parse().ok()?, bytes: bytes.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_of_failed_attempts_are_known() {
        let lines = "\
2026-11-23 04:45:04,378 INFO [AsyncDispatcher event handler] org.apache.hadoop.mapreduce.v2.app.job.impl.TaskAttemptImpl: TaskAttempt: [attempt_1_0002_m_000000_0] using containerId: [container_1_0002_01_000002 on NM: [ip-10-0-0-11.ec2.internal:8041]
2026-11-23 04:45:04,379 INFO [AsyncDispatcher event handler] org.apache.hadoop.mapreduce.v2.app.job.impl.TaskAttemptImpl: TaskAttempt: [attempt_1_0002_m_000001_0] using containerId: [container_1_0002_01_000003 on NM: [ip-10-0-0-11.ec2.internal:8041]
2026-11-23 04:45:24,130 INFO [AsyncDispatcher event handler] org.apache.hadoop.mapreduce.v2.app.job.impl.TaskAttemptImpl: attempt_1_0002_m_000000_0 TaskAttempt Transitioned from RUNNING to FAIL_FINISHING_CONTAINER
2026-11-23 04:45:25,130 INFO [AsyncDispatcher event handler] org.apache.hadoop.mapreduce.v2.app.job.impl.TaskAttemptImpl: attempt_1_0002_m_000001_0 TaskAttempt Transitioned from RUNNING to SUCCESS_FINISHING_CONTAINER";
        let mut attempts = Attempts::default();
        lines.lines().for_each(|line| attempts.read(line));
        assert!(attempts.has_failed("application_1_0002/container_1_0002_01_000002/stderr.gz"));
        assert!(!attempts.has_failed("application_1_0002/container_1_0002_01_000003/stderr.gz"));
        assert!(is_of_master("application_1_0002/container_e05_1_0002_02_000001/syslog"));
        assert!(!is_of_master("application_1_0002/container_1_0002_01_000010/syslog"));
    }

    #[test]
    fn the_file_of_a_split_is_read_with_its_range() {
        let shown = |text: &str| split(text).map(|split| split.to_string());
        for (line, expected) in [
            (
                "INFO [main] org.apache.hadoop.mapred.MapTask: Processing split: hdfs://127.0.0.1:19000/in/a.json.gz:0+133220",
                Some("hdfs://127.0.0.1:19000/in/a.json.gz, bytes 0 to 133220"),
            ),
            (
                "MapTask: Processing split: s3a://bucket/a b/part:1.bz2:134217728+10",
                Some("s3a://bucket/a b/part:1.bz2, bytes 134217728 to 134217738"),
            ),
            ("MapTask: Processing split: Paths:/in/a:0+1,/in/b:0+2 Locations:h", None),
            ("MapTask: Processing split: Paths:/in/a:0+1,/in/b:0+2", None),
            ("MapTask: Processing split: ", None),
            ("MapTask: numReduceTasks: 1", None),
        ] {
            assert_eq!(shown(line).as_deref(), expected, "{line}");
        }
    }
}
