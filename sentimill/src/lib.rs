//! Converts raw reviews into a dataset on one machine. The dataset has the same bytes as the dataset that
//! mappers, a sort, reducers and a merge produce.
//!
//! Unlike in a Hadoop job, texts are not sorted. All threads read lines, clean texts and put each text into
//! the partition of its hash, with codes in place of words (`mapping.rs`). Then each partition is folded
//! separately: reviews of one text become one row, rows are sorted by hash, and words are counted
//! (`folding.rs`). The rows of the partitions, in the order of the partitions, are the rows of the dataset.
//! Its vocabulary is known after all partitions are folded (`content.rs`). Memory is bounded for every input:
//! data that does not fit is spilled to disk (`scratch.rs`). Lines, texts, rows and datasets are defined by
//! the same crates that the other programs use.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

pub mod arguments;
pub mod codebook;
mod content;
mod encoded;
mod extra_file;
mod folding;
mod mapping;
mod origins;
mod partitions;
mod rejects;
mod scratch;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use corpus::csv::Dialect;
use corpus::digest::Digest;
use corpus::encoding::Encoding;
use corpus::format::Format;
use corpus::judgement::Refusal;
use corpus::ledger::{Limits, MapperCounts, ReducerCounts, check_run};
use corpus::settings::Settings;
use dataset::card::Card;
use dataset::manifest::{DatasetManifest, Ledger, Seal, TableDialect};
use dataset::spool::Spool;
use making::{DatasetOptions, Making, ProgressBars, Size};
use program::exit::{Exit, Failed};
use program::system::Failure;
use program::temporary::TemporaryPath;
use program::threads::locked;
use reading::{Found, Judgement, Reading};

use crate::codebook::{Agreement, Codebook, StopWords};
use crate::content::DatasetRows;
pub use crate::extra_file::ExtraFile;
use crate::folding::{Folded, Folder, Folding, StoredWords};
use crate::mapping::{Mapped, Mapping};
use crate::partitions::{PARTITIONS, Partition};
use crate::scratch::{Scratch, Stored};

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
    /// Number of threads that encode or read Parquet files: at least one, and more if there is memory.
    fn table_threads(&self) -> NonZeroUsize {
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

    /// Memory for tables that are read or written.
    pub fn tables_bytes(&self) -> usize {
        self.memory_bytes / TABLES_PART
    }
}

/// A new dataset and its card.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Its manifest.
    pub manifest: DatasetManifest,
    /// Its card.
    pub card: Card,
}

/// Interval at which bars are updated and an interruption is detected.
const TICK: Duration = Duration::from_millis(100);

/// Share of the memory for stored reviews and rows, in eighths.
const WAITING_EIGHTHS: usize = 3;
/// The sample of texts for the codebook takes 1/`SAMPLE_PART` of the memory, for all threads together.
const SAMPLE_PART: usize = 16;
/// A larger sample does not improve the codebook.
const SAMPLE_BYTES_MAX: usize = 48 << 20;
/// Partitions that are being folded take 1/`FOLDING_PART` of the memory. Words without a code take the same
/// share.
const FOLDING_PART: usize = 8;
/// The origins of reviews take 1/`ORIGINS_PART` of the memory for stored reviews and rows.
const ORIGINS_PART: usize = 4;
/// Threads for Parquet files take 1/`TABLES_PART` of the memory, unless it is too little for one. So do record batches of
/// Arrow files.
const TABLES_PART: usize = 4;
/// Memory of such a thread: the row groups that it makes and that wait for it.
const TABLE_THREAD_BYTES: usize = 60 << 20;
/// Offsets in a partition are 32-bit integers.
const FOLDING_BYTES_MAX: usize = 1 << 30;

/// Makes a dataset of all lines, whose output was checked by [`Making::ready`]. Reports the positions of bad ones to
/// `log`, and writes all of them to the file for bad lines, also if too many lines are bad. Setting `interrupt` stops
/// the work.
pub fn run(
    reading: &Reading,
    making: &Making<'_>,
    options: &Options,
    interrupt: &AtomicBool,
    progress: &ProgressBars,
    mut log: impl Write,
) -> Result<Made> {
    let scratch = Scratch::new(&options.scratch, options.memory_bytes / 8 * WAITING_EIGHTHS);
    let job = Job { reading, options, interrupt, stopped: AtomicBool::new(false), scratch: &scratch };
    let mut mapped = job.map(progress)?;
    let rejects = job.rejects(&mut mapped)?;
    let mapper = match job.judged(&mapped, &mut log)? {
        Ok(mapper) => mapper,
        Err(refused) => {
            rejects.map_or(Ok(()), |rejects| rejects.publish(&mut log))?;
            return Err(Failed::new(Exit::BadInput, refused.to_string()));
        }
    };
    let origins = job.origins(&mut mapped)?;
    let codebook = mapped[0].codebook.clone();
    let spool = Mutex::new(Spool::create(&options.scratch)?);
    let (folded, rows) = job.fold(mapped, &codebook, making, &spool, progress)?;

    let mut reducer = ReducerCounts::default();
    let mut size = Size::default();
    let mut row_digest = Digest::default();
    for part in &folded {
        reducer += part.counts;
        size.tokens += part.kept_words;
        size.left_out += part.left_out;
        row_digest += part.row_digest;
        size.row_digest -= part.left_out_digest;
    }
    size.rows = reducer.rows - size.left_out;
    size.row_digest += row_digest;
    check_run(&mapper, &reducer).map_err(making::Error::from)?;
    let seal = Seal {
        schema_version: dataset::SCHEMA_VERSION,
        run: RUN.to_owned(),
        shards: Vec::new(),
        row_digest,
        ledger: Ledger { mapper: Some(mapper), reducer, tables: table_dialects(reading) },
        settings: options.settings.clone(),
    };
    let mut rows = DatasetRows {
        settings: &options.settings,
        codebook,
        folded,
        rows,
        scratch: &scratch,
        spool: spool.into_inner().unwrap_or_else(PoisonError::into_inner),
        size,
        table_threads: options.table_threads(),
        is_interrupted: &|| interrupt.load(Ordering::Relaxed),
    };
    let (manifest, card) = making.make(&mut rows, &seal, progress, |_| Ok(()))?;
    rejects.map_or(Ok(()), |rejects| rejects.publish(&mut log))?;
    origins.map_or(Ok(()), |(file, temporary)| file.publish(&temporary))?;
    Ok(Made { manifest, card })
}

/// How the tables of the input were written.
fn table_dialects(reading: &Reading) -> Vec<TableDialect> {
    let dialects = reading.tables().dialects.into_iter();
    let of = |(Dialect { delimiter, quote }, files)| TableDialect {
        delimiter: delimiter.to_string(),
        quote: quote.to_string(),
        files,
    };
    dialects.map(of).collect()
}

/// Result of the program's steps.
pub type Result<T> = std::result::Result<T, Failed>;

/// The error of an interrupted program.
fn interrupted() -> Failed {
    Failed::new(Exit::TryAgain, "interrupted; no dataset was written: run it again")
}

fn unlogged(source: &io::Error) -> Failed {
    let why = Failure::writing("write messages", source, "redirect it to another disk");
    Failed::new(Exit::Io, format!("standard error: {why}"))
}

/// Name of the run in the manifest. It replaces the URL of a run's folder, because there are no shards.
const RUN: &str = "sentimill";

/// Bad lines in a file that does not have its name yet.
struct Written<'a> {
    file: &'a ExtraFile,
    temporary: TemporaryPath,
    n_lines: u64,
}

impl Written<'_> {
    fn publish(self, mut log: impl Write) -> Result<()> {
        self.file.publish(&self.temporary)?;
        let lines =
            if self.n_lines == 1 { "1 bad line is" } else { &format!("{} bad lines are", self.n_lines) };
        writeln!(log, "sentimill: {lines} in {}", self.file.path().display())
            .map_err(|source| unlogged(&source))
    }
}

struct Job<'a> {
    reading: &'a Reading,
    options: &'a Options,
    interrupt: &'a AtomicBool,
    /// Whether all threads must stop.
    stopped: AtomicBool,
    scratch: &'a Scratch,
}

impl Job<'_> {
    /// Reads all lines.
    fn map(&self, progress: &ProgressBars) -> Result<Vec<Mapped>> {
        let Options { format, settings, memory_bytes, .. } = self.options;
        let threads = self.options.threads.get();
        let stop_words = match self.options.dataset.texts {
            None => StopWords::Dropped,
            Some(_) => StopWords::Encoded,
        };
        let agreement = Agreement::among(threads, &settings.stop_words, stop_words, &self.stopped);
        let mapping = Mapping {
            reading: self.reading,
            format,
            sample: settings.sample,
            agreement: &agreement,
            sample_bytes: (memory_bytes / SAMPLE_PART).min(SAMPLE_BYTES_MAX) / threads,
            scratch: self.scratch,
            threads,
            reviews: AtomicU64::new(0),
            seed: RandomState::new().hash_one(0),
            collects_rejects: self.options.rejects.is_some(),
            origins_bytes: self
                .options
                .origins
                .as_ref()
                .map(|_| self.scratch.held_max() / ORIGINS_PART / threads),
        };
        let (bar, begin) = (progress.reading(self.reading.bytes()), Instant::now());
        let mapped = self.in_threads(
            || mapping.run(),
            || {
                let reviews_per_s =
                    mapping.reviews.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
                bar.set_message(format!("reading, {reviews_per_s:.0} reviews/s"));
                bar.set_position(self.reading.bytes_read());
            },
        );
        bar.finish_and_clear();
        mapped
    }

    /// Writes the bad lines to a file that does not have its name yet.
    fn rejects(&self, mapped: &mut [Mapped]) -> Result<Option<Written<'_>>> {
        let Some(file) = &self.options.rejects else { return Ok(None) };
        let of_threads = mapped.iter_mut().filter_map(|part| part.rejects.take()).collect();
        let temporary = rejects::write(of_threads, file, self.reading, self.scratch)?;
        let n_lines = mapped.iter().map(|part| part.found.counts.bad()).sum();
        Ok(Some(Written { file, temporary, n_lines }))
    }

    /// Writes the origins of all reviews to a file that does not have its name yet.
    fn origins(&self, mapped: &mut [Mapped]) -> Result<Option<(&ExtraFile, TemporaryPath)>> {
        let Some(file) = &self.options.origins else { return Ok(None) };
        let writing = origins::Writing {
            file,
            reading: self.reading,
            format: &self.options.format,
            encoding: self.options.encoding,
            scratch: self.scratch,
            memory_bytes: self.options.memory_bytes / FOLDING_PART,
            threads: self.options.table_threads(),
            is_interrupted: &|| self.interrupt.load(Ordering::Relaxed),
        };
        let of_threads = mapped.iter_mut().filter_map(|part| part.origins.take()).collect();
        Ok(Some((file, writing.write(of_threads)?)))
    }

    /// Sums the counts of all lines, and accepts or refuses the input.
    fn judged(
        &self,
        mapped: &[Mapped],
        log: &mut impl Write,
    ) -> Result<std::result::Result<MapperCounts, Refusal>> {
        let mut found = Found::default();
        mapped.iter().for_each(|part| found.add(&part.found));
        let Options { format, limits, .. } = self.options;
        let listing = "write them to a file with --rejects";
        let Judgement { notices, counts } = found.judged(self.reading, format, *limits, listing);
        for notice in notices {
            writeln!(log, "sentimill: {notice}").map_err(|source| unlogged(&source))?;
        }
        Ok(counts)
    }

    /// Folds all partitions. Returns their rows, in order.
    fn fold(
        &self,
        mapped: Vec<Mapped>,
        codebook: &Codebook,
        making: &Making<'_>,
        spool: &Mutex<Spool>,
        progress: &ProgressBars,
    ) -> Result<(Vec<Folded>, Vec<Stored>)> {
        let threads = self.options.threads.get();
        let memory_bytes = (self.options.memory_bytes / FOLDING_PART / threads).min(FOLDING_BYTES_MAX);
        let mut partitions: Vec<Vec<Partition>> = (0..PARTITIONS).map(|_| Vec::new()).collect();
        for part in mapped {
            partitions.iter_mut().zip(part.partitions).for_each(|(parts, part)| parts.push(part));
        }
        let partitions: Vec<_> = partitions.into_iter().map(|parts| Mutex::new(Some(parts))).collect();
        let rows: Vec<_> = (0..PARTITIONS).map(|_| Mutex::new(Vec::new())).collect();
        let folding = Folding {
            codebook,
            settings: &self.options.settings,
            without: making.without(),
            scratch: self.scratch,
            spool,
            stored: match self.options.dataset.texts {
                None => StoredWords::Kept,
                Some(_) => StoredWords::All,
            },
            memory_bytes,
        };
        let next = AtomicUsize::new(0);
        let fold = || {
            let mut folder = Folder::new(&folding);
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(parts) = partitions.get(at) else { return Ok(folder.finish()) };
                if self.stopped.load(Ordering::Relaxed) {
                    return Ok(folder.finish());
                }
                let parts = locked(parts).take().expect("each partition is taken once");
                *locked(&rows[at]) = folder.fold(at, parts)?;
            }
        };
        let bar = progress.stage("folding", PARTITIONS as u64);
        let folded = self.in_threads(fold, || bar.set_position(next.load(Ordering::Relaxed) as u64));
        bar.finish_and_clear();
        let mut folded = folded?;
        if folded.iter().any(|part| !part.spelt_runs.is_empty()) {
            // If some of the words are on disk, all others are written to disk, too.
            folded.iter_mut().try_for_each(|part| part.spill(spool))?;
        }
        let rows =
            rows.into_iter().flat_map(|rows| rows.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok((folded, rows.collect()))
    }

    /// Runs `work` on all threads and calls `tick` at intervals. Returns the results of all threads, or the
    /// first error.
    fn in_threads<T: Send>(
        &self,
        work: impl Fn() -> Result<T> + Sync,
        mut tick: impl FnMut(),
    ) -> Result<Vec<T>> {
        let (done, ends) = channel();
        let work = &work;
        thread::scope(|scope| {
            for _ in 0..self.options.threads.get() {
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
                    Err(RecvTimeoutError::Timeout) if self.interrupt.load(Ordering::Relaxed) => {
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
