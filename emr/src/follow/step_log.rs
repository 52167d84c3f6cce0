//! The logs of a step in S3: `LOG/j-…/steps/s-…/syslog.gz` has the output of Hadoop's job client, `stderr.gz` that of
//! other programs, and `controller.gz` the exit code of the step.

use store::S3Options;

use crate::cluster::Cluster;
use crate::logs::{cluster_folder, list, stem};
use crate::runner::is_of_programs;

/// Logs of a step, in the order in which a cause is more specific. The last one counts most.
const NAMES: [&str; 3] = ["controller", "stderr", "syslog"];

/// The text of all logs of a step.
#[derive(Clone, Debug)]
pub struct StepLog(String);

impl StepLog {
    /// Reads the logs of a step. `None` if the cluster keeps no logs, or if there is none yet.
    pub fn read(cluster: &Cluster, step: &str, options: &S3Options) -> Option<Self> {
        let folder = cluster_folder(cluster.log_uri.as_deref()?, &cluster.id);
        let logs = list(&format!("{folder}steps/{step}/"), options).ok()?.logs;
        let text = |name: &str| {
            let log = logs.iter().find(|log| stem(&log.name) == name)?;
            // An unfinished gzip file, which EMR replaces later, ends with its last whole line.
            Some(log.lines().ok()?.map(|(_, line)| line + "\n").collect())
        };
        let texts: Vec<String> = NAMES.into_iter().filter_map(text).collect();
        (!texts.is_empty()).then(|| Self(texts.concat()))
    }

    /// Progress of maps and reduces in percent, of the last line that has it.
    pub fn percent(&self) -> Option<(u8, u8)> {
        self.0.lines().rev().find_map(percent)
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// The exit code of the program of this project that made a step fail, from the output of Hadoop's job client or of EMR's
/// step runner. The last one counts: Hadoop repeats a failing task. Codes of the job client and of shells do not count.
pub fn exit_code(log: &str) -> Option<u8> {
    let after = |line: &str, sign: &str| -> Option<u8> {
        let (_, rest) = line.split_once(sign)?;
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|code| is_of_programs(*code))
    };
    let of_line = |line: &str| {
        let signs = ["subprocess failed with code ", "failed with exitCode ", "exiting with ret '"];
        signs.iter().find_map(|sign| after(line, sign))
    };
    log.lines().rev().find_map(of_line)
}

/// `… INFO mapreduce.Job:  map 100% reduce 33%`
fn percent(line: &str) -> Option<(u8, u8)> {
    let (_, rest) = line.split_once(" map ")?;
    let (maps, rest) = rest.split_once("% reduce ")?;
    let (reduces, _) = rest.split_once('%')?;
    Some((maps.parse().ok()?, reduces.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
26/11/23 04:00:01 INFO mapreduce.Job: Running job: job_1700000000000_0001
26/11/23 04:00:09 INFO mapreduce.Job:  map 0% reduce 0%
26/11/23 04:01:09 INFO mapreduce.Job:  map 100% reduce 33%
26/11/23 04:01:19 INFO mapreduce.Job: Task Id : attempt_1700000000000_0001_r_000000_0, Status : FAILED
Error: java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): subprocess failed with code 65
";

    #[test]
    fn the_last_percentages_of_the_job_client_count() {
        assert_eq!(StepLog(LOG.to_owned()).percent(), Some((100, 33)));
        assert_eq!(StepLog("no job".to_owned()).percent(), None);
    }

    #[test]
    fn the_exit_code_of_a_program_is_found_in_logs() {
        assert_eq!(exit_code(LOG), Some(65));
        assert_eq!(exit_code("INFO Command exiting with ret '78'"), Some(78));
        assert_eq!(exit_code("WARN Step failed with exitCode 66 and took 9 seconds"), Some(66));
        let with_wrapper = format!("{LOG}Streaming Command Failed!\nCommand exiting with ret '1'\n");
        assert_eq!(exit_code(&with_wrapper), Some(65));
        assert_eq!(exit_code("INFO Command exiting with ret '0'\nmap 100% reduce 100%"), None);
    }
}
