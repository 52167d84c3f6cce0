//! Reads Hadoop's variables from the environment of a task.

use std::env;

/// A variable that Hadoop sets in the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The task attempt. It is set in every task and nowhere else.
    Attempt,
    /// The job.
    Job,
    /// The partition of a reducer, from 0.
    Partition,
    /// The number of reducers.
    Partitions,
    /// The input file of a mapper.
    InputFile,
    /// The offset in that file at which the mapper's input split starts.
    InputStart,
    /// Hadoop kills a task that is silent for this time, in milliseconds; 0 is no limit.
    Timeout,
    /// The time between two reports of a task to the application master, in milliseconds.
    ReportInterval,
}

impl Variable {
    /// The name in current Hadoop versions.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// The value, if it is set and not empty.
    pub fn value(self) -> Option<String> {
        self.names().iter().find_map(|name| env::var(name).ok()).filter(|value| !value.is_empty())
    }

    /// The newer and the older name. Hadoop sets both.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Self::Attempt => &["mapreduce_task_attempt_id", "mapred_task_id"],
            Self::Job => &["mapreduce_job_id", "mapred_job_id"],
            Self::Partition => &["mapreduce_task_partition", "mapred_task_partition"],
            Self::Partitions => &["mapreduce_job_reduces", "mapred_reduce_tasks"],
            Self::InputFile => &["mapreduce_map_input_file", "map_input_file"],
            Self::InputStart => &["mapreduce_map_input_start", "map_input_start"],
            Self::Timeout => &["mapreduce_task_timeout", "mapred_task_timeout"],
            Self::ReportInterval => &["mapreduce_task_progress_report_interval"],
        }
    }
}

/// Who or what runs a program. This determines who reads the log, and whether the input is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// A user or a script: the input is complete, and people read standard error.
    User,
    /// Hadoop, as one task of many. Hadoop parses counters and states in the log.
    Hadoop,
}

impl Runner {
    /// Detects the runner from the environment.
    pub fn of_this_process() -> Self {
        let is_set = |name| env::var_os(name).is_some_and(|attempt| !attempt.is_empty());
        if Variable::Attempt.names().iter().any(is_set) { Self::Hadoop } else { Self::User }
    }
}
