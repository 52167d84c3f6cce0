//! What all steps of a run share: the options, the input, the memory for stored data, and threads that stop together.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use corpus::encoding::Encoding;
use corpus::format::Format;
use corpus::ledger::Limits;
use corpus::lines::LINE_BYTES_MAX;
use corpus::settings::Settings;
use making::{DatasetOptions, Making};
use program::exit::{Exit, Failed};
use program::system::Failure;
use reading::{Reading, ReadingOptions};

use crate::Result;
use crate::codebook::StoredWords;
use crate::extra_file::ExtraFile;
use crate::scratch::Scratch;

/// Interval at which bars are updated and an interruption is detected.
const TICK: Duration = Duration::from_millis(100);

/// Share of the memory for stored reviews and rows, in eighths.
const WAITING_EIGHTHS: usize = 3;
/// Partitions that are being folded take 1/`FOLDING_PART` of the memory. Words without a code take the same
/// share.
const FOLDING_PART: usize = 8;
/// Threads for Parquet files take 1/`TABLES_PART` of the memory, unless it is too little for one. So do record batches of
/// Arrow files.
const TABLES_PART: usize = 4;
/// Memory of such a thread: the row groups that it makes and that wait for it.
const TABLE_THREAD_BYTES: usize = 60 << 20;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The format of lines.
    pub format: Format,
    /// The encoding of lines.
    pub encoding: &'static Encoding,
    /// Limits of bad lines and of lines that are not in their encoding.
    pub limits: Limits,
    /// Settings of rows.
    pub settings: Settings,
    /// The dataset to make.
    pub dataset: DatasetOptions,
    /// Approximate memory use.
    pub memory_bytes: usize,
    /// Number of worker threads.
    pub threads: NonZeroUsize,
    /// Folder for temporary files.
    pub scratch: PathBuf,
    /// The file for bad lines, if they are to be listed.
    pub rejects: Option<ExtraFile>,
    /// The table for the origins of reviews, if it is to be written.
    pub origins: Option<ExtraFile>,
}

impl Options {
    /// How texts and ratings are found in the input, by the names of flags.
    pub(crate) fn found_by(&self) -> BTreeMap<String, String> {
        let encoding = ("encoding", self.encoding.name().to_owned());
        let settings = self.format.of_reviews().into_iter().chain([encoding]);
        settings.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The words of their texts with which rows are stored.
    pub(crate) fn stored_words(&self) -> StoredWords {
        if self.dataset.texts.is_some() { StoredWords::All } else { StoredWords::Kept }
    }

    /// Number of threads that encode or read Parquet files: at least one, and more if there is memory.
    pub(crate) fn table_threads(&self) -> NonZeroUsize {
        let most = self.tables_bytes() / TABLE_THREAD_BYTES;
        self.threads.min(NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN))
    }

    /// Returns an error if two outputs have the same path, before any input is read.
    pub fn check_paths(&self, making: &Making<'_>) -> Result<()> {
        let dataset = making.files();
        let mut others: Vec<_> = dataset.iter().map(|(name, path)| (*name, path.as_path())).collect();
        for file in self.rejects.iter().chain(&self.origins) {
            file.check_alone(others.iter().copied())?;
            others.push((file.flag(), file.path()));
        }
        Ok(())
    }

    /// Memory for partitions that are being folded, for all threads together.
    pub(crate) fn folding_bytes(&self) -> usize {
        self.memory_bytes / FOLDING_PART
    }

    /// How the input is read.
    pub fn reading(&self) -> ReadingOptions {
        ReadingOptions {
            format: self.format.clone(),
            encoding: self.encoding,
            line_bytes_max: LINE_BYTES_MAX,
            threads: self.threads,
            streams_max: self.threads,
            batches_bytes: self.tables_bytes(),
            columns: reading::KeptColumns::OfFields,
        }
    }

    /// Memory for tables that are read or written.
    fn tables_bytes(&self) -> usize {
        self.memory_bytes / TABLES_PART
    }
}

/// The error of an interrupted program.
pub fn interrupted() -> Failed {
    Failed::new(Exit::TryAgain, "interrupted; no dataset was written: run it again")
}

/// A run.
pub struct Job<'a> {
    /// The input.
    pub reading: &'a Reading,
    /// The options.
    pub options: &'a Options,
    /// Storage of reviews and rows.
    pub scratch: Scratch,
    interrupt: &'a AtomicBool,
    /// Whether all threads must stop.
    pub stopped: AtomicBool,
}

impl<'a> Job<'a> {
    /// Begins a run, which setting `interrupt` stops.
    pub fn new(reading: &'a Reading, options: &'a Options, interrupt: &'a AtomicBool) -> Self {
        let scratch = Scratch::new(&options.scratch, options.memory_bytes / 8 * WAITING_EIGHTHS);
        Self { reading, options, scratch, interrupt, stopped: AtomicBool::new(false) }
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.options.threads.get()
    }

    /// Whether the program was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Runs `work` on all threads and calls `tick` at intervals. Returns the results of all threads, or the
    /// first error.
    pub fn in_threads<T: Send>(
        &self,
        work: impl Fn() -> Result<T> + Sync,
        mut tick: impl FnMut(),
    ) -> Result<Vec<T>> {
        let (done, ends) = channel();
        let work = &work;
        thread::scope(|scope| {
            for _ in 0..self.threads() {
                let (done, stop) = (done.clone(), StopIfLost(self));
                let work = move || {
                    // The receiver waits for all threads.
                    let _ = done.send(work());
                    drop(stop);
                };
                if let Err(error) = thread::Builder::new().spawn_scoped(scope, work) {
                    self.stop();
                    let why = Failure::reading("start a thread", &error);
                    return Err(Failed::new(Exit::Io, format!("{why}; or choose fewer --threads")));
                }
            }
            drop(done);
            let (mut all, mut failed) = (Vec::new(), None);
            loop {
                match ends.recv_timeout(TICK) {
                    Ok(Ok(end)) => all.push(end),
                    Ok(Err(error)) => {
                        self.stop();
                        failed = failed.or(Some(error));
                    }
                    Err(RecvTimeoutError::Timeout) if self.is_interrupted() => {
                        self.stop();
                        failed = failed.or_else(|| Some(interrupted()));
                    }
                    Err(RecvTimeoutError::Timeout) => tick(),
                    Err(RecvTimeoutError::Disconnected) => return failed.map_or(Ok(all), Err),
                }
            }
        })
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.reading.stop();
    }
}

/// Stops all threads if one of them panics, because the others may be waiting for it.
struct StopIfLost<'a>(&'a Job<'a>);

impl Drop for StopIfLost<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}
