//! Names of log files, as EMR and Hadoop choose them, to what wrote the log.

use std::fmt;

use serde::Deserialize;

/// What wrote a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogOrigin {
    /// EMR itself: the state of a cluster or a step, or the `controller` log of a step.
    Controller,
    /// The command of a step, such as Hadoop's job client or `merge`.
    Step,
    /// A bootstrap action.
    Bootstrap,
    /// A container of YARN: an application master or a task, with the programs that it runs.
    Container,
    /// A service of a node, such as the NodeManager.
    Node,
}

impl fmt::Display for LogOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Controller => "controller",
            Self::Step => "step",
            Self::Bootstrap => "bootstrap",
            Self::Container => "container",
            Self::Node => "node",
        })
    }
}

/// A position in the logs of containers. The output of `yarn logs` has those of many.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The container, or the path of the log.
    pub task: String,
    /// Name of the log in the container.
    pub name: String,
}

impl Section {
    /// The start of a log.
    pub fn of(path: &str) -> Self {
        Self { task: container_of(path).unwrap_or(path).to_owned(), name: stem(path).to_owned() }
    }

    /// Reads a line. Returns whether it is a heading of `yarn logs`: `Container: container_1_0001_01_000002 on host_8041`,
    /// `LogType:stderr`.
    pub fn read(&mut self, line: &str) -> bool {
        let container =
            line.strip_prefix("Container: ").and_then(|rest| rest.split(' ').next()).and_then(container_of);
        let name = line.strip_prefix("LogType:");
        if let Some(container) = container {
            self.task = container.to_owned();
            self.name.clear();
        } else if let Some(name) = name {
            self.name = name.trim().to_owned();
        }
        container.is_some() || name.is_some()
    }
}

/// What wrote the log with this path; `None` if the path does not show it, as for a file that a user saved.
pub fn place_of(path: &str) -> Option<LogOrigin> {
    let segments: Vec<&str> = path.split('/').collect();
    let has = |is: &dyn Fn(&str) -> bool| segments.iter().any(|segment| is(segment));
    if container_of(path).is_some() {
        return Some(LogOrigin::Container);
    }
    if has(&|segment| segment == "bootstrap-actions") {
        return Some(LogOrigin::Bootstrap);
    }
    if has(&is_step) {
        return Some(if stem(path) == "controller" { LogOrigin::Controller } else { LogOrigin::Step });
    }
    has(&|segment| ["node", "applications", "daemons"].contains(&segment)).then_some(LogOrigin::Node)
}

/// Name of a log file without its folders, compression and the time of its rotation: `stderr`, `syslog`.
pub fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_suffix(".gz").unwrap_or(name);
    // `syslog.2026-11-23-04`, `yarn-yarn-nodemanager-ip-10-0-0-1.log.2026-11-23-04`
    name.find(".20").map_or(name, |end| &name[..end])
}

/// Whether a file below a folder of logs is a log. Containers also leave scripts and settings, which contain
/// environments.
pub fn is_log(path: &str) -> bool {
    const NAMES: [&str; 6] = ["stderr", "stdout", "syslog", "syslog.shuffle", "controller", "prelaunch.err"];
    const ENDINGS: [&str; 5] = [".log", ".out", ".err", ".txt", ".stderr"];
    let name = stem(path);
    name != "prelaunch.out" && (NAMES.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending)))
}

/// The step to which a log belongs.
pub fn step_of(path: &str) -> Option<&str> {
    path.split('/').find(|segment| is_step(segment))
}

/// The application to which a log belongs.
pub fn application_of(path: &str) -> Option<&str> {
    path.split('/').find(|segment| segment.starts_with("application_"))
}

/// The container to which a log belongs.
pub fn container_of(path: &str) -> Option<&str> {
    path.split('/').find(|segment| segment.starts_with("container_"))
}

fn is_step(segment: &str) -> bool {
    segment
        .strip_prefix("s-")
        .is_some_and(|id| !id.is_empty() && id.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_log_follows_from_its_path() {
        for (path, expected) in [
            ("j-1/steps/s-3ABC/controller.gz", Some(LogOrigin::Controller)),
            ("j-1/steps/s-3ABC/stderr.gz", Some(LogOrigin::Step)),
            ("j-1/node/i-0a1b/bootstrap-actions/1/stderr.gz", Some(LogOrigin::Bootstrap)),
            (
                "j-1/containers/application_1_0001/container_1_0001_01_000002/stderr.gz",
                Some(LogOrigin::Container),
            ),
            ("application_1_0001/container_1_0001_01_000002/syslog", Some(LogOrigin::Container)),
            ("j-1/node/i-0a1b/applications/hadoop-yarn/yarn.log.2026-11-23-04.gz", Some(LogOrigin::Node)),
            ("job.log", None),
            ("s-files/job.log", None),
        ] {
            assert_eq!(place_of(path), expected, "{path}");
        }
        assert_eq!(step_of("j-1/steps/s-3ABC/stderr.gz"), Some("s-3ABC"));
        assert_eq!(
            application_of("containers/application_1_0001/container_1/stderr"),
            Some("application_1_0001")
        );
    }

    #[test]
    fn scripts_and_settings_of_containers_are_not_logs() {
        for path in ["a/stderr.gz", "a/syslog", "x.log", "a/yarn.log.2026-11-23-04.gz", "prelaunch.err"] {
            assert!(is_log(path), "{path}");
        }
        for path in
            ["launch_container.sh", "directory.info", "prelaunch.out", "job.xml", "part-00000", "x.gz"]
        {
            assert!(!is_log(path), "{path}");
        }
    }
}
