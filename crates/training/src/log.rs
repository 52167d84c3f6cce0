//! The metrics of a training, in its folder.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use batches::balance::Decision;
use runs::tensorboard::EventFile;
use runs::training::{FORMAT_VERSION, Line, METRICS, TENSORBOARD};

use crate::error::{Error, Result};

/// Metrics in the training folder: `metrics.jsonl`, and the same values for TensorBoard. Only on rank 0.
pub struct Log {
    folder: PathBuf,
    file: File,
    events: EventFile,
    begin: Instant,
    /// The first error. It is reported at the end, because it does not stop the training.
    failed: Option<Error>,
}

impl Log {
    /// Appends to the metrics of a folder, from this number of steps on.
    pub fn begin(folder: &Path, step: u64, world_size: usize, device: String) -> Result<Self> {
        let metrics = folder.join(METRICS);
        let file = open_lines(&metrics).map_err(|source| Error::io(&metrics, source))?;
        let tensorboard = folder.join(TENSORBOARD);
        let events =
            EventFile::create(&tensorboard, step).map_err(|source| Error::io(&tensorboard, source))?;
        let mut log = Self { folder: folder.to_owned(), file, events, begin: Instant::now(), failed: None };
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        log.write(&Line::Start { version: FORMAT_VERSION, unix_s, step, world_size, device });
        Ok(log)
    }

    /// Appends a line.
    pub fn write(&mut self, line: &Line) {
        let written = serde_json::to_string(line).map_err(|error| Error::internal(&error)).and_then(|json| {
            writeln!(self.file, "{json}").map_err(|source| Error::io(&self.folder.join(METRICS), source))?;
            self.events.add(line).map_err(|source| Error::io(self.events.path(), source))
        });
        self.keep(written);
    }

    /// Keeps an error that does not stop the training.
    pub fn keep(&mut self, done: Result<()>) {
        if let Err(error) = done {
            self.failed.get_or_insert(error);
        }
    }

    /// Appends the decisions of a checkpoint, unless the folder has them. Without them, the shares of a training that is
    /// resumed in another folder could not be replayed.
    pub fn restore(&mut self, step: u64, decisions: &[Decision]) {
        if runs::training::decisions(&self.folder).is_ok_and(|known| known == decisions) {
            return;
        }
        for decision in decisions {
            self.write(&Line::Shares { step, decision: decision.clone() });
        }
    }

    /// Seconds since the log was opened.
    pub fn elapsed_s(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// Returns the first error of the writes so far.
    pub fn check(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Returns the first error of a write.
    pub fn finish(self) -> Result<()> {
        self.failed.map_or(Ok(()), Err)
    }
}

/// Opens a file of lines to append to it. If a killed process has left an incomplete line, a line end is
/// written first.
fn open_lines(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decisions_of_a_checkpoint_are_appended_if_the_folder_lacks_them() {
        let folder = tempfile::tempdir().unwrap();
        let decision = |from_batch| Decision {
            from_batch,
            parts: vec![3, 5],
            reason: batches::balance::Reason::Faster { before: 20, after: 10 },
        };
        let log = || Log::begin(folder.path(), 30, 2, "cpu".to_owned()).unwrap();
        let of_checkpoint = [decision(5), decision(28)];
        let lines = |event: &str| {
            let lines = std::fs::read_to_string(folder.path().join(METRICS)).unwrap();
            lines.matches(&format!("\"event\":\"{event}\"")).count()
        };

        // Another folder, which has no decision of the first one; and again in the same folder.
        for n_starts in 1..=2 {
            let mut log = log();
            log.restore(30, &of_checkpoint);
            assert_eq!((lines("start"), lines("shares")), (n_starts, 2));
            assert_eq!(runs::training::decisions(folder.path()).unwrap(), of_checkpoint);
            log.finish().unwrap();
        }
        // A folder that has lost some of them.
        let mut log = log();
        log.restore(30, &[decision(5), decision(9), decision(28)]);
        let expected = [decision(5), decision(9), decision(28)];
        assert_eq!(runs::training::decisions(folder.path()).unwrap(), expected);
    }
}
