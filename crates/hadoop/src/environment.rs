//! The environment of a task → what Hadoop says about it.

use std::env;

/// What Hadoop says in the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The attempt of a task. It is set in every task, and in nothing else.
    Attempt,
    /// The job.
    Job,
    /// A reducer's partition, from 0.
    Partition,
    /// The number of reducers.
    Partitions,
    /// The file whose lines a mapper is fed.
    InputFile,
    /// Where in that file the mapper's part begins.
    InputStart,
    /// The silence after which a task is killed, in milliseconds; 0 is never.
    Timeout,
    /// The time between two reports of a task to the job's master, in milliseconds.
    ReportInterval,
}

impl Variable {
    /// Its name in today's Hadoop.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// Its value, if that is set and not empty.
    pub fn value(self) -> Option<String> {
        self.names().iter().find_map(|name| env::var(name).ok()).filter(|value| !value.is_empty())
    }

    /// The newer and the older name: Hadoop sets both.
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

/// Who runs a program: that decides who reads its log, and whether its input is all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// A user or a script: the input is complete, and people read standard error.
    User,
    /// Hadoop, as one task of many. It reads counters and states in the log.
    Hadoop,
}

impl Runner {
    /// Who it is by the environment.
    pub fn of_this_process() -> Self {
        let is_set = |name| env::var_os(name).is_some_and(|attempt| !attempt.is_empty());
        if Variable::Attempt.names().iter().any(is_set) { Self::Hadoop } else { Self::User }
    }
}
