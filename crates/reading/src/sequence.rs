//! Reads sources one after the other in chunks of whole lines, from a place that an earlier process reached.
//!
//! A place is the number of bytes and lines that were passed on of each source. Bytes are those of the decoded content. A
//! source that grew is read from its place on. Lines that are not complete are passed on when they are, or at the end of the
//! input. A line that is too long is skipped and counted.
//!
//! [`SequenceOptions::follows`] reads folders again and again: files that appear and lines that are appended are passed on
//! as they come. A file that vanishes before it is opened, such as one that its writer renames, is skipped. A file that
//! cannot be read to its end, such as a compressed one that is not complete, is reported, and read on when it changes.
//! `followed` recognises files that were renamed or compressed, and those whose content was replaced.
//!
//! Standard input and named pipes are read as lines arrive. If the writer pauses, the lines so far are passed on. A process
//! that is told to stop passes on all complete lines that it has read and keeps the rest of the last one in the place, so
//! that the next process continues with the next byte. `taken` keeps what a process has read of a stream and has in no
//! checkpoint.

mod followed;
mod reader;
mod taken;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use corpus::encoding::Encoding;
use serde::{Deserialize, Serialize};
use store::S3Options;

use self::followed::{Mark, recognise};
use self::reader::Reader;
pub use self::taken::Keep;
use self::taken::{Left, Taken};
use crate::error::Error;
use crate::source::{Kind, Listing, find, find_followed};

/// Interval at which folders are read again.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);

/// What is read.
#[derive(Clone, Debug)]
pub struct SequenceOptions {
    /// Files, folders, patterns, URLs, or `-`.
    pub inputs: Vec<String>,
    /// Options for S3.
    pub s3: S3Options,
    /// The encoding of the inputs.
    pub encoding: &'static Encoding,
    /// Whether to wait for more lines and files at the end of the inputs.
    pub follows: bool,
    /// Chunks have about this size.
    pub chunk_bytes: usize,
    /// Where the bytes of streams are kept that no checkpoint has. Without it, what a killed process has read is lost.
    pub keep: Option<Keep>,
}

/// How much was passed on of each source, by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Bytes and lines of each source.
    pub sources: BTreeMap<String, Position>,
    /// The beginning of a line of a stream whose end did not arrive.
    pub rest: Vec<u8>,
    /// The stream that this line is of.
    #[serde(default)]
    pub rest_of: String,
}

/// Bytes and lines of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Decoded bytes. Of a stream: bytes, as they came.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
    /// What identifies a source that is followed.
    pub mark: Option<Mark>,
}

/// What a sequence passes on.
#[derive(Debug)]
pub enum Passed {
    /// Lines.
    Lines(Chunk),
    /// A stream continues behind a process that did not end with a checkpoint. Passed before its lines.
    Resumed(Resumed),
    /// A line that is too long, the rest of a file that cannot be read, or the lines of a file that was replaced.
    Skipped(Error),
}

/// Some lines of a source.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The source.
    pub source: Arc<str>,
    /// Whole lines; the last one of a source may have no LF. Lines that are too long are left out.
    pub lines: Vec<u8>,
    /// Number of lines, with those that are too long.
    pub n_lines: u64,
    /// Number of lines that are too long.
    pub n_long: u64,
    /// The position in the source behind the lines.
    pub position: Position,
    /// The bytes read behind the lines, if the sequence was stopped.
    pub rest: Vec<u8>,
}

/// What an earlier process had read of a stream behind its last checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// The stream.
    pub source: Arc<str>,
    /// The position behind the lines that are lost.
    pub position: Position,
    /// Lines that are lost. `None` if their number is unknown.
    pub n_lost: Option<u64>,
    /// Lines that are read again.
    pub n_again: u64,
    /// Bytes of the last line, whose end the process did not read. They are lost.
    pub n_open: u64,
}

impl Resumed {
    /// `None` if the earlier process left nothing.
    fn of(source: &Arc<str>, position: Position, left: &Left) -> Option<Self> {
        let &Left { n_lost, n_again, n_open } = left;
        let source = Arc::clone(source);
        (n_lost != Some(0) || n_again + n_open > 0).then_some(Self {
            source,
            position,
            n_lost,
            n_again,
            n_open,
        })
    }
}

impl Place {
    /// Moves the place behind a chunk.
    pub fn pass(&mut self, chunk: &Chunk) {
        self.set(&chunk.source, chunk.position);
        self.rest.clone_from(&chunk.rest);
        self.rest_of.clear();
        if !chunk.rest.is_empty() {
            self.rest_of.push_str(&chunk.source);
        }
    }

    /// Moves the place behind the lines of a stream that are lost.
    pub fn lose(&mut self, resumed: &Resumed) {
        if self.sources.get(&*resumed.source).is_none_or(|of| of.bytes != resumed.position.bytes) {
            self.set(&resumed.source, resumed.position);
            self.rest.clear();
        }
    }

    fn set(&mut self, source: &str, position: Position) {
        match self.sources.get_mut(source) {
            Some(of) => *of = position,
            None => drop(self.sources.insert(source.to_owned(), position)),
        }
    }
}

impl SequenceOptions {
    /// Where the bytes of a stream are kept.
    fn keep_of(&self, stream: &str) -> Option<Keep> {
        let number = self.inputs.iter().position(|input| input == stream)?;
        let keep = self.keep.as_ref()?;
        Some(Keep { folder: keep.folder.join(number.to_string()), ..keep.clone() })
    }

    /// Deletes what was taken from streams and is before a place, which a checkpoint has.
    ///
    /// # Errors
    /// If a file cannot be deleted.
    pub fn forget(&self, place: &Place) -> io::Result<()> {
        for (name, position) in &place.sources {
            if let Some(keep) = self.keep_of(name) {
                taken::forget(&keep.folder, position.bytes)?;
            }
        }
        Ok(())
    }

    /// Number of lines behind a place that were taken from streams and not passed on.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn n_unread_lines(&self, place: &Place) -> io::Result<u64> {
        let mut n_lines = 0;
        for (name, position) in &place.sources {
            if let Some(keep) = self.keep_of(name) {
                let n_rest = if place.rest_of == *name { place.rest.len() } else { 0 };
                n_lines += taken::n_unread_lines(&keep.folder, *position, n_rest as u64)?;
            }
        }
        Ok(n_lines)
    }
}

/// Passes all chunks of the inputs behind a place to `pass`, in their order, until the end of the inputs, until `pass`
/// returns false, or until `stop` is true.
///
/// # Errors
/// If a source cannot be read or is shorter than its place. The lines before are passed on. Files that are followed are
/// no error: they are skipped.
pub fn read_sequence(
    options: &SequenceOptions,
    place: &Place,
    stop: &AtomicBool,
    mut pass: impl FnMut(Passed) -> bool,
) -> Result<(), Error> {
    let mut place = place.clone();
    let mut listing = Listing::First;
    loop {
        let sources = match options.follows {
            true => find_followed(&options.inputs, &options.s3, listing),
            false => find(&options.inputs, &options.s3),
        };
        let sources = match sources {
            Err(Error::NoFiles(_)) if options.follows => Vec::new(),
            found => found?,
        };
        if options.follows && !recognise(&sources, &mut place, &mut pass) {
            return Ok(());
        }
        for source in &sources {
            let is_followed = options.follows && !source.is_stream();
            let position = place.sources.get(&source.name).copied().unwrap_or_default();
            if is_followed && position.mark.is_some_and(|mark| mark.is_read(source)) {
                continue;
            }
            let rest = if place.rest_of == source.name { place.rest.clone() } else { Vec::new() };
            let read = Reader::open(source, options, stop, position, rest);
            let mut note = |passed: Passed| {
                match &passed {
                    Passed::Lines(chunk) => place.pass(chunk),
                    Passed::Resumed(resumed) => place.lose(resumed),
                    Passed::Skipped(_) => {}
                }
                pass(passed)
            };
            match read.and_then(|mut reader| reader.each(&mut note)) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if is_followed && has_vanished(&error) => {}
                Err(error) if is_followed && matches!(source.kind, Kind::File(_)) => {
                    // It is read on when it changes.
                    let mut position = place.sources.get(&source.name).copied().unwrap_or_default();
                    position.mark = Some(position.mark.unwrap_or_default().read_of(source));
                    let end = Chunk::empty(source.name.as_str().into(), position);
                    place.pass(&end);
                    if !pass(Passed::Skipped(error)) || !pass(Passed::Lines(end)) {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if !options.follows || stop.load(Relaxed) {
            return Ok(());
        }
        listing = Listing::Later;
        thread::sleep(FOLLOW_EVERY);
    }
}

impl Chunk {
    /// No lines.
    fn empty(source: Arc<str>, position: Position) -> Self {
        Self { source, lines: Vec::new(), n_lines: 0, n_long: 0, position, rest: Vec::new() }
    }
}

/// Whether a source vanished after it was found.
fn has_vanished(error: &Error) -> bool {
    matches!(error, Error::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests;
