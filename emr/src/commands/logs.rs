//! `emr logs`: lists and prints logs of a cluster. Also finds the logs that `emr diagnose` reads.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use program::exit::{Exit, one_line, print};
use store::S3Options;

use super::subject::{Elsewhere, JobWithRun, Ran, Subject};
use crate::Error;
use crate::cluster::{Reason, Step};
use crate::failures::RunFailure;
use crate::logs::{Listing, Log, LogOrigin, cluster_folder, list, stem, step_of, utc};
use crate::runner::hadoop::LOG;
use crate::secrets::without_secrets;
use crate::submission;

const EXAMPLES: &str = "\
Examples:
  emr logs JOB.toml
      List the logs of a job on EMR, newest first

  emr logs --cluster j-3ABCDEFGHIJKL --log s3://bucket/logs --kind stderr
      Print the ends of its newest stderr logs";

/// EMR uploads logs at this interval.
const UPLOAD_INTERVAL: Duration = Duration::from_secs(300);

/// List or print logs of a job or a cluster
///
/// Prints a list of the logs. With --kind, prints the last lines of the logs themselves, decompressed.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Which logs.
    #[command(flatten)]
    pub choice: Choice,
    /// Print the logs of this name: stderr, syslog, controller, …
    #[arg(long, value_name = "NAME")]
    pub kind: Option<String>,
    /// Maximum number of logs
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub max: usize,
    /// Maximum number of lines per log
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub lines: u16,
}

/// Which logs to read.
#[derive(Args, Clone, Debug)]
pub struct Choice {
    /// Job file, or folders, files or s3:// URLs of logs
    #[arg(value_name = "PLACE", required_unless_present = "cluster", conflicts_with = "cluster")]
    pub places: Vec<String>,
    /// Logs of this cluster, such as j-3ABCDEFGHIJKL
    #[arg(long, value_name = "ID")]
    pub cluster: Option<String>,
    /// Its log folder [default: that of EMR]
    #[arg(long, value_name = "URL", requires = "cluster", conflicts_with = "places")]
    pub log: Option<String>,
    /// Region of the cluster [default: that of the job, or AWS_REGION]
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Only this step and its containers, such as s-3ABCDEFGHIJKL
    #[arg(long, value_name = "ID")]
    pub step: Option<String>,
    /// Options for S3.
    #[arg(long, value_name = "LIST", help = store::S3_HELP, long_help = store::S3_LONG_HELP)]
    pub s3: Option<S3Options>,
}

/// The logs of a choice.
#[derive(Default)]
pub(super) struct FoundLogs {
    pub listing: Listing,
    /// Steps whose logs are in question; none for all.
    pub steps: Vec<String>,
    /// Steps that failed, as far as EMR reports them.
    pub failed: Vec<String>,
    /// Their folder, for messages.
    pub location: String,
    /// Whether EMR uploads them, so that they may appear later.
    pub is_remote: bool,
    /// The failure whose logs they are, of a job that did not run on EMR.
    pub failure: Option<RunFailure>,
}

impl Choice {
    /// Lists the logs, newest first.
    pub(super) fn find(&self) -> Result<FoundLogs, Error> {
        let mut found = match (&self.cluster, &self.log, &self.places[..]) {
            (Some(cluster), Some(log), _) => self.in_places(&[cluster_folder(log, cluster)])?,
            (Some(_), None, _) => self.of_cluster(None)?,
            (None, _, [job]) if job.ends_with(".toml") => self.of_cluster(Some(job.into()))?,
            (None, _, places) => self.in_places(places)?,
        };
        if let Some(step) = &self.step {
            found.steps = vec![step.clone()];
        }
        if !found.steps.is_empty() {
            found.retain_steps();
        }
        Ok(found)
    }

    fn in_places(&self, places: &[String]) -> Result<FoundLogs, Error> {
        let s3 = self.s3.clone().unwrap_or_default();
        let mut listing = Listing::default();
        for place in places {
            let one = list(place, &s3)?;
            listing.logs.extend(one.logs);
            listing.n_omitted += one.n_omitted;
        }
        let is_remote = places.iter().all(|place| place.starts_with("s3"));
        let location = one_line(&places.join(", "));
        Ok(FoundLogs { listing, location, is_remote, ..FoundLogs::default() })
    }

    /// The logs of the last failure of a job that did not run on EMR, or the output of its Hadoop job.
    fn of_run(ran: Elsewhere) -> Result<FoundLogs, Error> {
        let Elsewhere { of: JobWithRun { job, store }, failure, has_counts, .. } = ran;
        let options = job.bucket_options();
        let listing = match &failure {
            Some(failure) => failure.listing(&job.run, &options)?,
            None if has_counts => list(&job.run.join(LOG).to_string(), &options)?,
            None => Listing::default(),
        };
        Ok(FoundLogs { listing, location: store.url(), failure, ..FoundLogs::default() })
    }

    /// The logs of a cluster, or of the steps of a job's last submission, and the reasons of states that EMR reports.
    fn of_cluster(&self, job: Option<PathBuf>) -> Result<FoundLogs, Error> {
        let subject = Subject { job, cluster: self.cluster.clone(), region: self.region.clone() };
        let found = match subject.ran()? {
            Ran::OnEmr(found) => *found,
            Ran::Elsewhere(ran) => return Self::of_run(*ran),
        };
        let cluster = found.emr.cluster(&found.cluster)?;
        let steps = submission::steps_of(found.emr.steps(&cluster.id)?, &found.run_id());
        let of_step =
            |step: &Step| reason(&format!("step {}", step.id), step.state.as_str(), step.reason.as_ref());
        let mut reasons: Vec<Log> = steps.iter().filter_map(of_step).collect();
        let of_cluster = format!("cluster {}", cluster.id);
        reasons.extend(reason(&of_cluster, cluster.state.as_str(), cluster.reason.as_ref()));
        let folder = match &cluster.log_uri {
            Some(log) => Some(cluster_folder(log, &cluster.id)),
            None if reasons.is_empty() => {
                let id = &cluster.id;
                return Err(Error::new(
                    Exit::MissingInput,
                    format!(
                        "{id}: keeps no logs, expected a log folder; set cluster.log in the job file for the next cluster"
                    ),
                ));
            }
            None => None,
        };
        let mut listing = match &folder {
            Some(folder) => list(folder, &self.s3_of(found.job.as_ref()))?,
            None => Listing::default(),
        };
        listing.logs.extend(reasons);
        let is_job = found.job.is_some();
        let failed = steps.iter().filter(|step| step.state.as_str() == "FAILED");
        let failed = failed.map(|step| step.id.clone()).collect();
        Ok(FoundLogs {
            listing,
            failed,
            steps: steps.into_iter().filter(|_| is_job).map(|step| step.id).collect(),
            is_remote: folder.is_some(),
            location: one_line(&folder.unwrap_or(of_cluster)),
            failure: None,
        })
    }

    /// Options for the bucket of the logs.
    fn s3_of(&self, job: Option<&JobWithRun>) -> S3Options {
        let of_job = || job.map(|submitted| submitted.job.bucket_options()).unwrap_or_default();
        let options = self.s3.clone().unwrap_or_else(of_job);
        S3Options { region: options.region.or_else(|| self.region.clone()), ..options }
    }
}

/// The reason of a state, as a log of one line; none if the state is not that of a failure.
fn reason(of: &str, state: &str, reason: Option<&Reason>) -> Option<Log> {
    let has_failed =
        ["FAILED", "CANCELLED", "INTERRUPTED", "TERMINATED_WITH_ERRORS", "TERMINATING", "TERMINATED"];
    let reason = reason.filter(|_| has_failed.contains(&state))?;
    let code = reason.code.as_deref().unwrap_or_default();
    let message = reason.message.as_deref().unwrap_or_default();
    Some(Log::of_text(of, LogOrigin::Controller, &format!("{state}: {code}: {message}")))
}

impl FoundLogs {
    /// Keeps the logs of the steps in question, and those that belong to no step, if a step has a log: nothing else shows which
    /// containers belong to it.
    fn retain_steps(&mut self) {
        let is_of = |log: &Log| step_of(&log.name).is_none_or(|of| self.steps.iter().any(|step| step == of));
        self.listing.logs.retain(is_of);
        let has_log = self.listing.logs.iter().any(|log| step_of(&log.name).is_some());
        self.listing.logs.retain(|log| has_log || log.is_state());
    }

    /// Whether there is a log, not only reasons of states.
    pub fn has_log(&self) -> bool {
        self.listing.logs.iter().any(|log| !log.is_state())
    }
}

/// Lists or prints the logs.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let found = arguments.choice.find()?;
    let listing = &found.listing;
    let is_kind = |log: &&Log| arguments.kind.as_ref().is_none_or(|kind| stem(&log.name) == kind);
    let all: Vec<_> = listing.logs.iter().filter(|log| !log.is_state()).filter(is_kind).collect();
    let logs = &all[..all.len().min(arguments.max)];
    if logs.is_empty() {
        return Err(Again::from_now().missing(&found));
    }
    let mut text = String::new();
    for log in logs {
        if arguments.kind.is_some() {
            text += &printed(log, usize::from(arguments.lines))?;
            // A log at a time, so that memory does not grow with their number.
            print(&std::mem::take(&mut text)).map_err(Error::output)?;
        } else {
            text += &format!("{}  {:>10}  {}\n", utc(log.modified), log.bytes, one_line(&log.location));
        }
    }
    let n_omitted = listing.n_omitted + all.len() - logs.len();
    if n_omitted > 0 {
        text += &format!("{n_omitted} older logs are not shown; pass --max N, --step or --kind\n");
    }
    print(&text).map_err(Error::output)
}

/// The end of a log, with its name.
fn printed(log: &Log, lines_max: usize) -> Result<String, Error> {
    let mut lines = log.lines()?;
    let (mut last, mut n_lines) = (VecDeque::new(), 0);
    for (number, line) in lines.by_ref() {
        n_lines = number;
        last.push_back(line);
        if last.len() > lines_max {
            last.pop_front();
        }
    }
    let omitted = n_lines - last.len() as u64;
    let mut text = format!("==> {} ({}) <==\n", one_line(&log.location), utc(log.modified));
    if omitted > 0 {
        text += &format!("... {omitted} lines\n");
    }
    last.iter().for_each(|line| text += &format!("{}\n", without_secrets(line)));
    if let Some(cut) = lines.cut {
        text += &format!("... {cut}\n");
    }
    Ok(text + "\n")
}

/// When EMR will have uploaded more logs.
pub(super) struct Again(SystemTime);

impl Again {
    /// One interval from now.
    pub fn from_now() -> Self {
        Self(SystemTime::now() + UPLOAD_INTERVAL)
    }

    /// The answer if there is no log.
    pub fn missing(&self, found: &FoundLogs) -> Error {
        let what = match &found.steps[..] {
            [] => String::new(),
            [step] => format!(" of step {}", one_line(step)),
            steps => format!(" of {} steps", steps.len()),
        };
        let location = &found.location;
        if found.is_remote {
            let message = format!(
                "{location}: found no log{what}; EMR uploads logs about every five minutes, so run this command again \
                 after {self} UTC, or check --log and --cluster"
            );
            Error::new(Exit::TryAgain, message)
        } else {
            let message = format!(
                "{location}: found no log{what}, expected stderr, syslog, controller or *.log; check the path"
            );
            Error::new(Exit::MissingInput, message)
        }
    }
}

impl fmt::Display for Again {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&utc(self.0)[11..16])
    }
}
