//! The steps of a run: lines to reviews, these to rows, and these to a dataset.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use corpus::csv::Dialect;
use corpus::digest::Digest;
use corpus::judgement::Refusal;
use corpus::ledger::{MapperCounts, ReducerCounts, check_run};
use dataset::RowsSize;
use dataset::card::Card;
use dataset::manifest::{DatasetManifest, Ledger, Seal, TableDialect};
use dataset::spool::Spool;
use making::{Making, ProgressBars, Size};
use program::exit::{Exit, Failed};
use program::system::Failure;
use program::temporary::TemporaryPath;
use program::threads::locked;
use reading::{InputFindings, Judgement, Reading};

use crate::Result;
use crate::codebook::Codebook;
use crate::content::DatasetRows;
use crate::extra_file::ExtraFile;
use crate::folding::{Folded, Folder, Folding, StoredRows};
use crate::job::{Job, Options};
use crate::mapping::{self, Mapped};
use crate::partitions::{PARTITIONS, Partition};
use crate::{origins, rejects};

/// Offsets in a partition are 32-bit integers.
const FOLDING_BYTES_MAX: usize = 1 << 30;

/// A new dataset and its card.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Its manifest.
    pub manifest: DatasetManifest,
    /// Its card.
    pub card: Card,
}

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
    let job = Job::new(reading, options, interrupt);
    let mut mapped = mapping::map(&job, progress)?;
    let rejects = job.rejects(&mut mapped)?;
    let mapper = match job.judged(&mapped, &mut log)? {
        Ok(mapper) => mapper,
        Err(refused) => {
            rejects.map_or(Ok(()), |rejects| rejects.publish(&mut log))?;
            return Err(refused.into());
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
        let RowsSize { rows, tokens } = part.size();
        size.rows += rows;
        size.tokens += tokens;
        size.left_out += part.left_out;
        row_digest += part.row_digest;
        size.row_digest -= part.left_out_digest;
    }
    size.row_digest += row_digest;
    check_run(&mapper, &reducer)?;
    let seal = Seal {
        schema_version: dataset::SCHEMA_VERSION,
        run: RUN.to_owned(),
        shards: Vec::new(),
        row_digest,
        ledger: Ledger {
            mapper: Some(mapper),
            reducer,
            tables: table_dialects(reading),
            input: options.found_by(),
        },
        settings: options.settings.clone(),
    };
    let mut rows = DatasetRows {
        job: &job,
        codebook,
        folded,
        rows,
        spool: spool.into_inner().unwrap_or_else(PoisonError::into_inner),
        size,
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

impl Job<'_> {
    /// Writes the bad lines to a file that does not have its name yet.
    fn rejects(&self, mapped: &mut [Mapped]) -> Result<Option<Written<'_>>> {
        let Some(file) = &self.options.rejects else { return Ok(None) };
        let of_threads = mapped.iter_mut().filter_map(|part| part.rejects.take()).collect();
        let temporary = rejects::write(of_threads, file, self)?;
        let n_lines = mapped.iter().map(|part| part.found.counts.bad()).sum();
        Ok(Some(Written { file, temporary, n_lines }))
    }

    /// Writes the origins of all reviews to a file that does not have its name yet.
    fn origins(&self, mapped: &mut [Mapped]) -> Result<Option<(&ExtraFile, TemporaryPath)>> {
        let Some(file) = &self.options.origins else { return Ok(None) };
        let of_threads = mapped.iter_mut().filter_map(|part| part.origins.take()).collect();
        Ok(Some((file, origins::write(of_threads, file, self)?)))
    }

    /// Sums the counts of all lines, and accepts or refuses the input.
    fn judged(
        &self,
        mapped: &[Mapped],
        log: &mut impl Write,
    ) -> Result<std::result::Result<MapperCounts, Refusal>> {
        let mut found = InputFindings::default();
        mapped.iter().for_each(|part| found.add(&part.found));
        let listing = "write them to a file with --rejects";
        let Judgement { notices, counts } = found.judged(self.reading, self.options.limits, listing);
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
    ) -> Result<(Vec<Folded>, Vec<StoredRows>)> {
        let mut partitions: Vec<Vec<Partition>> = (0..PARTITIONS).map(|_| Vec::new()).collect();
        for part in mapped {
            partitions.iter_mut().zip(part.partitions).for_each(|(parts, part)| parts.push(part));
        }
        let partitions: Vec<_> = partitions.into_iter().map(|parts| Mutex::new(Some(parts))).collect();
        let rows: Vec<_> = (0..PARTITIONS).map(|_| Mutex::new(Vec::new())).collect();
        let folding = Folding {
            codebook,
            settings: &self.options.settings,
            without: making.inputs().without(),
            scratch: &self.scratch,
            spool,
            stored: self.options.stored_words(),
            memory_bytes: (self.options.folding_bytes() / self.threads()).min(FOLDING_BYTES_MAX),
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
}
