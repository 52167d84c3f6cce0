//! Shows the state of a job: a line per change of a state, and a bar of committed shards.

use aws_sdk_emr::types::StepState;
use program::bars::{ProgressBars, Stage};

use super::{JobState, StepLog};
use crate::cluster;

/// What was shown last.
pub(super) struct Display<'a> {
    progress: &'a ProgressBars,
    partitions: u32,
    stage: Option<Stage>,
    shown: Vec<String>,
}

impl<'a> Display<'a> {
    pub fn new(progress: &'a ProgressBars, partitions: u32) -> Self {
        Self { progress, partitions, stage: None, shown: Vec::new() }
    }

    /// Prints the states that have changed.
    pub fn show(&mut self, state: &JobState) {
        let lines = lines(state);
        let new: Vec<&String> = lines.iter().filter(|line| !self.shown.contains(line)).collect();
        if new.is_empty() {
            return;
        }
        self.clear();
        for line in new {
            self.progress.notice(line);
        }
        self.shown = lines;
    }

    /// Prints a line once, until something else is printed.
    pub fn note(&mut self, line: &str) {
        if self.shown.last().is_none_or(|last| last != line) {
            self.clear();
            self.progress.notice(line);
            self.shown.push(line.to_owned());
        }
    }

    /// Moves the bar of the running Hadoop step.
    pub fn advance(&mut self, state: &JobState, shards: Option<usize>, log: Option<&StepLog>) {
        let is_first = state.steps.first().is_some_and(|step| step.state == StepState::Running);
        let Some(shards) = shards.filter(|_| is_first) else { return };
        let (progress, partitions) = (self.progress, self.partitions);
        let stage = self.stage.get_or_insert_with(|| progress.stage("shards", partitions.into()));
        if let Some((maps, reduces)) = log.and_then(StepLog::percent) {
            stage.set_message(format!("maps {maps} %, reduces {reduces} %"));
            let line = format!("maps {maps} %, reduces {reduces} %, {shards} of {partitions} shards");
            if !self.shown.contains(&line) {
                progress.line(&line);
                self.shown.push(line);
            }
        }
        if let Some(stage) = &self.stage {
            stage.set_position(shards as u64);
        }
    }

    /// Removes the bar.
    pub fn clear(&mut self) {
        if let Some(stage) = self.stage.take() {
            stage.finish_and_clear();
        }
    }
}

/// The state of the cluster and of each step, one line each.
fn lines(state: &JobState) -> Vec<String> {
    let id = &state.cluster.id;
    let reason = state.cluster.reason.as_ref().map(|reason| reason.text()).filter(|text| !text.is_empty());
    let reason = reason.map(|text| format!(" ({text})")).unwrap_or_default();
    let mut lines = vec![format!("cluster {id}: {}{reason}", state.cluster.state)];
    let n = state.steps.len();
    for (number, step) in (1..).zip(&state.steps) {
        // Steps that wait are not news.
        if step.state != StepState::Pending || cluster::has_ended(&state.cluster.state) {
            lines.push(format!("step {number} of {n}, {}: {}", step.name, step.state));
        }
    }
    lines
}
