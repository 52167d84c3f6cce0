//! The place that a sequence has reached, and what it passes on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::Error;
use crate::source::{Source, Stamp};

/// Size of one read.
pub(super) const READ_BYTES: usize = 256 << 10;
/// Bytes at either end of the digested part of a file.
pub(super) const DIGESTED_BYTES: u64 = 4 << 10;

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

impl Chunk {
    /// No lines.
    pub(super) fn empty(source: Arc<str>, position: Position) -> Self {
        Self { source, lines: Vec::new(), n_lines: 0, n_long: 0, position, rest: Vec::new() }
    }
}

/// What identifies a source that is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The inode of a file.
    pub(super) inode: u64,
    /// The digest is of the ends of these first bytes of a file, as they are stored.
    pub(super) bytes: u64,
    pub(super) digest: u64,
    /// The source when it was read to its end.
    pub(super) read: Option<Stamp>,
}

impl Mark {
    /// The mark of the first bytes of a file.
    pub(super) fn of(file: &File, bytes: u64) -> io::Result<Self> {
        let digest = digest(file, bytes)?.unwrap_or_default();
        Ok(Self { inode: file.metadata()?.ino(), bytes, digest, read: None })
    }

    /// The mark of a source that was read to its end, as it was before.
    pub(super) fn read_of(self, source: &Source) -> Self {
        Self { inode: source.stamp.inode, read: Some(source.stamp), ..self }
    }

    /// Whether a source has not changed since it was read to its end.
    pub(super) fn is_read(&self, source: &Source) -> bool {
        self.read == Some(source.stamp)
    }

    /// Whether a file begins with the bytes that were read.
    pub(super) fn is_of(&self, file: &File) -> bool {
        digest(file, self.bytes).is_ok_and(|digest| digest == Some(self.digest) || self.bytes == 0)
    }
}

/// A digest of both ends of the first bytes of a file. `None` if it is shorter.
fn digest(file: &File, bytes: u64) -> io::Result<Option<u64>> {
    let mut ends = [0, 1].map(|_| vec![0; bytes.min(DIGESTED_BYTES) as usize]);
    let [first, last] = &mut ends;
    let at_last = bytes - last.len() as u64;
    match file.read_exact_at(first, 0).and_then(|()| file.read_exact_at(last, at_last)) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(|()| Some(digest_of(&ends))),
    }
}

/// A digest of the first and the last bytes of a file.
pub(super) fn digest_of(ends: &[Vec<u8>; 2]) -> u64 {
    let mut digest = Xxh3Default::new();
    ends.iter().for_each(|end| digest.update(end));
    digest.digest()
}
