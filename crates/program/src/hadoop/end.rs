//! Ends a program that may be a Hadoop task: prints an error to standard error, returns an exit code, and
//! waits until Hadoop has the status.

use std::env;
use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use crate::exit::{Exit, one_line};

use crate::hadoop::environment::{Runner, Variable};
use crate::hadoop::report::report_status;

/// Ends a program that may be a Hadoop task. Hadoop's interface shows the status of a task and the end of its
/// log, so a task writes `why` to both, and waits until the status has been reported.
pub fn end(exit: Exit, program: &str, why: &str) -> ExitCode {
    let is_task = Runner::of_this_process() == Runner::Hadoop;
    if is_task {
        let _ = report_status(&mut io::stderr(), &format!("FATAL {program}: {}", one_line(why)));
    }
    let code = exit.end(program, why);
    if is_task {
        thread::sleep(until_reported(|name| env::var(name).ok()?.parse().ok()));
    }
    code
}

/// The time after which a status that is set now has reached the application master of the Hadoop job. At the
/// end of each interval, Hadoop sends the status that the task had at the end of the previous interval. A
/// status that a task sets after that and before it exits is never sent. `milliseconds` returns the value of
/// an environment variable.
fn until_reported(milliseconds: impl Fn(&'static str) -> Option<u64>) -> Duration {
    const LONGEST: Duration = Duration::from_secs(30);
    let of = |variable: Variable| variable.names().iter().copied().find_map(&milliseconds);
    // As in MRJobConfUtil.getTaskProgressReportInterval.
    let of_timeout = || of(Variable::Timeout).map(|timeout| timeout / 100);
    let interval = of(Variable::ReportInterval).or_else(of_timeout).unwrap_or(3000);
    // Two intervals and the time to send.
    Duration::from_millis(interval).mul_f64(2.2).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_task_waits_until_its_status_is_reported() {
        let stays = |of: &'static [(&'static str, u64)]| {
            let value = move |asked| of.iter().find(|(name, _)| *name == asked).map(|(_, value)| *value);
            until_reported(value).as_millis()
        };
        const REPORT_INTERVAL: &str = "mapreduce_task_progress_report_interval";
        assert_eq!(stays(&[]), 6600);
        assert_eq!(stays(&[("mapreduce_task_timeout", 600_000)]), 13_200);
        assert_eq!(stays(&[("mapred_task_timeout", 60_000), (REPORT_INTERVAL, 1000)]), 2200);
        assert_eq!(stays(&[(REPORT_INTERVAL, u64::MAX)]), 30_000);
    }
}
