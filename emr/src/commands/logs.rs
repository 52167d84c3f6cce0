//! `emr logs`: lists and prints logs of a cluster. Also finds the logs that `emr diagnose` reads.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use program::exit::{one_line, print};
use store::S3Options;

use super::subject;
use crate::Error;
use crate::logs::{Listing, Log, cluster_folder, list, stem, step_of};

const EXAMPLES: &str = "\
Examples:
  emr logs --cluster j-3ABCDEFGHIJKL --log s3://bucket/logs
      List the logs of a cluster, newest first

  emr logs --cluster j-3ABCDEFGHIJKL --log s3://bucket/logs --kind stderr
      Print the ends of its newest stderr logs";

/// EMR uploads logs at this interval.
const UPLOAD_INTERVAL: Duration = Duration::from_secs(300);

/// List or print logs of a cluster
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
    /// Job file, folders or files of logs, or s3:// URLs
    #[arg(value_name = "LOGS", required_unless_present = "cluster", conflicts_with_all = ["cluster", "log"])]
    pub places: Vec<String>,
    /// Logs of this cluster, such as j-3ABCDEFGHIJKL
    #[arg(long, value_name = "ID", requires = "log")]
    pub cluster: Option<String>,
    /// Log folder in the cluster's configuration (LogUri)
    #[arg(long, value_name = "URL", requires = "cluster")]
    pub log: Option<String>,
    /// Only this step and its containers, such as s-3ABCDEFGHIJKL
    #[arg(long, value_name = "ID")]
    pub step: Option<String>,
    /// Options for S3.
    #[arg(long, value_name = "LIST", help = store::S3_HELP, long_help = store::S3_LONG_HELP)]
    pub s3: Option<S3Options>,
}

/// The logs of a choice.
pub(super) struct Found {
    pub listing: Listing,
    /// Their folder, for messages.
    pub location: String,
    /// Whether EMR uploads them, so that they may appear later.
    pub is_remote: bool,
}

/// Lists the logs of a choice, newest first.
pub(super) fn found(choice: &Choice) -> Result<Found, Error> {
    let mut s3 = choice.s3.clone().unwrap_or_default();
    let places = match (&choice.cluster, &choice.log, &choice.places[..]) {
        (Some(cluster), Some(log), _) => vec![cluster_folder(log, cluster)],
        (_, _, [job]) if job.ends_with(".toml") => {
            let of_job = subject::logs_of(Path::new(job))?;
            if choice.s3.is_none() {
                s3 = of_job.options;
            }
            vec![cluster_folder(&of_job.log, &of_job.cluster)]
        }
        _ => choice.places.clone(),
    };
    let mut listing = Listing::default();
    for place in &places {
        let one = list(place, &s3)?;
        listing.logs.extend(one.logs);
        listing.n_omitted += one.n_omitted;
    }
    let is_of = |log: &Log| match (&choice.step, step_of(&log.name)) {
        (Some(step), Some(of)) => step == of,
        _ => true,
    };
    listing.logs.retain(is_of);
    // Only containers are left if the step has no log, and nothing shows to which step they belong.
    if let Some(step) = &choice.step
        && !listing.logs.iter().any(|log| step_of(&log.name) == Some(step))
    {
        listing.logs.clear();
    }
    let location = one_line(&places.join(", "));
    let is_remote = places.iter().all(|place| place.starts_with("s3"));
    Ok(Found { listing, location, is_remote })
}

/// Lists or prints the logs.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let Found { listing, location, is_remote } = found(&arguments.choice)?;
    let is_kind = |log: &&Log| arguments.kind.as_ref().is_none_or(|kind| stem(&log.name) == kind);
    let all: Vec<_> = listing.logs.iter().filter(is_kind).collect();
    let logs = &all[..all.len().min(arguments.max)];
    if logs.is_empty() {
        return Err(Again::from_now().missing(location, &arguments.choice, is_remote));
    }
    let mut text = String::new();
    for log in logs {
        if arguments.kind.is_some() {
            text += &printed(log, usize::from(arguments.lines))?;
            // A log at a time, so that memory does not grow with their number.
            print(&std::mem::take(&mut text)).map_err(Error::Output)?;
        } else {
            text += &format!("{}  {:>10}  {}\n", utc(log.modified), log.bytes, one_line(&log.location));
        }
    }
    let n_omitted = listing.n_omitted + all.len() - logs.len();
    if n_omitted > 0 {
        text += &format!("{n_omitted} older logs are not shown; pass --max N, --step or --kind\n");
    }
    print(&text).map_err(Error::Output)
}

/// The end of a log, with its name.
fn printed(log: &Log, lines_max: usize) -> Result<String, Error> {
    let mut lines = log.lines()?;
    let (mut last, mut n_lines) = (VecDeque::new(), 0);
    for (number, line) in lines.by_ref() {
        n_lines = number;
        last.push_back(one_line(&line));
        if last.len() > lines_max {
            last.pop_front();
        }
    }
    let omitted = n_lines - last.len() as u64;
    let mut text = format!("==> {} ({}) <==\n", one_line(&log.location), utc(log.modified));
    if omitted > 0 {
        text += &format!("... {omitted} lines\n");
    }
    last.iter().for_each(|line| text += &format!("{line}\n"));
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
    pub fn missing(&self, location: String, choice: &Choice, is_remote: bool) -> Error {
        let what =
            choice.step.as_ref().map(|step| format!(" of step {}", one_line(step))).unwrap_or_default();
        if is_remote {
            Error::NoLogYet { location, what, again_at: self.to_string() }
        } else {
            Error::NoLog { location, what }
        }
    }
}

impl fmt::Display for Again {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&utc(self.0)[11..16])
    }
}

/// A time as `2026-11-23 04:33:06`, in UTC.
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of year 0; a year that starts in March ends with its leap day.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, year) } else { (month - 9, year + 1) };
    let year = year + era * 400;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_709_251_199, "2024-02-29 23:59:59"),
            (1_795_408_386, "2026-11-23 04:33:06"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
