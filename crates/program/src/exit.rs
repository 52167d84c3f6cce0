//! How all programs end: with an exit code after BSD's sysexits, and what went wrong on one line, once.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use crate::place::masked;

/// Why a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The arguments make no sense.
    Usage = 64,
    /// The input is bad past its limit.
    BadInput = 65,
    /// An input is missing or does not match its digest.
    MissingInput = 66,
    /// A remote service stayed away.
    Unavailable = 69,
    /// An internal promise broke.
    Internal = 70,
    /// Reading or writing failed.
    Io = 74,
    /// Worth trying again.
    TryAgain = 75,
    /// The settings make no sense.
    Settings = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Exit {
    /// Says on standard error why the program ends, and gives its exit code.
    pub fn end(self, program: &str, why: &str) -> ExitCode {
        // Where nobody listens, the exit code has to do.
        let _ = writeln!(io::stderr(), "{program}: {}", one_line(why));
        self.into()
    }

    /// Ends a program that may be a task of Hadoop, whose operator is shown a task's status and the end of its log: then
    /// both say why, and the program stays until the status has gone its way. `variable` looks into the environment.
    pub fn end_task(
        self,
        program: &str,
        why: &str,
        variable: impl Fn(&'static str) -> Option<OsString>,
    ) -> ExitCode {
        let is_task = Runner::of(&variable) == Runner::Hadoop;
        if is_task {
            let _ = writeln!(io::stderr(), "reporter:status:FATAL {program}: {}", one_line(why));
        }
        let code = self.end(program, why);
        if is_task {
            thread::sleep(until_reported(|name| variable(name)?.to_str()?.parse().ok()));
        }
        code
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
    /// Who it is by the environment, which `variable` looks into.
    pub fn of(variable: impl Fn(&'static str) -> Option<OsString>) -> Self {
        let is_task = |name| variable(name).is_some_and(|attempt| !attempt.is_empty());
        if ATTEMPT.into_iter().any(is_task) { Self::Hadoop } else { Self::User }
    }
}

/// How long until a status that was said now has reached the master of a Hadoop job. At the end of each of its intervals
/// the framework sends what it knew at the end of the one before, and what a task says later than that before it ends, it
/// never sends. `milliseconds` are those of a variable of the environment.
fn until_reported(milliseconds: impl Fn(&'static str) -> Option<u64>) -> Duration {
    const LONGEST: Duration = Duration::from_secs(30);
    // As MRJobConfUtil.getTaskProgressReportInterval has it.
    let of_timeout = || TIMEOUT.into_iter().find_map(&milliseconds).map(|timeout| timeout / 100);
    let interval = milliseconds(REPORT_INTERVAL).or_else(of_timeout).unwrap_or(3000);
    // Two, and the time that it takes.
    Duration::from_millis(interval).mul_f64(2.2).min(LONGEST)
}

/// Hadoop's names for the silence after which it kills a task, in milliseconds; 0 is never.
pub const TIMEOUT: [&str; 2] = ["mapreduce_task_timeout", "mapred_task_timeout"];
/// Hadoop's name for the time between two reports of a task to the job's master, in milliseconds.
const REPORT_INTERVAL: &str = "mapreduce_task_progress_report_interval";

/// Hadoop's names for the attempt of a task, the newer and the older one.
pub const ATTEMPT: [&str; 2] = ["mapreduce_task_attempt_id", "mapred_task_id"];

/// Ends a program whose arguments were refused, or whose help was asked for; `said` is what the parser of arguments
/// has to say about it. Of a refusal the list of all options is left to `--help`.
pub fn usage(program: &str, said: &impl Display, is_refusal: bool) -> ExitCode {
    let said = said.to_string();
    if is_refusal {
        return Exit::Usage.end(program, &refusal(&said));
    }
    let _ = print(&said);
    ExitCode::SUCCESS
}

/// Says something on standard output where that is for people: who closes it early wants no more of it. A full disk is
/// another matter.
pub fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// The paragraphs that say what is wrong, without those on how to use the program.
fn refusal(said: &str) -> String {
    let about = |paragraph: &&str| !paragraph.starts_with("Usage:") && !paragraph.starts_with("For more");
    let paragraphs = said.trim().trim_start_matches("error: ").split("\n\n").filter(about);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    paragraphs.map(words).chain(["--help tells more".to_owned()]).collect::<Vec<_>>().join("; ")
}

/// An error with all its causes.
pub fn chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(": ");
        message.push_str(&error.to_string());
        cause = error.source();
    }
    message
}

/// A record or a file name may hold line ends, or what a terminal takes for commands; a URL, or an argument that its
/// parser shows, a key.
fn one_line(message: &str) -> String {
    masked(&message.replace(char::is_control, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_arguments_is_one_line() {
        let said = "error: unexpected argument '--kep' found\n\n  tip: a similar argument exists: '--keep'\n\n\
                    Usage: reducer --run <URL>\n\nFor more information, try '--help'.\n";
        let expected =
            "unexpected argument '--kep' found; tip: a similar argument exists: '--keep'; --help tells more";
        assert_eq!(refusal(said), expected);
        let said = "error: the following required arguments were not provided:\n  --run <URL>\n\nUsage: x\n";
        let expected = "the following required arguments were not provided: --run <URL>; --help tells more";
        assert_eq!(refusal(said), expected);
    }

    #[test]
    fn a_failing_task_stays_until_its_status_was_reported() {
        let stays = |of: &'static [(&'static str, u64)]| {
            let value = move |asked| of.iter().find(|(name, _)| *name == asked).map(|(_, value)| *value);
            until_reported(value).as_millis()
        };
        assert_eq!(stays(&[]), 6600);
        assert_eq!(stays(&[("mapreduce_task_timeout", 600_000)]), 13_200);
        assert_eq!(stays(&[("mapred_task_timeout", 60_000), (REPORT_INTERVAL, 1000)]), 2200);
        assert_eq!(stays(&[(REPORT_INTERVAL, u64::MAX)]), 30_000);
    }

    #[test]
    fn a_message_commands_no_terminal() {
        assert_eq!(one_line("a\r\nb\u{1b}[2Jc\u{9b}d"), "a  b [2Jc d");
    }

    #[test]
    fn a_message_shows_no_key() {
        assert_eq!(one_line("s3://AKIA:c2V/jcm@bucket/x: not there"), "s3://***@bucket/x: not there");
    }
}
