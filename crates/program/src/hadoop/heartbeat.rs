//! Status lines for Hadoop, which kills a task that is silent for too long. They are sent only while work
//! advances, so Hadoop still kills a task that hangs.

use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::progress::Progress;

use crate::hadoop::report::report_status;

const LONGEST_SILENCE: Duration = Duration::from_secs(30);
/// Number of status lines within Hadoop's limit. Hadoop checks at its own intervals, and a machine may be
/// busy.
const SIGNS_WITHIN_LIMIT: u32 = 6;

/// The time between two status lines. `timeout_ms` is Hadoop's limit as set in the environment.
pub fn silence(timeout_ms: Option<&str>) -> Duration {
    let limit = timeout_ms.and_then(|limit| limit.parse().ok()).filter(|&limit: &u64| limit > 0);
    limit.map_or(LONGEST_SILENCE, |limit| {
        // Slightly less than an equal share of the limit, because the thread has to write after it wakes up.
        LONGEST_SILENCE.min(Duration::from_millis(limit) / SIGNS_WITHIN_LIMIT).mul_f64(0.9)
    })
}

/// A thread that reports progress while this value is alive.
#[derive(Debug)]
pub struct Heartbeat {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Starts a thread that writes a status to `log` at the end of each `silence` in which there was
    /// progress.
    pub fn start(
        progress: Progress,
        silence: Duration,
        mut log: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel();
        // Read before the thread starts, so that no progress in between is missed.
        let mut said = progress.steps();
        let thread = thread::Builder::new().name("heartbeat".to_owned()).spawn(move || {
            while stopped.recv_timeout(silence) == Err(RecvTimeoutError::Timeout) {
                let steps = progress.steps();
                if steps == said {
                    continue;
                }
                said = steps;
                // A log that cannot be written is no reason to stop.
                let _ = report_status(
                    &mut log,
                    &format!("running: progress counter {steps} (rows + words + bytes)"),
                );
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Heartbeat {
    /// Stops the thread, so that no status follows the last lines of the program.
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    #[test]
    fn silence_is_a_sixth_of_the_hadoop_limit_and_at_most_30_seconds() {
        let at_most = |timeout_ms: &str, most_s: f64| {
            let found = silence(Some(timeout_ms)).as_secs_f64();
            assert!(found <= most_s && found > 0.8 * most_s, "{timeout_ms}: {found}");
        };
        at_most("60000", 10.0);
        at_most("90000", 15.0);
        at_most("600000", 30.0);
        for none in [None, Some("0"), Some("never"), Some("")] {
            assert_eq!(silence(none), Duration::from_secs(30), "{none:?}");
        }
    }

    const LIMIT: Duration = Duration::from_secs(60);

    /// A log that sends each line to a channel.
    struct Lines(SyncSender<String>);

    impl Write for Lines {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.send(String::from_utf8_lossy(line).into_owned()).map_err(io::Error::other)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn started(progress: &Progress) -> (Heartbeat, Receiver<String>) {
        let (lines, said) = sync_channel(100);
        (Heartbeat::start(progress.clone(), Duration::from_millis(1), Lines(lines)).unwrap(), said)
    }

    #[test]
    fn a_status_follows_each_step() {
        let progress = Progress::default();
        let (heartbeat, said) = started(&progress);
        for steps in 1..=5 {
            progress.advance(1);
            assert_eq!(
                said.recv_timeout(LIMIT).unwrap(),
                format!("reporter:status:running: progress counter {steps} (rows + words + bytes)\n")
            );
        }
        drop(heartbeat);
        assert!(said.recv().is_err(), "nothing comes behind the end");
    }

    #[test]
    fn no_status_is_written_without_progress() {
        let progress = Progress::default();
        let (heartbeat, said) = started(&progress);
        progress.advance(1);
        said.recv_timeout(LIMIT).unwrap();
        // Many intervals.
        assert!(said.recv_timeout(Duration::from_millis(100)).is_err());
        drop(heartbeat);
    }
}
