//! What ranks print, line by line: to the terminal, with the rank in front, and to the rank's log.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A longer line is cut into several.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// Takes a progress bar, which ends without a line end, off the terminal's line; its next drawing puts it back.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Nothing: a channel of this tells only when all its senders are gone.
pub(super) enum Forwarding {}

/// The last line on standard error that was not empty.
#[derive(Clone, Default)]
pub(super) struct LastLine(Arc<Mutex<Vec<u8>>>);

impl LastLine {
    pub(super) fn get(&self) -> Option<String> {
        let line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!line.is_empty()).then(|| String::from_utf8_lossy(&line).trim().to_owned())
    }

    fn set(&self, line: &[u8]) {
        if !line.trim_ascii().is_empty() {
            let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            last.clear();
            last.extend_from_slice(line);
        }
    }
}

/// One of a rank's two streams.
pub(super) enum Stream {
    Out,
    Err(LastLine),
}

/// What becomes of a stream's lines.
pub(super) struct Lines {
    stream: Stream,
    /// None: rank 0, whose bytes pass as they are.
    prefix: Option<String>,
    log: Option<File>,
}

impl Lines {
    pub(super) fn of(rank: usize, stream: Stream, log: Option<File>) -> Self {
        // Only where rank 0 has no log does it draw its bar on the terminal.
        let beside_a_bar = log.is_none() && io::stderr().is_terminal() && stream.is_terminal();
        let clear = if beside_a_bar { CLEAR_LINE } else { "" };
        let prefix = (rank > 0).then(|| format!("{clear}[rank {rank}] "));
        Self { stream, prefix, log }
    }

    /// Takes lines until the stream ends, in a thread that holds the sender as long.
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
        // A pipe that cannot be read has ended for us.
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

    /// A training is worth more than its log: a full disk ends the log, and is told once.
    fn write_log(&mut self, line: &[u8]) {
        if let Some(mut log) = self.log.take() {
            match log.write_all(line) {
                Ok(()) => self.log = Some(log),
                Err(error) => {
                    let ended = format!("its log ends here, for it cannot be written: {error}\n");
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

    /// Where nobody listens, ranks go on.
    fn write(&self, bytes: &[u8]) {
        // One write and one lock for a line, so that lines of several ranks do not mix.
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
    fn a_cut_line_stays_a_line_of_its_rank() {
        let of = |rank| Lines::of(rank, Stream::Out, File::open("/dev/null").ok());

        assert_eq!(of(3).shown(b"half"), b"[rank 3] half\n");
        assert_eq!(of(3).shown(b"whole\n"), b"[rank 3] whole\n");
        assert_eq!(of(0).shown(b"half"), b"half");
    }

    #[test]
    fn the_last_line_that_says_something_is_kept() {
        let last = LastLine::default();
        assert_eq!(last.get(), None);

        last.set(b"first\n");
        last.set(b"trainer: disk full\n");
        last.set(b"  \n");

        assert_eq!(last.get().as_deref(), Some("trainer: disk full"));
    }
}
