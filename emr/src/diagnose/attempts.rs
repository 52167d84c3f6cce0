//! The containers of failed task attempts, from the log of a job's application master.

use std::collections::{BTreeMap, BTreeSet};

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
}
