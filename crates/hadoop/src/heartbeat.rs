//! Signs of life for Hadoop, which kills a task that is silent for too long. Only while work advances: a task that
//! hangs falls silent, and is killed.

use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use program::progress::Progress;

use crate::report::report_status;

const LONGEST_SILENCE: Duration = Duration::from_secs(30);
/// So many signs come within Hadoop's limit: it looks at times of its own, and a machine may be busy.
const SIGNS_WITHIN_LIMIT: u32 = 6;

/// How long a task may be silent while it works, given Hadoop's limit as its environment has it.
pub fn silence(timeout_ms: Option<&str>) -> Duration {
    let limit = timeout_ms.and_then(|limit| limit.parse().ok()).filter(|&limit: &u64| limit > 0);
    limit.map_or(LONGEST_SILENCE, |limit| {
        // A little less than the share: what wakes up after it has still to write.
        LONGEST_SILENCE.min(Duration::from_millis(limit) / SIGNS_WITHIN_LIMIT).mul_f64(0.9)
    })
}

/// A thread that says, as long as this value lives, how far the work has come.
#[derive(Debug)]
pub struct Heartbeat {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Writes a status to `log` whenever there was progress within `silence`.
    pub fn start(
        progress: Progress,
        silence: Duration,
        mut log: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel();
        // Before the thread has begun, so that nothing in between is missed.
        let mut said = progress.steps();
        let thread = thread::Builder::new().name("heartbeat".to_owned()).spawn(move || {
            while stopped.recv_timeout(silence) == Err(RecvTimeoutError::Timeout) {
                let steps = progress.steps();
                if steps == said {
                    continue;
                }
                said = steps;
                // Where nobody listens there is nobody to tell.
                let _ = report_status(&mut log, &format!("at work: {steps} rows, words and bytes so far"));
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Heartbeat {
    /// Ends the thread, so that no status comes behind the last words.
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
    fn silence_is_a_sixth_of_hadoops_limit_and_half_a_minute_at_most() {
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

    /// A log that hands over each line.
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
    fn a_sign_comes_after_each_step_that_is_waited_for() {
        let progress = Progress::default();
        let (heartbeat, said) = started(&progress);
        for steps in 1..=5 {
            progress.advance(1);
            assert_eq!(
                said.recv_timeout(LIMIT).unwrap(),
                format!("reporter:status:at work: {steps} rows, words and bytes so far\n")
            );
        }
        drop(heartbeat);
        assert!(said.recv().is_err(), "nothing comes behind the end");
    }

    #[test]
    fn work_that_stands_still_is_silent() {
        let progress = Progress::default();
        let (heartbeat, said) = started(&progress);
        progress.advance(1);
        said.recv_timeout(LIMIT).unwrap();
        // Many silences long.
        assert!(said.recv_timeout(Duration::from_millis(100)).is_err());
        drop(heartbeat);
    }
}
