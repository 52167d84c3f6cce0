//! Many inputs → lines and rows, read by many threads, each of which is given its own.
//!
//! What lies in a plain file is cut into ranges, a compressed file into groups of its members where these can be told
//! apart, and a Parquet file into its row groups: a thread takes one after the other and reads it itself. What can only be
//! read from its beginning to its end, other compressed files, standard input and pipes, and the objects of a bucket, is
//! inflated and cut into lines by threads of this module, as many at most as ask for lines, which pass them on in batches.
//! Each line of all inputs is given to exactly one thread; which one, and in which order, is left open.
//!
//! Memory is bounded whatever the inputs hold. For each thread that asks it is a reader's buffer and a longest line (see
//! [`ReadingOptions::line_bytes_max`]); three batches of lines, each of 1 MiB, a longest line and a table of 2 MiB; a
//! decoder of its own and one of a stream (zstd's holds up to 128 MiB, if a file asks for it), and of an object three parts
//! of 8 MiB; and the pages of two Parquet columns that some hundred rows lie in, as large as their writer made them. What
//! grows with the inputs is a list of their names, of their ranges (24 bytes for 16 MiB), of their groups of members
//! (8 bytes) and of their row groups (about 2 KiB for each).
//!
//! Nothing is known of what a line says.

mod error;
mod members;
mod ranges;
mod rows;
mod source;
mod streams;
mod stretch;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use corpus::format::Format;
use corpus::lines::{Line, LineContent};
use corpus::review::Rating;
use input::{Compression, Fault, Form};

pub use error::Error;
pub use source::{Source, find};

use members::{MemberFile, MemberGroup};
use ranges::Range;
use rows::RowGroup;
use source::Kind;
use streams::Streams;

/// How to read.
#[derive(Clone, Debug)]
pub struct ReadingOptions {
    /// How a line holds a review. Of Parquet files, which go by the format `json`, its fields name the columns.
    pub format: Format,
    /// The longest line, or text of a row, that is held.
    pub line_bytes_max: usize,
    /// How many threads will call [`Reading::each`]; and how many, at most, read streams for them.
    pub threads: NonZeroUsize,
}

/// A line or a row, and where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputEntry<'a> {
    /// Where it was.
    pub place: InputPlace,
    /// What it is.
    pub what: What<'a>,
}

/// Where something is. Of two places the lesser one comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputPlace {
    /// The number of its source in [`Reading::sources`].
    pub source: usize,
    /// The number of the group of members; 0 where the source is not cut into any.
    group: usize,
    /// What lies before it in the source or group.
    offset: u64,
}

/// What there is to be visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// A line of any format; or a row whose text is longer than a line may be, which is not held either.
    Line(LineContent<'a>),
    /// A row of a Parquet file.
    Row {
        /// Its text, where it is not null. It may not be UTF-8.
        text: Option<&'a [u8]>,
        /// Its rating, where it is one.
        rating: Option<Rating>,
    },
}

/// All sources, being read.
#[derive(Debug)]
pub struct Reading {
    sources: Arc<[Source]>,
    bytes: Option<u64>,
    line_bytes_max: usize,
    /// What any thread may read at any time, with the number of its source.
    pieces: Vec<(usize, Piece)>,
    next_piece: AtomicUsize,
    /// What is cut into such while it is read.
    member_files: Vec<MemberFile>,
    next_member_file: AtomicUsize,
    streams: Streams,
    state: Arc<State>,
}

/// What all threads look at.
#[derive(Debug, Default)]
struct State {
    is_stopped: AtomicBool,
    bytes_read: AtomicU64,
}

/// A part of a file that is read without the others.
#[derive(Debug)]
enum Piece {
    Range(Range),
    RowGroup(Box<RowGroup>),
}

/// What is known wherever a part of a source is read.
#[derive(Clone, Copy)]
struct Part<'a> {
    source: &'a Source,
    line_bytes_max: usize,
    state: &'a State,
}

impl Reading {
    /// Looks how each source begins, and starts the threads that read streams. What cannot be read, or not as the format
    /// says, is an error here if its beginning tells.
    pub fn start(sources: Vec<Source>, options: &ReadingOptions) -> Result<Self, Error> {
        let threads = options.threads.get();
        let bytes_of_files = sources.iter().filter_map(|source| source.bytes).sum();
        let range_bytes = ranges::range_bytes(bytes_of_files, threads as u64);
        Self::start_with(sources, options, range_bytes)
    }

    fn start_with(sources: Vec<Source>, options: &ReadingOptions, range_bytes: u64) -> Result<Self, Error> {
        let (mut pieces, mut member_files, mut streams) = (Vec::new(), Vec::new(), Vec::new());
        for (number, source) in sources.iter().enumerate() {
            let Kind::File(path) = &source.kind else {
                streams.push(number);
                continue;
            };
            let unreadable = |error| source.unreadable("look how it begins", error);
            let file = File::open(path).map_err(unreadable)?;
            match Manner::of(&file).map_err(unreadable)? {
                Manner::Plain { bytes } => {
                    pieces.extend(ranges::cut(bytes, range_bytes).map(|range| (number, Piece::Range(range))));
                }
                // One reader is faster with a thread beside it that inflates.
                Manner::Compressed(_) if options.threads.get() == 1 => streams.push(number),
                Manner::Compressed(by) => {
                    let cut = MemberFile::of(number, &file, by, range_bytes).map_err(unreadable)?;
                    match cut {
                        Some(members) if is_utf8_inside(&file) => member_files.push(members),
                        _ => streams.push(number),
                    }
                }
                Manner::Utf16 => streams.push(number),
                Manner::Parquet => {
                    let row_groups = rows::row_groups(source, file, &options.format)?.into_iter();
                    pieces.extend(row_groups.map(|group| (number, Piece::RowGroup(Box::new(group)))));
                }
            }
        }
        let bytes = sources.iter().map(|source| source.bytes).sum();
        let (sources, state): (Arc<[Source]>, _) = (sources.into(), Arc::new(State::default()));
        let streams = Streams::start(&sources, streams, options, &state)?;
        let line_bytes_max = options.line_bytes_max;
        let (next_piece, next_member_file) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(Self {
            sources,
            bytes,
            line_bytes_max,
            pieces,
            next_piece,
            member_files,
            next_member_file,
            streams,
            state,
        })
    }

    /// What is read, by the numbers of entries.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Visits what one thread reads, on the thread that calls it, and returns when everything has been given to one or
    /// another. As many threads as were announced call it, once each and at the same time.
    ///
    /// What cannot be read is an error of one of them. An error, of this or of the visitor, and a panic end the reading
    /// of the others too, which then return without one.
    pub fn each<E: From<Error>>(
        &self,
        mut visit: impl FnMut(InputEntry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let stop = StopUnlessDone(self);
        let mut opened = None;
        // Who reads streams waits for its batches to be taken, pieces wait for nobody.
        while !self.state.is_stopped() {
            let batch = if let Some(batch) = self.streams.take_waiting()? {
                batch
            } else if let Some((number, piece)) = self.take_piece() {
                self.read_piece(*number, piece, &mut opened, &mut visit)?;
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

    fn read_piece<E: From<Error>>(
        &self,
        number: usize,
        piece: &Piece,
        opened: &mut Option<(usize, Arc<File>)>,
        visit: &mut impl FnMut(InputEntry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let source = &self.sources[number];
        let file = match opened {
            Some((same, file)) if *same == number => Arc::clone(file),
            _ => {
                let Kind::File(path) = &source.kind else { unreachable!("pieces are of files") };
                let file = File::open(path).map_err(|error| source.unreadable("open it", error))?;
                Arc::clone(&opened.insert((number, Arc::new(file))).1)
            }
        };
        let part = self.part(source);
        let mut visit =
            |offset: u64, what: What<'_>| visit(InputEntry { place: InputPlace::at(number, offset), what });
        match piece {
            Piece::Range(range) => {
                let mut visit = |line: Line<'_>| visit(line.offset, What::Line(line.content));
                range.each_line(&file, &part, &mut visit)
            }
            Piece::RowGroup(group) => group.each_row(file, &part, &mut visit),
        }
    }

    /// Files of members are cut one after the other, each by all threads.
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
        let mut visit = |line: Line<'_>| {
            let place = InputPlace { source: file.source, group: group.number, offset: line.offset };
            if place.is_first() && rows::is_beginning(line.content) {
                return Err(Error::NoFile { input: source.name.clone() }.into());
            }
            visit(InputEntry { place, what: What::Line(line.content) })
        };
        file.each_line(group, &self.part(source), &mut visit)
    }

    fn part<'a>(&'a self, source: &'a Source) -> Part<'a> {
        Part { source, line_bytes_max: self.line_bytes_max, state: &self.state }
    }

    /// The bytes before a place in its source, inflated ones where it is compressed; of a Parquet file, the rows. It can
    /// be told when all has been read.
    pub fn offset(&self, place: InputPlace) -> u64 {
        let file = self.member_files.iter().find(|file| file.source == place.source);
        file.map_or(0, |file| file.bytes_before(place.group)) + place.offset
    }

    /// How much has been read, of compressed sources as they lie there. A piece of a file counts when it has been read.
    pub fn bytes_read(&self) -> u64 {
        self.state.bytes_read.load(Ordering::Relaxed)
    }

    /// How much there is to be read, unless a source does not tell its size.
    pub fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Ends all reading early, from any thread: each [`Reading::each`] returns when it has visited a line, row or batch
    /// that it is at, those that wait return at once.
    pub fn stop(&self) {
        self.streams.stop();
    }
}

/// Threads that read streams end when their next read returns; one that waits for standard input may wait on, and holds
/// nobody up.
impl Drop for Reading {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Stops all threads where one breaks off, by an error or a panic.
struct StopUnlessDone<'a>(&'a Reading);

impl Drop for StopUnlessDone<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl InputPlace {
    /// A place in a source that is not cut into groups.
    pub(crate) fn at(source: usize, offset: u64) -> Self {
        Self { source, group: 0, offset }
    }

    fn is_first(self) -> bool {
        self.group == 0 && self.offset == 0
    }
}

impl State {
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
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
    fn unreadable(&self, doing: &'static str, source: io::Error) -> Error {
        match source.downcast() {
            Ok(error) => Error::Store(error),
            Err(source) => Error::Read { input: self.name.clone(), doing, source },
        }
    }
}

/// How a regular file is read.
enum Manner {
    Plain {
        bytes: u64,
    },
    Compressed(Compression),
    /// It is decoded from its beginning on.
    Utf16,
    Parquet,
}

impl Manner {
    fn of(file: &File) -> io::Result<Self> {
        let mut beginning = Vec::new();
        file.take(input::FORM_BYTES as u64).read_to_end(&mut beginning)?;
        if let Some(by) = Compression::of(&beginning) {
            return Ok(Self::Compressed(by));
        }
        match Form::of(&beginning) {
            _ if beginning.starts_with(rows::MAGIC) => Ok(Self::Parquet),
            Form::Utf8 => Ok(Self::Plain { bytes: file.metadata()?.len() }),
            Form::Utf16(_) => Ok(Self::Utf16),
            Form::Tar => Err(Fault::Tar.into()),
        }
    }
}

/// Whether a compressed file's content is lines in UTF-8, which may be cut anywhere. What is wrong with one that cannot be
/// read is told by who reads it.
fn is_utf8_inside(mut file: &File) -> bool {
    file.rewind().and_then(|()| input::of(file)).is_ok_and(|content| !content.is_utf16())
}

#[cfg(test)]
mod tests;
