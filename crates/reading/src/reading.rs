//! Reads all sources on many threads, each entry on one of them.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use corpus::csv::{Columns, Dialect};
use corpus::encoding::UTF_8;
use corpus::format::Format;
use corpus::lines::Line;
use corpus::rejects::Content;
use program::exit::Exit;
use program::threads::locked;

use crate::dialects::{FoundTables, Tables};
use crate::entries::{decoded_if_hidden, decoded_if_needed};
use crate::entry::{EntryUnit, InputEntry, InputPlace, RowColumns, RowValue};
use crate::error::Error;
use crate::manner::{Manner, has_lines_inside};
use crate::members::{MemberFile, MemberGroup};
use crate::memory::Memory;
use crate::options::ReadingOptions;
use crate::parquet::RowGroup;
use crate::ranges::Range;
use crate::source::{Kind, Source};
use crate::state::{Part, State};
use crate::streams::Streams;
use crate::{arrow, line_numbers, parquet, ranges};

/// All sources, while they are read.
#[derive(Debug)]
pub struct Reading {
    sources: Arc<[Source]>,
    bytes: Option<u64>,
    pub(crate) options: ReadingOptions,
    /// Pieces that any thread may read at any time, with the index of their source.
    pieces: Vec<(usize, Piece)>,
    next_piece: AtomicUsize,
    /// The columns of each source that is a table with rows.
    rows_of: Vec<Option<RowColumns>>,
    /// Files that are split into groups while they are read.
    member_files: Vec<MemberFile>,
    next_member_file: AtomicUsize,
    streams: Streams,
    batches_memory: Memory,
    pub(crate) state: Arc<State>,
}

/// A part of a file that is read independently of the others.
#[derive(Debug)]
enum Piece {
    Range(Range),
    RowGroup(Box<RowGroup>),
    Batch(Box<arrow::ArrowBatch>),
}

/// The file of the last piece that a thread has read.
struct Opened<'a> {
    number: usize,
    file: Arc<File>,
    held: arrow::HeldDictionaries<'a>,
}

impl Reading {
    /// Detects the kind of each source and starts the threads that read streams. Returns an error if the
    /// beginning of a source shows that it cannot be read in this format.
    pub fn start(sources: Vec<Source>, options: &ReadingOptions) -> Result<Self, Error> {
        let threads = options.threads.get();
        let bytes_of_files = sources.iter().filter_map(|source| source.bytes).sum();
        let range_bytes = ranges::range_bytes(bytes_of_files, threads as u64);
        Self::start_with(sources, options, range_bytes)
    }

    pub(crate) fn start_with(
        sources: Vec<Source>,
        options: &ReadingOptions,
        range_bytes: u64,
    ) -> Result<Self, Error> {
        let (mut pieces, mut member_files, mut streams) = (Vec::new(), Vec::new(), Vec::new());
        let mut rows_of = vec![None; sources.len()];
        for (number, source) in sources.iter().enumerate() {
            let Kind::File(path) = &source.kind else {
                streams.push(number);
                continue;
            };
            let unreadable = |error| source.unreadable("read its first bytes", error);
            let file = File::open(path).map_err(unreadable)?;
            match Manner::of(&file, path, &options.format, options.encoding).map_err(unreadable)? {
                Manner::Plain { bytes } => {
                    pieces.extend(ranges::cut(bytes, range_bytes).map(|range| (number, Piece::Range(range))));
                }
                // With one consumer it is faster to decompress in a separate thread than in the consumer.
                Manner::Compressed(_) if options.threads.get() == 1 => streams.push(number),
                Manner::Compressed(by) => {
                    let cut = MemberFile::of(number, &file, by, range_bytes).map_err(unreadable)?;
                    match cut {
                        Some(members) if has_lines_inside(&file, options) => {
                            member_files.push(members);
                        }
                        _ => streams.push(number),
                    }
                }
                Manner::Sequential => streams.push(number),
                Manner::Arrow | Manner::Parquet if options.encoding != UTF_8 => {
                    let found = "found a Parquet or Arrow file, whose texts are UTF-8";
                    let remedy = "omit --encoding, and read other encodings by a command of their own";
                    let why = format!("{found}, expected text in {}; {remedy}", options.encoding.name());
                    return Err(source.refused(Exit::Usage, why));
                }
                Manner::Arrow => {
                    let (batches, columns) =
                        arrow::batches(source, &file, (&options.format, options.columns))?;
                    rows_of[number] = Some(columns);
                    pieces.extend(batches.into_iter().map(|batch| (number, Piece::Batch(Box::new(batch)))));
                }
                Manner::Parquet => {
                    let (groups, columns) = parquet::row_groups(source, file, options)?;
                    rows_of[number] = Some(columns);
                    pieces.extend(groups.into_iter().map(|group| (number, Piece::RowGroup(Box::new(group)))));
                }
            }
        }
        let tables = Tables::of_files(&sources, &streams, options)?;
        let bytes = sources.iter().map(|source| source.bytes).sum();
        let (sources, state): (Arc<[Source]>, _) =
            (sources.into(), Arc::new(State { tables, ..State::default() }));
        let streams = Streams::start(&sources, streams, options, &state)?;
        let (next_piece, next_member_file) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(Self {
            sources,
            bytes,
            options: options.clone(),
            pieces,
            next_piece,
            rows_of,
            member_files,
            next_member_file,
            streams,
            batches_memory: Memory::of(options.batches_bytes as u64),
            state,
        })
    }

    /// The sources, by the indexes of entries.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Visits the entries that one thread reads, on the calling thread, and returns when all entries have
    /// been passed to some thread. Exactly as many threads as announced must call this, once each and
    /// concurrently.
    ///
    /// An input that cannot be read is an error of one of them. An error, of this method or of the visitor,
    /// and a panic stop the other threads too, which then return without an error.
    pub fn each<E: From<Error>>(
        &self,
        mut visit: impl FnMut(InputEntry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let stop = StopUnlessDone(self);
        let mut opened = None;
        // Takes batches before pieces, because the threads that read streams wait until their batches are
        // taken.
        while !self.state.is_stopped() {
            let batch = if let Some(batch) = self.streams.take_waiting()? {
                batch
            } else if let Some((number, piece)) = self.take_piece() {
                self.read_piece(*number, piece, &mut opened, &mut visit)?;
                continue;
            } else if opened.take().is_some() {
                continue;
            } else if let Some((file, group)) = self.take_group()? {
                self.read_group(file, &group, &mut visit)?;
                continue;
            } else if let Some(batch) = self.streams.take()? {
                batch
            } else {
                break;
            };
            batch.each_line(&mut visit)?;
            self.streams.give_back(batch);
        }
        std::mem::forget(stop);
        Ok(())
    }

    fn take_piece(&self) -> Option<&(usize, Piece)> {
        self.pieces.get(self.next_piece.fetch_add(1, Ordering::Relaxed))
    }

    fn read_piece<'a, E: From<Error>>(
        &'a self,
        number: usize,
        piece: &Piece,
        opened: &mut Option<Opened<'a>>,
        visit: &mut impl FnMut(InputEntry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let source = &self.sources[number];
        let opened = match opened {
            Some(same) if same.number == number => same,
            _ => {
                let Kind::File(path) = &source.kind else { unreachable!("pieces are of files") };
                let file = File::open(path).map_err(|error| source.unreadable("open it", error))?;
                let held = arrow::HeldDictionaries::of(&self.batches_memory);
                opened.insert(Opened { number, file: Arc::new(file), held })
            }
        };
        let (file, part) = (Arc::clone(&opened.file), self.part(source));
        match piece {
            Piece::Range(range) => {
                let mut lines = 0..;
                let mut visit = |line: Line<'_>| {
                    let place = InputPlace::in_group(number, range.number, line.offset);
                    let before = lines.next().unwrap_or_default();
                    visit(InputEntry::new(place, before, Content::Line(line.content)))
                };
                range.each_line(&file, &part, &mut visit)
            }
            Piece::RowGroup(group) => {
                let mut visit = |row: u64, what: Content<'_>, values: &[RowValue<'_>]| {
                    visit(InputEntry { values, ..InputEntry::new(InputPlace::at(number, row), row, what) })
                };
                group.each_row(file, &self.batches_memory, &part, &mut visit)
            }
            Piece::Batch(batch) => {
                let mut visit = |row: u64, what: Content<'_>, values: &[RowValue<'_>]| {
                    visit(InputEntry { values, ..InputEntry::new(InputPlace::at(number, row), row, what) })
                };
                batch.each_row(&file, &mut opened.held, &part, &mut visit)
            }
        }
    }

    /// Takes the next group of members. Files are split one after the other, and all threads take groups of
    /// the same file.
    fn take_group(&self) -> Result<Option<(&MemberFile, MemberGroup)>, Error> {
        loop {
            let at = self.next_member_file.load(Ordering::Relaxed);
            let Some(file) = self.member_files.get(at) else { return Ok(None) };
            if let Some(group) = file.next_group(&self.sources[file.source])? {
                return Ok(Some((file, group)));
            }
            self.next_member_file.fetch_max(at + 1, Ordering::Relaxed);
        }
    }

    fn read_group<E: From<Error>>(
        &self,
        file: &MemberFile,
        group: &MemberGroup,
        visit: &mut impl FnMut(InputEntry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let source = &self.sources[file.source];
        let mut lines = 0..;
        let mut visit = |line: Line<'_>| {
            let place = InputPlace::in_group(file.source, group.number, line.offset);
            if place.is_first() && parquet::is_beginning(line.content) {
                return Err(source.no_file("Parquet").into());
            }
            let number = lines.next().unwrap_or_default();
            visit(InputEntry::new(place, number, Content::Line(line.content)))
        };
        file.each_line(group, &self.part(source), &mut visit)
    }

    fn part<'a>(&'a self, source: &'a Source) -> Part<'a> {
        Part {
            source,
            line_bytes_max: self.options.line_bytes_max,
            encoding: self.options.encoding,
            state: &self.state,
        }
    }

    /// The offset of a position in its source: decompressed bytes for a compressed source, rows for a Parquet or
    /// Arrow file. It is known when everything has been read.
    pub fn offset(&self, place: InputPlace) -> u64 {
        let file = self.member_files.iter().find(|file| file.source == place.source);
        file.map_or(0, |file| file.bytes_before(place.group)) + place.offset
    }

    /// Whether a source is a table, whose offsets are numbers of rows.
    pub fn has_rows(&self, source: usize) -> bool {
        self.rows_of[source].is_some()
    }

    /// The columns of a source that is a table with rows.
    pub fn row_columns(&self, source: usize) -> Option<&RowColumns> {
        self.rows_of[source].as_ref()
    }

    /// The unit of the entries of a source, once all of them have been read.
    pub fn unit(&self, source: usize) -> EntryUnit {
        if self.rows_of[source].is_some() {
            EntryUnit::Row
        } else if matches!(self.options.format, Format::Delimited { .. }) {
            EntryUnit::Record
        } else if locked(&self.state.arrays).contains(&source) {
            EntryUnit::Element
        } else {
            EntryUnit::Line
        }
    }

    /// What was found in tables, once all of them have been read.
    pub fn tables(&self) -> FoundTables {
        self.state.tables.found(&self.sources, &self.options.format)
    }

    /// The columns of the only source, if it is a table with a header, once it has been read.
    pub fn columns(&self) -> Option<Arc<Columns>> {
        self.state.tables.columns()
    }

    /// The dialect of a table that has been read.
    pub fn dialect(&self, source: usize) -> Option<Dialect> {
        self.state.tables.dialect(source)
    }

    /// The line numbers of lines at these ascending offsets of a source; `None` where the source cannot be read again, or
    /// only slowly.
    pub fn line_numbers(&self, source: usize, offsets: &[u64]) -> Option<Vec<u64>> {
        let Kind::File(path) = &self.sources[source].kind else { return None };
        let content = input::open_as(path, self.options.encoding).ok()?;
        // As the entries were read.
        let (content, _) = match self.dialect(source) {
            Some(dialect) => decoded_if_hidden(Vec::new(), content, &dialect.syntax(), &self.options),
            None => decoded_if_needed(content, &self.options).ok()?,
        };
        line_numbers::line_numbers(content, self.options.line_bytes_max, offsets).ok().flatten()
    }

    /// Number of bytes read so far. Of compressed sources, compressed bytes are counted. A piece of a file is counted
    /// when it has been read completely.
    pub fn bytes_read(&self) -> u64 {
        self.state.bytes_read.load(Ordering::Relaxed)
    }

    /// Total number of bytes to read, if all sources have a known size.
    pub fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Stops all reading early, from any thread. Each [`Reading::each`] returns after its current line, row
    /// or batch; threads that wait return at once.
    pub fn stop(&self) {
        self.streams.stop();
        self.batches_memory.wake();
    }
}

/// Threads that read streams end when their next read returns. A thread that waits for standard input may
/// keep waiting, and blocks no other thread.
impl Drop for Reading {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Stops all threads if one ends early, with an error or a panic.
struct StopUnlessDone<'a>(&'a Reading);

impl Drop for StopUnlessDone<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
