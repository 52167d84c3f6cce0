//! Reads many inputs with many threads, and passes each line or row to exactly one of them.
//!
//! A plain file is split into ranges, a compressed file into groups of its members if their ends can be
//! found, a Parquet file into its row groups, and an Arrow file into its record batches. Each thread takes and reads
//! these pieces itself. Inputs that can only be read sequentially (other compressed files, CSV, JSON arrays, standard
//! input, pipes, objects of a bucket and files on web servers) are decompressed and split into lines by threads of this
//! module, at most one per consumer, which pass the lines on in batches. The assignment of lines to threads and the
//! order of lines are undefined.
//!
//! Memory is bounded for every input. Each consumer thread requires the following memory. A reader has a
//! buffer and one line of maximum length (see [`ReadingOptions::line_bytes_max`]). Each of three batches of
//! lines has 1 MiB, one line of maximum length and a table of 2 MiB. There is one decoder for the thread and
//! one for a stream (a zstd file may require 128 MiB). An object has three parts of 8 MiB. The Parquet
//! columns that are read have pages with some hundred rows, whose size their writer has chosen. The lists of names, of
//! ranges (24 bytes per 16 MiB), of groups of members (8 bytes each), of record batches (64 bytes each) and of row
//! groups (about 2 KiB each) grow with the inputs.
//!
//! All threads together have [`ReadingOptions::batches_bytes`] for the columns of Arrow record batches and the
//! dictionaries that they need. A thread waits until its batch fits. A single batch needs its columns and dictionaries,
//! at most 256 MiB each, and if they are compressed, their compressed bytes while they are decompressed. The same memory
//! holds the pages of Parquet files; those of a row group may take twice as much, if they are alone.
//!
//! The content of lines is not interpreted, except by [`Reviews`].
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

mod arrow;
mod class_folders;
mod columns;
mod dialects;
mod entries;
mod error;
mod json_lines;
mod line_numbers;
mod members;
mod memory;
mod ranges;
mod reviews;
mod rows;
mod sequence;
mod source;
mod streams;
mod stretch;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use corpus::csv::{Columns, Dialect};
use corpus::encoding::{Encoding, Invalid, LineDecoder, UTF_8};
use corpus::format::Format;
use corpus::lines::Line;
use input::{Compression, Fault, Form};
use program::threads::locked;

pub use class_folders::class_folders;
pub use corpus::rejects::Content;
pub use dialects::FoundTables;
pub use error::Error;
pub use json_lines::JsonLines;
pub use reviews::{Found, Judgement, Reviews};
pub use sequence::{Chunk, Keep, Passed, Place, Position, Resumed, SequenceOptions, read_sequence};
pub use source::{Source, find, unpacked};

use dialects::Tables;
use entries::{decoded_if_hidden, decoded_if_needed};
use members::{MemberFile, MemberGroup};
use memory::Memory;
use ranges::Range;
use rows::RowGroup;
use source::Kind;
use streams::Streams;

/// Options of reading.
#[derive(Clone, Debug)]
pub struct ReadingOptions {
    /// The format of lines. For Parquet and Arrow files, which are read with the format `json`, its fields name
    /// the columns.
    pub format: Format,
    /// The encoding of all sources but Parquet and Arrow files.
    pub encoding: &'static Encoding,
    /// Maximum length of a line, or of the text of a row.
    pub line_bytes_max: usize,
    /// Number of threads that will call [`Reading::each`].
    pub threads: NonZeroUsize,
    /// Maximum number of streams that are read at once.
    pub streams_max: NonZeroUsize,
    /// Memory for the record batches and the dictionaries of Arrow files and for the pages of Parquet files, for all threads
    /// together. A record batch or pages that exceed it are read while no others are.
    pub batches_bytes: usize,
}

/// A line or a row, and its position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputEntry<'a> {
    /// Its position.
    pub place: InputPlace,
    /// Number of entries before it in its source, or in its group if the source is split into groups.
    pub number: u64,
    /// Its content.
    pub what: Content<'a>,
    /// The columns of its source, if it is a record of CSV.
    pub columns: Option<&'a Columns>,
}

/// The unit of the entries of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryUnit {
    /// Lines.
    Line,
    /// Records of CSV or TSV behind the header.
    Record,
    /// Elements of JSON arrays.
    Element,
    /// Rows of a Parquet or Arrow file.
    Row,
}

/// A position in the inputs. Positions are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputPlace {
    /// Index of its source in [`Reading::sources`].
    pub source: usize,
    /// Number of the range or the group of members; 0 if the source is not split into such groups.
    group: usize,
    /// Offset in the source, or in the group of members.
    offset: u64,
}

/// All sources, while they are read.
#[derive(Debug)]
pub struct Reading {
    sources: Arc<[Source]>,
    bytes: Option<u64>,
    options: ReadingOptions,
    /// Pieces that any thread may read at any time, with the index of their source.
    pieces: Vec<(usize, Piece)>,
    next_piece: AtomicUsize,
    /// Whether each source is a table with rows.
    has_rows: Vec<bool>,
    /// Files that are split into groups while they are read.
    member_files: Vec<MemberFile>,
    next_member_file: AtomicUsize,
    streams: Streams,
    batches_memory: Memory,
    state: Arc<State>,
}

/// State shared by all threads.
#[derive(Debug, Default)]
struct State {
    is_stopped: AtomicBool,
    bytes_read: AtomicU64,
    /// The sources that are JSON arrays, as far as they have been read.
    arrays: Mutex<BTreeSet<usize>>,
    tables: Tables,
    /// The lines that are not in the encoding that was named.
    invalid: Mutex<Invalid>,
}

/// A part of a file that is read independently of the others.
#[derive(Debug)]
enum Piece {
    Range(Range),
    RowGroup(Box<RowGroup>),
    Batch(Box<arrow::Batch>),
}

/// The file of the last piece that a thread has read.
struct Opened<'a> {
    number: usize,
    file: Arc<File>,
    held: arrow::Held<'a>,
}

/// Context for reading a part of a source.
#[derive(Clone, Copy)]
struct Part<'a> {
    source: &'a Source,
    line_bytes_max: usize,
    encoding: &'static Encoding,
    state: &'a State,
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

    fn start_with(sources: Vec<Source>, options: &ReadingOptions, range_bytes: u64) -> Result<Self, Error> {
        let (mut pieces, mut member_files, mut streams) = (Vec::new(), Vec::new(), Vec::new());
        let mut has_rows = vec![false; sources.len()];
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
                    let (input, encoding) = (source.name.clone(), options.encoding.name());
                    return Err(Error::Encoded { input, encoding });
                }
                Manner::Arrow => {
                    has_rows[number] = true;
                    let batches = arrow::batches(source, &file, &options.format)?.into_iter();
                    pieces.extend(batches.map(|batch| (number, Piece::Batch(Box::new(batch)))));
                }
                Manner::Parquet => {
                    has_rows[number] = true;
                    let row_groups =
                        rows::row_groups(source, file, &options.format, options.batches_bytes)?.into_iter();
                    pieces.extend(row_groups.map(|group| (number, Piece::RowGroup(Box::new(group)))));
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
            has_rows,
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
                let held = arrow::Held::of(&self.batches_memory);
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
                    visit(InputEntry {
                        place,
                        number: before,
                        what: Content::Line(line.content),
                        columns: None,
                    })
                };
                range.each_line(&file, &part, &mut visit)
            }
            Piece::RowGroup(group) => {
                let mut visit = |row: u64, what: Content<'_>| {
                    visit(InputEntry { place: InputPlace::at(number, row), number: row, what, columns: None })
                };
                group.each_row(file, &self.batches_memory, &part, &mut visit)
            }
            Piece::Batch(batch) => {
                let mut visit = |row: u64, what: Content<'_>| {
                    visit(InputEntry { place: InputPlace::at(number, row), number: row, what, columns: None })
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
            if place.is_first() && rows::is_beginning(line.content) {
                return Err(Error::NoFile { input: source.name.clone(), kind: "Parquet" }.into());
            }
            let number = lines.next().unwrap_or_default();
            visit(InputEntry { place, number, what: Content::Line(line.content), columns: None })
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
        self.has_rows[source]
    }

    /// The unit of the entries of a source, once all of them have been read.
    pub fn unit(&self, source: usize) -> EntryUnit {
        if self.has_rows[source] {
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

impl InputPlace {
    /// A position in a source that is not split into groups.
    pub fn at(source: usize, offset: u64) -> Self {
        Self { source, group: 0, offset }
    }

    /// A position in a range, or in a group of members.
    pub fn in_group(source: usize, group: usize, offset: u64) -> Self {
        Self { source, group, offset }
    }

    /// The range or group, and the offset.
    pub fn within(self) -> (usize, u64) {
        (self.group, self.offset)
    }

    fn is_first(self) -> bool {
        self.group == 0 && self.offset == 0
    }
}

impl State {
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Adds the lines that are not in their encoding.
    fn add_invalid(&self, decoder: Option<&LineDecoder>) {
        if let Some(decoder) = decoder.filter(|decoder| decoder.invalid.lines > 0) {
            locked(&self.invalid).merge(&decoder.invalid);
        }
    }

    fn advance(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Part<'_> {
    fn unreadable(&self, error: io::Error) -> Error {
        self.source.unreadable("read it", error)
    }
}

impl Source {
    /// The path of a regular file whose bytes are its lines in this format; `None` if its content is compressed, encoded
    /// or not divided at line ends. A file of another kind is refused.
    pub fn lines_file(&self, format: &Format, encoding: &'static Encoding) -> Result<Option<&Path>, Error> {
        let Kind::File(path) = &self.kind else { return Ok(None) };
        let unreadable = |error| self.unreadable("read its first bytes", error);
        let file = File::open(path).map_err(unreadable)?;
        let kind = match Manner::of(&file, path, format, encoding).map_err(unreadable)? {
            Manner::Plain { .. } if encoding == UTF_8 => return Ok(Some(path)),
            Manner::Plain { .. } | Manner::Compressed(_) | Manner::Sequential => return Ok(None),
            Manner::Parquet => "a Parquet",
            Manner::Arrow => "an Arrow",
        };
        Err(Error::NotLines { input: self.name.clone(), kind, format: format.name() })
    }

    fn unreadable(&self, doing: &'static str, source: io::Error) -> Error {
        match source.downcast() {
            Ok(error) => Error::Store(error),
            Err(source) if let Some(kind) = needs_file(&source) => {
                Error::NoFile { input: self.name.clone(), kind }
            }
            Err(source) => Error::Read {
                input: self.name.clone(),
                doing,
                source: input::named(source, Path::new(&self.name)),
            },
        }
    }
}

/// The kind of file that a stream contains, if it can only be read from a file.
fn needs_file(error: &io::Error) -> Option<&'static str> {
    match input::fault(error) {
        Some(Fault::Packed { packed, .. }) => packed.table,
        _ => None,
    }
}

/// How a regular file is read.
enum Manner {
    Plain {
        bytes: u64,
    },
    Compressed(Compression),
    /// UTF-16, CSV or a JSON array, which can only be split from the start.
    Sequential,
    Parquet,
    Arrow,
}

impl Manner {
    fn of(file: &File, path: &Path, format: &Format, encoding: &'static Encoding) -> io::Result<Self> {
        let mut beginning = Vec::new();
        file.take(input::FORM_BYTES as u64).read_to_end(&mut beginning)?;
        if let Some(by) = Compression::of(&beginning) {
            return Ok(Self::Compressed(by));
        }
        if beginning.starts_with(rows::MAGIC) {
            return Ok(Self::Parquet);
        }
        if arrow::is_beginning(&beginning) {
            return Ok(Self::Arrow);
        }
        let form = Form::of(&beginning, encoding)?;
        input::check_name(path, &beginning)?;
        Ok(match form {
            Form::Lines if !is_sequential(&beginning, format) => {
                Self::Plain { bytes: file.metadata()?.len() }
            }
            Form::Lines | Form::Utf16(_) => Self::Sequential,
        })
    }
}

/// Whether content with this beginning is not lines, which can be split anywhere.
fn is_sequential(beginning: &[u8], format: &Format) -> bool {
    match format {
        Format::Json(_) => entries::may_be_array(beginning),
        Format::Delimited { .. } => true,
        Format::PolarityCsv { .. } | Format::FastText { .. } => false,
    }
}

/// Whether the content of a compressed file is lines in UTF-8, which can be split anywhere. If the file
/// cannot be read, the thread that reads it reports the error.
fn has_lines_inside(mut file: &File, options: &ReadingOptions) -> bool {
    let content = file.rewind().and_then(|()| input::of_encoding(file, options.encoding));
    let Some(mut content) = content.ok().filter(|content| !content.is_utf16()) else { return false };
    entries::beginning(&mut content).is_ok_and(|beginning| !is_sequential(&beginning, &options.format))
}

#[cfg(test)]
mod tests;
