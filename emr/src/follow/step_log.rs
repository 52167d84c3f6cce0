//! The log of a Hadoop step in S3: `LOG/j-…/steps/s-…/stderr.gz`, the output of the job client.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use store::{Object, S3Options};

use crate::cluster::Cluster;

/// Maximum size of a log, unpacked. The client of a long job writes some 100 bytes per second.
const LOG_BYTES_MAX: u64 = 32 << 20;

/// The output of the job client.
#[derive(Clone, Debug)]
pub struct StepLog(String);

impl StepLog {
    /// Reads the log of a step. `None` if the cluster keeps no logs, or if there is none yet.
    pub fn read(cluster: &Cluster, step: &str, options: &S3Options) -> Option<Self> {
        let folder = cluster.log_uri.as_deref()?.trim_end_matches('/');
        let url = format!("{folder}/{}/steps/{step}/", cluster.id);
        // EMR reports the folder with the scheme of its older file system.
        let url = url.replacen("s3n://", "s3://", 1);
        let objects = store::objects(&url, options).ok()?;
        let named = |name: &str| objects.iter().find(|object| object.name().ends_with(name));
        named("/stderr.gz").or_else(|| named("/stderr")).and_then(text).map(Self)
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

/// The exit code of the program that made a step fail, from the output of Hadoop's job client or of EMR's step
/// runner. The last one counts: Hadoop repeats a failing task.
pub fn exit_code(log: &str) -> Option<u8> {
    let after = |line: &str, sign: &str| -> Option<u8> {
        let (_, rest) = line.split_once(sign)?;
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let of_line = |line: &str| {
        let signs = ["subprocess failed with code ", "exiting with ret '", "exited with code "];
        signs.iter().find_map(|sign| after(line, sign))
    };
    log.lines().rev().find_map(of_line).filter(|code| *code != 0)
}

/// `… INFO mapreduce.Job:  map 100% reduce 33%`
fn percent(line: &str) -> Option<(u8, u8)> {
    let (_, rest) = line.split_once(" map ")?;
    let (maps, rest) = rest.split_once("% reduce ")?;
    let (reduces, _) = rest.split_once('%')?;
    Some((maps.parse().ok()?, reduces.parse().ok()?))
}

fn text(object: &Object) -> Option<String> {
    let reader = object.reader().ok()?;
    let mut bytes = Vec::new();
    // An unfinished gzip file, which EMR replaces later, ends with an error; the text before it counts.
    let _ = match object.name().ends_with(".gz") {
        true => MultiGzDecoder::new(reader).take(LOG_BYTES_MAX).read_to_end(&mut bytes),
        false => reader.take(LOG_BYTES_MAX).read_to_end(&mut bytes),
    };
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
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
        assert_eq!(exit_code("INFO Command exiting with ret '0'\nmap 100% reduce 100%"), None);
    }
}
