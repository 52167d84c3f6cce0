//! The logs of a job's failed tasks, from `yarn logs`: the containers whose logs report a failure, without their scripts
//! and settings, and without secrets.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use program::threads::detach;

use crate::diagnose::{is_of_master, is_sign};
use crate::interrupt::Interrupt;
use crate::logs::{Section, is_log};
use crate::secrets::without_secrets;

/// Number of tries, and the pause between them: nodes upload their logs some seconds after the end of a job.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_secs(3);
/// Time limit of a try.
const LIMIT: Duration = Duration::from_secs(120);
/// Maximum number of containers that are kept.
const CONTAINERS_MAX: usize = 20;
/// Maximum number of bytes of a container that are kept.
const CONTAINER_BYTES_MAX: usize = 1 << 20;

/// Writes the logs of the failed tasks of an application into a file. `false` if there are none.
pub fn fetch(application: &str, into: &Path, interrupt: &Interrupt) -> io::Result<bool> {
    for last in (0..TRIES).rev() {
        let n_kept = fetch_once(application, into)?;
        if n_kept > 0 {
            return Ok(true);
        }
        if last == 0 || interrupt.sleep(PAUSE) {
            break;
        }
    }
    Ok(false)
}

fn fetch_once(application: &str, into: &Path) -> io::Result<usize> {
    let mut yarn = Command::new("yarn");
    yarn.args(["logs", "-applicationId", application]);
    let mut child = yarn.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let Some(stdout) = child.stdout.take() else { return Ok(0) };
    let ended = ended_after(LIMIT, child);
    let copied = copy(BufReader::new(stdout), io::BufWriter::new(std::fs::File::create(into)?));
    drop(ended);
    copied
}

/// Ends a child that still runs after this time. Dropping the sender waits for a child that closed its output.
fn ended_after(limit: Duration, mut child: Child) -> Sender<()> {
    let (ended, end) = channel();
    detach(move || {
        if end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            let _ = child.kill();
        }
        let _ = child.wait();
    });
    ended
}

/// Copies the containers whose logs report a failure; the application master only if there is no other. Returns their
/// number.
fn copy(mut lines: impl BufRead, mut into: impl Write) -> io::Result<usize> {
    let mut section = Section::default();
    let (mut container, mut master, mut n_kept) = (Container::default(), None, 0);
    let mut line = Vec::new();
    while n_kept < CONTAINERS_MAX && lines.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        let is_heading = section.read(&text);
        if section.task != container.id {
            let next = Container { id: section.task.clone(), ..Container::default() };
            n_kept += std::mem::replace(&mut container, next).write(&mut into, &mut master)?;
        }
        container.add(&text, is_heading, &section.name);
    }
    n_kept += container.write(&mut into, &mut master)?;
    if let (0, Some(master)) = (n_kept, master) {
        into.write_all(master.text.as_bytes())?;
        n_kept = 1;
    }
    into.flush()?;
    Ok(n_kept)
}

#[derive(Default)]
struct Container {
    id: String,
    text: String,
    has_failed: bool,
}

impl Container {
    fn add(&mut self, line: &str, is_heading: bool, log: &str) {
        // Standard output of a task may contain anything that a program printed.
        let is_kept = !self.id.is_empty() && is_log(log) && log != "stdout";
        if (is_kept || is_heading) && self.text.len() + line.len() < CONTAINER_BYTES_MAX {
            self.has_failed |= is_kept && is_sign(line);
            self.text += &without_secrets(line);
            self.text.push('\n');
        }
    }

    fn write(self, into: &mut impl Write, master: &mut Option<Self>) -> io::Result<usize> {
        if !self.has_failed {
            return Ok(0);
        }
        if is_of_master(&self.id) {
            *master = Some(self);
            return Ok(0);
        }
        into.write_all(self.text.as_bytes())?;
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGS: &str = "\
Container: container_17_0001_01_000001 on h_1
LogType:syslog
2026-11-28 ERROR [main] Diagnostics report: Error: java.io.EOFException: Unexpected end of input stream
Container: container_17_0001_01_000002 on h_1
LogAggregationType: AGGREGATED
LogType:launch_container.sh
export AWS_SECRET_ACCESS_KEY=\"wJalr\"
End of LogType:launch_container.sh
Container: container_17_0001_01_000002 on h_1
LogType:stdout
a record
Container: container_17_0001_01_000002 on h_1
LogType:syslog
2026-11-28 INFO [main] MapTask: Processing split: hdfs://h/in/a.gz:0+10
2026-11-28 WARN [main] YarnChild: Exception running child : java.io.EOFException: Unexpected end of input stream
Container: container_17_0001_01_000003 on h_2
LogType:syslog
2026-11-28 INFO [main] MapTask: Processing split: hdfs://h/in/b.gz:0+10
";

    fn copied(logs: &str) -> (usize, String) {
        let mut into = Vec::new();
        let n_kept = copy(logs.as_bytes(), &mut into).unwrap();
        (n_kept, String::from_utf8(into).unwrap())
    }

    #[test]
    fn only_logs_of_failed_tasks_are_kept() {
        let expected = "\
Container: container_17_0001_01_000002 on h_1
LogType:launch_container.sh
Container: container_17_0001_01_000002 on h_1
LogType:stdout
Container: container_17_0001_01_000002 on h_1
LogType:syslog
2026-11-28 INFO [main] MapTask: Processing split: hdfs://h/in/a.gz:0+10
2026-11-28 WARN [main] YarnChild: Exception running child : java.io.EOFException: Unexpected end of input stream
";
        assert_eq!(copied(LOGS), (1, expected.to_owned()));
    }

    #[test]
    fn the_master_is_kept_if_no_task_failed() {
        let (of_master, _) = LOGS.split_once("Container: container_17_0001_01_000002").unwrap();
        assert_eq!(copied(of_master), (1, of_master.to_owned()));
        assert_eq!(copied("Log aggregation has not completed or is not enabled.\n"), (0, String::new()));
    }
}
