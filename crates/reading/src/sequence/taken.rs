//! Keeps the bytes that were taken from a stream until a checkpoint has their lines.
//!
//! ```text
//! 00000000000000000000-00000000000000000000-0
//! 00000000000008388608-00000000000000139810-12    bytes and lines before it, bytes of a line that is open there
//! ```
//!
//! The kernel moves the bytes of a pipe or of a file into a file of this folder, so that a process that is killed has taken
//! exactly those that the folder has. From a terminal or a socket, bytes are read and then written: a kill between the two
//! loses them. What the process reads is read from the folder.
//!
//! The oldest files are deleted when a checkpoint has their lines, or when there are too many; their bytes are then lost
//! after a kill, and the name of the next file has the number of lines. A file before which no line is open begins a text:
//! an unfinished line before it is not continued in it.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus::encoding::Encoding;
use input::{Compression, Transcoded};
use memchr::{memchr, memchr_iter, memrchr};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

use super::place::{Position, READ_BYTES};
use crate::source::Kind;

/// Lines are passed on if nothing arrives for this time; a request to stop is noticed within it.
const PAUSE: Duration = Duration::from_millis(50);

/// Where the bytes of streams are kept, and how many.
#[derive(Clone, Debug)]
pub struct Keep {
    /// A folder.
    pub folder: PathBuf,
    /// Size of a file. Its name costs nothing if it is large.
    pub file_bytes: u64,
    /// Size of all files of a stream, and at most one file more. A disk rarely has to write a small folder.
    pub bytes_max: u64,
}

impl Keep {
    /// Keeps at most 72 MiB of a stream in a folder.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder, file_bytes: 8 << 20, bytes_max: 64 << 20 }
    }
}

/// What was taken from a stream.
pub(super) struct Taken {
    keep: Keep,
    /// Files of an earlier process that are read before the stream is.
    older: Vec<Kept>,
    newest: Kept,
    file: File,
    /// Number of bytes that were read.
    at: u64,
    feed: Feed,
}

/// What an earlier process left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Lines that are lost. `None` if their number is unknown.
    pub n_lost: Option<u64>,
    /// Lines that are read again, and bytes of a line behind them, whose end is missing.
    pub n_again: u64,
    pub n_open: u64,
}

/// A file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    /// Bytes and lines of the stream before it.
    from: u64,
    lines: u64,
    /// Bytes before it of a line that continues in it.
    open: u64,
    /// The end of its bytes in the stream.
    end: u64,
}

impl Taken {
    /// Opens the folder of a stream at a place behind `n_rest` bytes of a line. Moves the place behind lines that are lost.
    pub(super) fn open(
        keep: Keep,
        kind: &Kind,
        position: &mut Position,
        n_rest: u64,
    ) -> io::Result<(Self, Left)> {
        let folder = &*keep.folder;
        fs::create_dir_all(folder)?;
        let start = position.bytes + n_rest;
        let mut older = kept(folder)?;
        // Bytes that a disk lost leave a gap, behind which the number of lines is known again.
        let is_gap = |pair: &[Kept]| pair[0].end != pair[1].from;
        if let Some(gap) = older.windows(2).rposition(is_gap) {
            older.drain(..=gap);
        }
        let end = older.last().map_or(start, |last| last.end);
        let (mut at, mut left) = (start, Left { n_lost: Some(0), ..Left::default() });
        let mut newest =
            Kept { from: end.max(start), lines: position.lines, open: n_rest, end: end.max(start) };
        if end > start {
            if start < older[0].from {
                let n_lost;
                (at, n_lost) = lost(folder, &older, position.lines)?;
                left.n_lost = Some(n_lost);
                *position = Position { bytes: at, lines: position.lines + n_lost, mark: position.mark };
            }
            let n_rest = if at == start { n_rest } else { 0 };
            (left.n_again, left.n_open) = again(folder, &older, at, position.lines, n_rest)?;
            (newest.lines, newest.open) = (position.lines + left.n_again, 0);
        } else if end < start {
            // Another machine has continued it since.
            forget(folder, u64::MAX)?;
        } else if older.is_empty() && start > 0 {
            left.n_lost = None;
        }
        let file = newest.create(folder)?;
        older.retain(|file| file.end > at);
        let feed = Feed::Closed(kind.clone());
        Ok((Self { keep, older, newest, file, at, feed }, left))
    }

    /// Number of bytes that were taken and not read.
    pub(super) fn n_unread(&self) -> usize {
        (self.newest.end - self.at) as usize
    }

    /// The number of lines before the next byte, if that begins a text.
    pub(super) fn text_begins(&self) -> Option<u64> {
        let mut files = self.older.iter().chain([&self.newest]);
        files.find(|file| file.from == self.at && file.open == 0).map(|file| file.lines)
    }

    /// Whether a new file is due.
    pub(super) fn is_full(&self) -> bool {
        self.newest.end - self.newest.from >= self.keep.file_bytes
    }

    /// Begins a new file behind these lines and bytes of an open line, and deletes the oldest files if there are too many.
    pub(super) fn begin(&mut self, lines: u64, open: u64) -> io::Result<()> {
        let from = self.newest.end;
        self.newest = Kept { from, lines, open, end: from };
        self.file = self.newest.create(&self.keep.folder)?;
        forget(&self.keep.folder, from.saturating_sub(self.keep.bytes_max))
    }

    /// Reads bytes that were taken.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = match self.older.iter().find(|file| file.end > self.at) {
            None => self.file.read_at(buffer, self.at - self.newest.from)?,
            Some(file) => {
                let n = buffer.len().min((file.end - self.at) as usize);
                file.open(&self.keep.folder)?.read_exact_at(&mut buffer[..n], self.at - file.from)?;
                n
            }
        };
        self.at += n as u64;
        Ok(n)
    }

    /// Whether bytes can be taken, now or within a short time.
    pub(super) fn is_readable(&mut self) -> io::Result<bool> {
        let stream = match &self.feed {
            Feed::Closed(_) => return Ok(true),
            Feed::Raw(stream, _) | Feed::Decoded { waits: Some(stream), .. } => stream,
            Feed::Decoded { waits: None, .. } => return Ok(true),
        };
        let timeout = Timespec { tv_sec: 0, tv_nsec: PAUSE.subsec_nanos().into() };
        match poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&timeout)) {
            Ok(n) => Ok(n > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes bytes from the stream. Returns their number; 0 at its end, and `None` if there are none yet.
    pub(super) fn take(&mut self) -> io::Result<Option<usize>> {
        if let Feed::Closed(kind) = &self.feed {
            self.feed = Feed::Raw(open_stream(kind)?, Move::Splice);
            if !self.is_readable()? {
                return Ok(None);
            }
        }
        let at = self.newest.end - self.newest.from;
        let n = match &mut self.feed {
            Feed::Closed(_) => None,
            Feed::Raw(stream, by) => by.take(stream, &mut self.file, at)?,
            Feed::Decoded { content, .. } => {
                let mut bytes = vec![0; READ_BYTES];
                let n = content.read(&mut bytes)?;
                self.file.write_all_at(&bytes[..n], at)?;
                Some(n)
            }
        };
        self.newest.end += n.unwrap_or_default() as u64;
        Ok(n)
    }

    /// Does not keep the last bytes that were taken.
    pub(super) fn give_back(&mut self, bytes: u64) -> io::Result<()> {
        self.newest.end -= bytes;
        self.at = self.newest.end;
        self.file.set_len(self.newest.end - self.newest.from)
    }

    /// Decodes the stream, which begins with these bytes, before its bytes are kept: it is compressed or UTF-16. The bytes
    /// have been taken and are given back. A kill loses what the decoder holds.
    pub(super) fn decode(&mut self, begun: Vec<u8>, encoding: &'static Encoding) -> io::Result<()> {
        self.give_back(begun.len() as u64)?;
        let Feed::Raw(stream, _) = &self.feed else { return Ok(()) };
        let (stream, poll) = (stream.try_clone()?, stream.try_clone()?);
        let (content, waits): (Box<dyn Read>, _) = match Compression::of(&begun) {
            // Decompressors cannot pause.
            Some(_) => (Box::new(input::of_encoding(Cursor::new(begun).chain(stream), encoding)?), None),
            None => {
                let (utf16, mark) = Encoding::for_bom(&begun).unwrap_or((encoding, 0));
                let begun = Cursor::new(begun[mark..].to_vec());
                (Box::new(Transcoded::of(begun.chain(stream), utf16)), Some(poll))
            }
        };
        self.feed = Feed::Decoded { content, waits };
        // What the decoder holds is not waited for.
        self.take().map(drop)
    }
}

/// Where bytes come from.
enum Feed {
    /// A stream that was not opened.
    Closed(Kind),
    /// A stream whose bytes are kept as they come.
    Raw(File, Move),
    /// A stream whose bytes are decoded before they are kept. It is waited for if its decoder holds nothing.
    Decoded { content: Box<dyn Read>, waits: Option<File> },
}

/// Opens a stream without a buffer.
fn open_stream(kind: &Kind) -> io::Result<File> {
    match kind {
        Kind::Pipe(path) => File::open(path),
        _ => Ok(File::from(program::stdin()?.as_fd().try_clone_to_owned()?)),
    }
}

/// How bytes are moved from a stream to a file.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// By the kernel, from a pipe.
    Splice,
    /// By the kernel, from a file.
    SendFile,
    /// By this process.
    Read,
}

impl Move {
    fn take(&mut self, stream: &mut File, file: &mut File, at: u64) -> io::Result<Option<usize>> {
        loop {
            let taken = match self {
                Self::Splice => {
                    splice(&*stream, None, &*file, Some(&mut at.clone()), READ_BYTES, SpliceFlags::empty())
                }
                Self::SendFile => {
                    file.seek(SeekFrom::Start(at))?;
                    sendfile(&*file, &*stream, None, READ_BYTES)
                }
                Self::Read => {
                    let mut bytes = vec![0; READ_BYTES];
                    let n = match stream.read(&mut bytes) {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                        read => read?,
                    };
                    file.write_all_at(&bytes[..n], at)?;
                    return Ok(Some(n));
                }
            };
            match taken {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INVAL) => {
                    *self = if matches!(self, Self::Splice) { Self::SendFile } else { Self::Read };
                }
                taken => return Ok(Some(taken?)),
            }
        }
    }
}

impl Kept {
    fn name(&self) -> String {
        let Self { from, lines, open, .. } = self;
        format!("{from:020}-{lines:020}-{open}")
    }

    fn create(&self, folder: &Path) -> io::Result<File> {
        File::options().read(true).write(true).create(true).truncate(false).open(folder.join(self.name()))
    }

    fn open(&self, folder: &Path) -> io::Result<File> {
        File::open(folder.join(self.name()))
    }
}

/// The files of a folder, in the order of the stream.
fn kept(folder: &Path) -> io::Result<Vec<Kept>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let mut numbers = name.to_str().unwrap_or_default().split('-').map(|number| number.parse().ok());
        if let [Some(Some(from)), Some(Some(lines)), Some(Some(open)), None] =
            [numbers.next(), numbers.next(), numbers.next(), numbers.next()]
        {
            let end = from + entry.metadata()?.len();
            files.push(Kept { from, lines, open, end });
        }
    }
    files.sort_unstable_by_key(|file| (file.from, file.end));
    Ok(files)
}

/// Deletes the files of a folder that are before this number of bytes of the stream, except the newest one.
pub(super) fn forget(folder: &Path, bytes: u64) -> io::Result<()> {
    let files = match kept(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        files => files?,
    };
    for file in &files[..files.len().saturating_sub(1)] {
        if file.end <= bytes {
            match fs::remove_file(folder.join(file.name())) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Number of lines in a folder behind a place and the beginning of a line.
pub(super) fn n_unread_lines(folder: &Path, position: Position, n_rest: u64) -> io::Result<u64> {
    let at = position.bytes + n_rest;
    let mut files = match kept(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        files => files?,
    };
    files.retain(|file| file.end > at);
    Ok(again(folder, &files, at, position.lines, n_rest)?.0)
}

/// The place behind the lines before the first file, and their number behind a number of lines. A line that is only in part
/// in the file is one of them.
fn lost(folder: &Path, files: &[Kept], lines: u64) -> io::Result<(u64, u64)> {
    let first = files[0];
    let n_lost = first.lines.saturating_sub(lines);
    if first.open == 0 {
        return Ok((first.from, n_lost));
    }
    let (skipped, has_end) = first_line(folder, files)?;
    Ok((first.from + skipped, n_lost + u64::from(has_end)))
}

/// The number of lines in files from a place on, which is behind a number of lines and of bytes of an open line, and of bytes
/// of an open line at their end.
fn again(folder: &Path, files: &[Kept], at: u64, lines: u64, mut open: u64) -> io::Result<(u64, u64)> {
    let mut n_again = 0;
    for file in files.iter().filter(|file| file.end >= at) {
        if file.open == 0 && file.from >= at {
            // A text has ended with a line without an end, unless a kill has cut it.
            let is_line = open > 0 && file.lines > lines + n_again;
            n_again += u64::from(is_line);
            if is_line || file.end > file.from {
                open = 0;
            }
        }
        let (n_lines, n_behind) = count(&file.open(folder)?, at.saturating_sub(file.from))?;
        n_again += n_lines;
        open = if n_lines > 0 { n_behind } else { open + n_behind };
    }
    Ok((n_again, open))
}

/// The number of line ends in a file from a byte on, and of bytes behind the last one.
fn count(file: &File, mut at: u64) -> io::Result<(u64, u64)> {
    let mut buffer = vec![0; READ_BYTES];
    let (mut n_lines, mut n_behind) = (0, 0);
    loop {
        let n = file.read_at(&mut buffer, at)?;
        if n == 0 {
            return Ok((n_lines, n_behind));
        }
        n_lines += memchr_iter(b'\n', &buffer[..n]).count() as u64;
        n_behind = match memrchr(b'\n', &buffer[..n]) {
            Some(last) => (n - last - 1) as u64,
            None => n_behind + n as u64,
        };
        at += n as u64;
    }
}

/// The length of the rest of a line at the beginning of these files, and whether it has an end.
fn first_line(folder: &Path, files: &[Kept]) -> io::Result<(u64, bool)> {
    let mut buffer = vec![0; READ_BYTES];
    for (number, kept) in files.iter().enumerate() {
        if number > 0 && kept.open == 0 {
            return Ok((kept.from - files[0].from, false));
        }
        let (file, mut at) = (kept.open(folder)?, 0);
        while let n @ 1.. = file.read_at(&mut buffer, at)? {
            if let Some(end) = memchr(b'\n', &buffer[..n]) {
                return Ok((kept.from - files[0].from + at + end as u64 + 1, true));
            }
            at += n as u64;
        }
    }
    Ok((files.last().map_or(0, |last| last.end) - files[0].from, false))
}
