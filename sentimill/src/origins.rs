//! Collects the origin of each review, its file and line (or record, element, row), and writes them as a table: by hash, then in the order of
//! the input. The file does not depend on the number of threads.
//!
//! Threads read pieces of files, so the number of lines before a piece is unknown until all pieces have been read.
//! An origin is therefore stored with its piece and its number there. The origins of each partition are sorted in
//! memory, or as sorted runs that are merged if they do not fit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::num::NonZeroUsize;

use corpus::csv::Dialect;
use corpus::encoding::UTF_8;
use corpus::format::Format;
use program::exit::Failed;
use program::temporary::TemporaryPath;
use reading::{EntryUnit, InputEntry, InputPlace, Reading};
use tables::origins::{ELEMENTS, ENCODING, ROWS, list, of_dialect, schema};
use tables::{RowGroup, Schema, TableWriter, Value, verify};

use crate::Result;
use crate::encoded::take;
use crate::extra_file::ExtraFile;
use crate::job::{Job, interrupted};
use crate::partitions::{PARTITIONS, Partition, Partitions};
use crate::scratch::{Extent, Scratch};

/// An origin: hash u64, index of the source u32, group u32, number of the entry in the group u64. Big-endian, so that
/// the order of the bytes is the order of the table.
type Origin = [u8; ORIGIN_BYTES];
const ORIGIN_BYTES: usize = 8 + 4 + 4 + 8;

/// Minimum number of origins of a run that are read at once.
const READ_AT_ONCE: usize = 1 << 10;

/// The origins of one thread.
pub struct Origins<'a> {
    partitions: Partitions<'a>,
    lines: Lines,
}

/// Number of entries that were read of each group of each source.
#[derive(Default)]
struct Lines {
    of_groups: HashMap<(usize, usize), u64>,
    /// The group of the last entry, and the number of entries up to it.
    last: Option<((usize, usize), u64)>,
}

impl<'a> Origins<'a> {
    /// Creates an empty collection for one of this number of threads.
    pub fn new(partitions: Partitions<'a>) -> Self {
        Self { partitions, lines: Lines::default() }
    }

    /// Counts an entry, whether it is a review or not.
    #[inline]
    pub fn count(&mut self, entry: &InputEntry<'_>) {
        let group = (entry.place.source, entry.place.within().0);
        match &mut self.lines.last {
            Some((same, n)) if *same == group => *n = entry.number + 1,
            _ => {
                self.lines.finish();
                self.lines.last = Some((group, entry.number + 1));
            }
        }
    }

    /// Adds the origin of a review whose text has this hash.
    pub fn add(&mut self, hash: u64, place: InputPlace, number: u64) -> Result<()> {
        let room = self.partitions.room(hash, ORIGIN_BYTES)?;
        room.extend_from_slice(&hash.to_be_bytes());
        room.extend_from_slice(&(place.source as u32).to_be_bytes());
        room.extend_from_slice(&(place.within().0 as u32).to_be_bytes());
        room.extend_from_slice(&number.to_be_bytes());
        Ok(())
    }

    /// Returns all origins.
    pub fn finish(mut self) -> StoredOrigins {
        self.lines.finish();
        StoredOrigins { partitions: self.partitions.finish(), lines: self.lines.of_groups }
    }
}

impl Lines {
    fn finish(&mut self) {
        if let Some((group, n)) = self.last.take() {
            let so_far = self.of_groups.entry(group).or_default();
            *so_far = n.max(*so_far);
        }
    }
}

/// The stored origins of one thread.
pub struct StoredOrigins {
    partitions: Vec<Partition>,
    lines: HashMap<(usize, usize), u64>,
}

/// Writes the origins of all threads to a file, which does not have its name yet.
pub fn write(threads: Vec<StoredOrigins>, file: &ExtraFile, job: &Job<'_>) -> Result<TemporaryPath> {
    let (mut partitions, mut before) =
        ((0..PARTITIONS).map(|_| Vec::new()).collect::<Vec<_>>(), HashMap::new());
    for thread in threads {
        partitions.iter_mut().zip(thread.partitions).for_each(|(parts, part)| parts.push(part));
        for (group, n) in thread.lines {
            let most: &mut u64 = before.entry(group).or_default();
            *most = n.max(*most);
        }
    }
    let mut table = Table::create(job, file, lines_before(before))?;
    let sorting = Sorting { scratch: &job.scratch, memory_bytes: job.options.folding_bytes() };
    for parts in partitions {
        if job.is_interrupted() {
            return Err(interrupted());
        }
        sorting.partition(parts, &mut table)?;
    }
    table.finish(job.options.table_threads())
}

/// Sorts the origins of one partition at a time.
struct Sorting<'a> {
    scratch: &'a Scratch,
    memory_bytes: usize,
}

impl Sorting<'_> {
    fn partition(&self, parts: Vec<Partition>, table: &mut Table) -> Result<()> {
        let bytes: usize = parts.iter().map(Partition::bytes).sum();
        let mut origins = Vec::new();
        if bytes <= self.memory_bytes {
            for part in parts {
                part.take(self.scratch, &mut origins)?;
            }
            return sorted(&mut origins).iter().try_for_each(|origin| table.push(origin));
        }
        let run_bytes = (self.memory_bytes / ORIGIN_BYTES).max(READ_AT_ONCE) * ORIGIN_BYTES;
        let mut runs = Vec::new();
        for part in &parts {
            part.each_chunk(self.scratch, ORIGIN_BYTES * READ_AT_ONCE, |mut chunk| {
                while !chunk.is_empty() {
                    let (taken, rest) = chunk.split_at(chunk.len().min(run_bytes - origins.len()));
                    origins.extend_from_slice(taken);
                    chunk = rest;
                    if origins.len() == run_bytes {
                        runs.push(self.store(&mut origins)?);
                    }
                }
                Ok(())
            })?;
        }
        runs.push(self.store(&mut origins)?);
        drop(origins);
        parts.into_iter().for_each(|part| part.forget(self.scratch));
        self.merge(runs, table)
    }

    /// Sorts origins and writes them to disk.
    fn store(&self, origins: &mut Vec<u8>) -> Result<Extent> {
        sorted(origins);
        let extent = self.scratch.reserve(origins.len());
        self.scratch.write_at(origins, extent.from)?;
        origins.clear();
        Ok(extent)
    }

    fn merge(&self, runs: Vec<Extent>, table: &mut Table) -> Result<()> {
        let at_once = (self.memory_bytes / runs.len().max(1) / ORIGIN_BYTES).max(READ_AT_ONCE) * ORIGIN_BYTES;
        let mut runs: Vec<_> =
            runs.into_iter().map(|rest| SortedRun { rest, bytes: Vec::new(), at: 0 }).collect();
        let mut heap = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            heap.extend(run.next(self.scratch, at_once)?.map(|origin| Reverse((origin, number))));
        }
        while let Some(Reverse((origin, number))) = heap.pop() {
            table.push(&origin)?;
            heap.extend(runs[number].next(self.scratch, at_once)?.map(|next| Reverse((next, number))));
        }
        Ok(())
    }
}

/// A sorted run while it is read.
struct SortedRun {
    rest: Extent,
    bytes: Vec<u8>,
    at: usize,
}

impl SortedRun {
    fn next(&mut self, scratch: &Scratch, at_once: usize) -> Result<Option<Origin>> {
        if self.at == self.bytes.len() {
            self.bytes.resize(at_once.min(self.rest.bytes), 0);
            scratch.read_at(&mut self.bytes, self.rest.from)?;
            self.rest = Extent {
                from: self.rest.from + self.bytes.len() as u64,
                bytes: self.rest.bytes - self.bytes.len(),
            };
            self.at = 0;
        }
        let next = self.bytes[self.at..].first_chunk().copied();
        self.at += if next.is_some() { ORIGIN_BYTES } else { 0 };
        Ok(next)
    }
}

fn sorted(origins: &mut [u8]) -> &[Origin] {
    let (origins, _) = origins.as_chunks_mut();
    origins.sort_unstable();
    origins
}

/// The number of lines of a source before each of its groups.
fn lines_before(of_groups: HashMap<(usize, usize), u64>) -> HashMap<(usize, usize), u64> {
    let mut groups: Vec<_> = of_groups.into_iter().collect();
    groups.sort_unstable();
    let (mut of, mut sum) = (None, 0);
    for ((source, _), n) in &mut groups {
        if of != Some(*source) {
            (of, sum) = (Some(*source), 0);
        }
        sum += std::mem::replace(n, sum);
    }
    groups.into_iter().collect()
}

/// The table while it is written.
struct Table {
    path: TemporaryPath,
    schema: Schema,
    writer: TableWriter,
    rows: RowGroup,
    names: Vec<String>,
    lines_before: HashMap<(usize, usize), u64>,
    file: ExtraFile,
}

impl Table {
    fn create(job: &Job<'_>, file: &ExtraFile, lines_before: HashMap<(usize, usize), u64>) -> Result<Self> {
        let (Job { reading, options, .. }, file) = (job, file.clone());
        let path = file.temporary()?;
        let schema = schema();
        let sources = reading.sources();
        // Those who read the lines again need their format and encoding.
        let mut metadata = options.format.of_texts();
        if options.encoding != UTF_8 {
            metadata.push((ENCODING, options.encoding.name().to_owned()));
        }
        for (key, unit) in [(ELEMENTS, EntryUnit::Element), (ROWS, EntryUnit::Row)] {
            let of_unit = sources.iter().enumerate().filter(|(at, _)| reading.unit(*at) == unit);
            let names: Vec<_> = of_unit.map(|(_, source)| source.name.as_str()).collect();
            if !names.is_empty() {
                metadata.push((key, list(names.into_iter())));
            }
        }
        if let Format::Delimited { fields, .. } = &options.format {
            metadata.push(("rating-field", fields.rating.to_string()));
            metadata.extend(fields.classes.as_ref().map(|classes| ("class-ratings", classes.to_string())));
            metadata.extend(fields.scale.map(|scale| ("rating-scale", scale.to_string())));
            metadata.extend((!fields.unrated.is_empty()).then(|| ("unrated", fields.unrated.to_string())));
        }
        let of_dialects = dialects(reading);
        metadata.extend(of_dialects.iter().map(|(key, names)| (key.as_str(), list(names.iter().copied()))));
        let metadata: Vec<_> = metadata.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let writer = TableWriter::create(&path, &schema, &metadata, options.table_threads());
        let writer = writer.map_err(|error| failed(&file, error))?;
        let names = sources.iter().map(|source| source.name.clone()).collect();
        Ok(Self { rows: RowGroup::of(&schema), path, schema, writer, names, lines_before, file })
    }

    fn push(&mut self, origin: &Origin) -> Result<()> {
        let mut rest = &origin[..];
        let hash = u64::from_be_bytes(take(&mut rest));
        let source = u32::from_be_bytes(take(&mut rest)) as usize;
        let group = u32::from_be_bytes(take(&mut rest)) as usize;
        let number = u64::from_be_bytes(take(&mut rest));
        let before = self.lines_before.get(&(source, group)).copied().unwrap_or_default();
        let file = Value::Text(self.names[source].as_bytes());
        self.rows.push(&[Value::Number(hash), file, Value::Number(before + number + 1)]);
        if self.rows.is_full() { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let rows = std::mem::replace(&mut self.rows, RowGroup::of(&self.schema));
        self.writer.write(rows).map_err(|error| failed(&self.file, error))
    }

    fn finish(mut self, threads: NonZeroUsize) -> Result<TemporaryPath> {
        self.write()?;
        let Self { path, schema, writer, file, .. } = self;
        let failed = |error| failed(&file, error);
        let written = writer.finish().map_err(failed)?;
        verify::<tables::Error>(&path, &schema, &written, threads, |_| Ok(()), |_| Ok(())).map_err(failed)?;
        Ok(path)
    }
}

/// The names of the tables of each dialect, by the entry of the metadata.
fn dialects(reading: &Reading) -> BTreeMap<String, Vec<&str>> {
    let mut names: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (number, source) in reading.sources().iter().enumerate() {
        if let Some(Dialect { delimiter, quote }) = reading.dialect(number) {
            let key = of_dialect(&delimiter.to_string(), &quote.to_string());
            names.entry(key).or_default().push(source.name.as_str());
        }
    }
    names
}

fn failed(file: &ExtraFile, error: tables::Error) -> Failed {
    match error {
        tables::Error::Io { source, .. } => file.failed(&source),
        tables::Error::Differs(found) => file.damaged(&found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_over_the_groups_before() {
        let of_groups = [((0, 0), 3), ((0, 2), 5), ((1, 0), 7), ((0, 1), 0), ((1, 9), 1)];
        let before = lines_before(of_groups.into_iter().collect());
        let expected = [((0, 0), 0), ((0, 1), 3), ((0, 2), 3), ((1, 0), 0), ((1, 9), 7)];
        assert_eq!(before, expected.into_iter().collect());
    }

    #[test]
    fn the_order_of_bytes_is_that_of_hash_source_group_and_number() {
        let origin = |hash: u64, source: u32, group: u32, number: u64| {
            let mut bytes = hash.to_be_bytes().to_vec();
            bytes.extend_from_slice(&source.to_be_bytes());
            bytes.extend_from_slice(&group.to_be_bytes());
            bytes.extend_from_slice(&number.to_be_bytes());
            bytes
        };
        let ordered = [
            origin(1, 9, 9, 9),
            origin(256, 0, 1, 300),
            origin(256, 0, 2, 0),
            origin(256, 1, 0, 0),
            origin(u64::MAX, 0, 0, 0),
        ];
        assert!(ordered.is_sorted());
        let mut shuffled = [4, 2, 0, 3, 1].map(|at| ordered[at].clone()).concat();
        assert_eq!(sorted(&mut shuffled).as_flattened(), ordered.concat());
    }
}
