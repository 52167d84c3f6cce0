//! Forwards the ranks' output line by line, to the terminal with a rank prefix and to the rank's log.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;

use program::threads::locked;

/// Maximum length of a line. Longer lines are split.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// Erases a progress bar, which has no line end, from the terminal's current line. The next update draws it again.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Has no values: its channel only signals that all senders are dropped.
pub(super) enum Forwarding {}

/// The last non-empty line on standard error.
#[derive(Clone, Default)]
pub(super) struct LastLine(Arc<Mutex<Vec<u8>>>);

impl LastLine {
    pub(super) fn get(&self) -> Option<String> {
        let line = locked(&self.0);
        (!line.is_empty()).then(|| String::from_utf8_lossy(&line).trim().to_owned())
    }

    fn set(&self, line: &[u8]) {
        if !line.trim_ascii().is_empty() {
            let mut last = locked(&self.0);
            last.clear();
            last.extend_from_slice(line);
        }
    }
}

/// One of a rank's output streams.
pub(super) enum Stream {
    Out,
    Err(LastLine),
}

/// The destinations of a stream's lines.
pub(super) struct Lines {
    stream: Stream,
    /// None for rank 0, whose bytes are forwarded unchanged.
    prefix: Option<String>,
    log: Option<File>,
}

impl Lines {
    pub(super) fn of(rank: usize, stream: Stream, log: Option<File>) -> Self {
        // Rank 0 draws its progress bar on the terminal only if it has no log.
        let beside_a_bar = log.is_none() && io::stderr().is_terminal() && stream.is_terminal();
        let clear = if beside_a_bar { CLEAR_LINE } else { "" };
        let prefix = (rank > 0).then(|| format!("{clear}[rank {rank}] "));
        Self { stream, prefix, log }
    }

    /// Forwards lines in a thread until the stream ends. The thread holds the sender.
    pub(super) fn forward(
        mut self,
        pipe: impl Read + Send + 'static,
        forwarding: &Sender<Forwarding>,
    ) -> io::Result<()> {
        let forwarding = forwarding.clone();
        let lines = move || {
            self.take_all(pipe);
            drop(forwarding);
        };
        thread::Builder::new().name("output".to_owned()).spawn(lines).map(drop)
    }

    fn take_all(&mut self, pipe: impl Read) {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        // A read error counts as the end of the pipe.
        while (&mut pipe).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).is_ok_and(|n_bytes| n_bytes > 0) {
            self.write_log(&line);
            if let Stream::Err(last) = &self.stream {
                last.set(&line);
            }
            self.stream.write(&self.shown(&line));
            line.clear();
        }
    }

    fn shown(&self, line: &[u8]) -> Vec<u8> {
        let Some(prefix) = &self.prefix else { return line.to_vec() };
        let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
        [prefix.as_bytes(), line, end].concat()
    }

    /// A full disk ends the log, with one message, but not the training.
    fn write_log(&mut self, line: &[u8]) {
        if let Some(mut log) = self.log.take() {
            match log.write_all(line) {
                Ok(()) => self.log = Some(log),
                Err(error) => {
                    let ended = format!("its log ends here: {}\n", program::system::cause(&error));
                    Stream::Err(LastLine::default()).write(&self.shown(ended.as_bytes()));
                }
            }
        }
    }
}

impl Stream {
    fn is_terminal(&self) -> bool {
        match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Err(_) => io::stderr().is_terminal(),
        }
    }

    /// Write errors are ignored, so that ranks continue if nobody reads the output.
    fn write(&self, bytes: &[u8]) {
        // One write and one lock per line, so that lines of several ranks do not mix.
        let _ = match self {
            Self::Out => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush())
            }
            Self::Err(_) => io::stderr().lock().write_all(bytes),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_split_line_has_the_rank_prefix() {
        let of = |rank| Lines::of(rank, Stream::Out, File::open("/dev/null").ok());

        assert_eq!(of(3).shown(b"half"), b"[rank 3] half\n");
        assert_eq!(of(3).shown(b"whole\n"), b"[rank 3] whole\n");
        assert_eq!(of(0).shown(b"half"), b"half");
    }

    #[test]
    fn the_last_non_empty_line_is_kept() {
        let last = LastLine::default();
        assert_eq!(last.get(), None);

        last.set(b"first\n");
        last.set(b"trainer: disk full\n");
        last.set(b"  \n");

        assert_eq!(last.get().as_deref(), Some("trainer: disk full"));
    }
}
