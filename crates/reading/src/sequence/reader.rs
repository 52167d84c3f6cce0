//! Reads one source of a sequence in chunks of whole lines.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use corpus::encoding::{Encoding, UTF_8};
use corpus::lines::{LINE_BYTES_MAX, without_mark};
use input::{WholeFile, is_utf16};
use memchr::{memchr, memchr_iter, memrchr};
use program::exit::{Exit, Failed};
use program::system::Failure;

use super::followed::Followed;
use super::options::SequenceOptions;
use super::place::{Chunk, Mark, Passed, Position, READ_BYTES, Resumed};
use super::taken::{Left, Taken};
use crate::error::Error;
use crate::source::{Kind, Source};

/// Bytes of a line that show that it is too long: a byte more than the limit, a byte-order mark and a CR.
const HELD_BYTES: usize = LINE_BYTES_MAX + 5;

/// A source that is read.
pub(super) struct SourceReader<'a> {
    source: &'a Source,
    options: &'a SequenceOptions,
    name: Arc<str>,
    content: SourceContent,
    /// A file that is followed.
    followed: Option<Followed>,
    /// What is passed on first.
    resumed: Option<Resumed>,
    position: Position,
    /// Bytes read that are not passed on.
    buffer: Vec<u8>,
    /// Bytes of the first line in the buffer that are not in it, because it is too long.
    dropped: u64,
    stop: &'a AtomicBool,
}

enum SourceContent {
    Bytes(Box<dyn Read>),
    Stream {
        taken: Taken,
        detected: Detected,
        /// The encoding of lines.
        encoding: &'static Encoding,
    },
}

/// Whether the first bytes of a stream have shown how it is decoded.
#[derive(Clone, Copy)]
enum Detected {
    No,
    /// They are in the buffer from here on.
    At(usize),
    Yes,
}

/// What one read brought.
enum Filled {
    More,
    Pause,
    /// The end of a text, whose last line has no LF, before another one.
    Text,
    End,
    Stop,
}

impl<'a> SourceReader<'a> {
    /// Opens a source behind a position and, of a stream, the beginning of a line.
    pub(super) fn open(
        source: &'a Source,
        options: &'a SequenceOptions,
        stop: &'a AtomicBool,
        mut position: Position,
        mut rest: Vec<u8>,
    ) -> Result<Self, Error> {
        let name: Arc<str> = source.name.as_str().into();
        let (mut followed, mut resumed) = (None, None);
        let failed = |error| source.failed(error);
        let content = match &source.kind {
            kind if source.is_stream()
                && let Some(keep) = options.keep_of(&source.name) =>
            {
                let before = position.bytes;
                let folder = keep.folder.clone();
                let opened = Taken::open(keep, kind, &mut position, rest.len() as u64);
                let (taken, Left { n_lost, n_again, n_open }) =
                    opened.map_err(|error| unkept(&folder, &error))?;
                if position.bytes != before {
                    rest.clear();
                }
                if n_lost != Some(0) || n_again + n_open > 0 {
                    let source = Arc::clone(&name);
                    resumed = Some(Resumed { source, position, n_lost, n_again, n_open });
                }
                let encoding = if is_utf16(options.encoding) { UTF_8 } else { options.encoding };
                SourceContent::Stream { taken, detected: Detected::No, encoding }
            }
            Kind::File(path) => {
                let file = File::open(path).map_err(failed)?;
                // The file was replaced after it was recognised, and is recognised again.
                if options.follows && position.mark.is_some_and(|mark| !mark.is_of(&file)) {
                    return Err(failed(io::ErrorKind::NotFound.into()));
                }
                let is_plain = is_plain(&file, options.encoding).map_err(failed)?;
                let content = file.try_clone().map_err(failed)?;
                let content: Box<dyn Read> = match is_plain {
                    true => Box::new(behind(source, content, position.bytes)?),
                    false => {
                        let content = WholeFile::of(content)
                            .and_then(|file| input::of_encoding(file, options.encoding));
                        let mut content = content.map_err(failed)?.in_utf8(options.encoding);
                        skip(source, &mut content, position.bytes)?;
                        Box::new(content)
                    }
                };
                if options.follows {
                    let bytes = source.bytes.unwrap_or_default();
                    followed = Some(Followed::of(file, bytes, is_plain).map_err(failed)?);
                }
                SourceContent::Bytes(content)
            }
            _ => {
                let mut content = source.content(options.encoding)?;
                if !source.is_stream() {
                    skip(source, &mut content, position.bytes)?;
                }
                SourceContent::Bytes(Box::new(content))
            }
        };
        let buffer = rest;
        Ok(Self { source, options, name, content, followed, resumed, position, buffer, dropped: 0, stop })
    }

    /// Passes all chunks on. Returns false if this must end.
    pub(super) fn each(&mut self, pass: &mut impl FnMut(Passed) -> bool) -> Result<bool, Error> {
        if let Some(resumed) = self.resumed.take()
            && !pass(Passed::Resumed(resumed))
        {
            return Ok(false);
        }
        loop {
            match self.fill() {
                Ok(Filled::More) if self.buffer.len() < self.options.chunk_bytes => {}
                Ok(Filled::More | Filled::Pause) => {
                    loop {
                        let (n, is_last) = self.next_lines();
                        if !self.pass_lines(n, pass)? {
                            return Ok(false);
                        }
                        if is_last {
                            break;
                        }
                    }
                    self.shorten();
                }
                Ok(Filled::Text) => {
                    if !self.pass_lines(self.buffer.len(), pass)? {
                        return Ok(false);
                    }
                }
                Ok(Filled::Stop) => {
                    if self.source.is_stream() {
                        let (lines, long) = self.take(self.whole_lines())?;
                        self.pass_long(long, pass);
                        pass(Passed::Lines(Chunk { rest: std::mem::take(&mut self.buffer), ..lines }));
                    }
                    return Ok(false);
                }
                Ok(Filled::End) => return self.end(pass),
                Err(error) => {
                    return match self.pass_lines(self.whole_lines(), pass)? {
                        true => Err(error),
                        false => Ok(false),
                    };
                }
            }
        }
    }

    /// Passes the last lines on.
    fn end(&mut self, pass: &mut impl FnMut(Passed) -> bool) -> Result<bool, Error> {
        // The last line of a plain file that is followed may still grow.
        let may_grow = self.followed.as_ref().is_some_and(Followed::may_grow);
        let n = if may_grow { self.whole_lines() } else { self.buffer.len() };
        if !self.pass_lines(n, pass)? {
            return Ok(false);
        }
        let lines = self.position.lines;
        if let SourceContent::Stream { taken, .. } = &mut self.content {
            taken.begin(lines, 0).map_err(|error| not_kept(self.source, self.options, error))?;
        }
        if !self.options.follows || self.source.is_stream() {
            return Ok(true);
        }
        self.position.mark = Some(self.mark()?.read_of(self.source));
        Ok(pass(Passed::Lines(Chunk::empty(Arc::clone(&self.name), self.position))))
    }

    /// Reads until there is more, a pause, the end, or a request to stop.
    fn fill(&mut self) -> Result<Filled, Error> {
        if self.stop.load(Relaxed) {
            return Ok(Filled::Stop);
        }
        let from = self.buffer.len();
        let SourceContent::Bytes(content) = &mut self.content else { return self.fill_from_stream() };
        self.buffer.resize(from + READ_BYTES, 0);
        let n = loop {
            match content.read(&mut self.buffer[from..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(from + *n.as_ref().unwrap_or(&0));
        let n = n.map_err(|error| self.source.failed(error))?;
        Ok(if n == 0 { Filled::End } else { Filled::More })
    }

    fn fill_from_stream(&mut self) -> Result<Filled, Error> {
        let whole = self.whole_lines();
        let SourceContent::Stream { taken, detected, .. } = &mut self.content else { return Ok(Filled::End) };
        let failed = |error| not_kept(self.source, self.options, error);
        if let Some(lines) = taken.text_begins()
            && self.buffer.len() > whole
        {
            if lines > self.position.lines + n_lines(&self.buffer[..whole]) {
                return Ok(Filled::Text);
            }
            // A kill has cut the line.
            self.dropped += (self.buffer.len() - whole) as u64;
            self.buffer.truncate(whole);
        }
        let mut is_over = false;
        if taken.n_unread() == 0 {
            if matches!(detected, Detected::No) {
                if whole > 0 {
                    return Ok(Filled::Pause);
                }
                *detected = Detected::At(self.buffer.len());
            }
            while !taken.is_readable().map_err(failed)? {
                if self.stop.load(Relaxed) {
                    return Ok(Filled::Stop);
                }
                if whole > 0 {
                    return Ok(Filled::Pause);
                }
            }
            if taken.is_full() {
                let lines = self.position.lines + n_lines(&self.buffer[..whole]);
                taken.begin(lines, (self.buffer.len() - whole) as u64).map_err(failed)?;
            }
            match taken.take().map_err(failed)? {
                None => return Ok(Filled::More),
                Some(0) => is_over = true,
                Some(_) => {}
            }
        }
        loop {
            let from = self.buffer.len();
            self.buffer.resize(from + taken.n_unread().min(READ_BYTES), 0);
            let n = taken.read(&mut self.buffer[from..]).map_err(failed)?;
            self.buffer.truncate(from + n);
            let filled = if n == 0 && is_over { Filled::End } else { Filled::More };
            let Detected::At(at) = *detected else { return Ok(filled) };
            let (beginning, encoding) = (&self.buffer[at..], self.options.encoding);
            let is_plain = match is_over {
                true => input::is_plain_whole(beginning, encoding).map(Some),
                false => input::is_plain(beginning, encoding),
            };
            match is_plain {
                Ok(None) => return Ok(filled),
                Ok(Some(is_plain)) => {
                    *detected = Detected::Yes;
                    if is_plain {
                        return Ok(filled);
                    }
                    let bytes = self.buffer.split_off(at);
                    taken.decode(bytes, encoding).map_err(failed)?;
                    is_over = false;
                }
                Err(fault) => {
                    taken.give_back(self.buffer.split_off(at).len() as u64).map_err(failed)?;
                    return Err(self.source.failed(fault.into()));
                }
            }
        }
    }

    /// Number of bytes of the complete lines in the buffer.
    fn whole_lines(&self) -> usize {
        memrchr(b'\n', &self.buffer).map_or(0, |at| at + 1)
    }

    /// Number of bytes of the complete lines of the next chunk, and whether they are the last ones in the buffer. A read may
    /// bring much more than a chunk.
    fn next_lines(&self) -> (usize, bool) {
        let whole = self.whole_lines();
        let end = self.options.chunk_bytes.saturating_sub(1);
        if whole / 2 < self.options.chunk_bytes {
            return (whole, true);
        }
        let n = memchr(b'\n', &self.buffer[end..whole]).map_or(whole, |at| end + at + 1);
        (n, n == whole)
    }

    /// Drops what follows the beginning of a line that is too long.
    fn shorten(&mut self) {
        if self.buffer.len() > HELD_BYTES && self.whole_lines() == 0 {
            self.dropped += (self.buffer.len() - HELD_BYTES) as u64;
            self.buffer.truncate(HELD_BYTES);
        }
    }

    /// Passes the first `n` bytes on, which are whole lines.
    fn pass_lines(&mut self, n: usize, pass: &mut impl FnMut(Passed) -> bool) -> Result<bool, Error> {
        if n == 0 {
            return Ok(true);
        }
        let (chunk, long) = self.take(n)?;
        Ok(self.pass_long(long, pass) && pass(Passed::Lines(chunk)))
    }

    /// Reports lines that are too long.
    fn pass_long(&self, lines: Vec<u64>, pass: &mut impl FnMut(Passed) -> bool) -> bool {
        let skipped = |line| Passed::Skipped(Error::LongLine { input: self.source.name.clone(), line });
        lines.into_iter().all(|line| pass(skipped(line)))
    }

    /// Takes the first `n` bytes, which are whole lines. Returns the numbers of those that are too long, too.
    fn take(&mut self, n: usize) -> Result<(Chunk, Vec<u64>), Error> {
        let rest = self.buffer.split_off(n);
        let mut lines = std::mem::replace(&mut self.buffer, rest);
        let n_lines = n_lines(&lines);
        let long = if lines.len() > LINE_BYTES_MAX { cut_long(&mut lines) } else { Vec::new() };
        let long: Vec<u64> = long.into_iter().map(|line| self.position.lines + line).collect();
        self.position.bytes += n as u64 + std::mem::take(&mut self.dropped);
        self.position.lines += n_lines;
        if self.followed.is_some() {
            self.position.mark = Some(self.mark()?);
        }
        if let SourceContent::Stream { encoding, .. } = self.content
            && encoding != UTF_8
        {
            lines = encoding.decode_without_bom_handling(&lines).0.into_owned().into_bytes();
        }
        let (source, position, n_long) = (Arc::clone(&self.name), self.position, long.len() as u64);
        Ok((Chunk { source, lines, n_lines, n_long, position, rest: Vec::new() }, long))
    }

    /// What identifies the source, as far as it was read.
    fn mark(&self) -> Result<Mark, Error> {
        let Some(followed) = &self.followed else { return Ok(Mark::default()) };
        followed.mark(self.position.bytes).map_err(|error| self.source.failed(error))
    }
}

/// The error of a stream that was not read, or whose bytes were not written.
fn not_kept(source: &Source, options: &SequenceOptions, error: io::Error) -> Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match (error.kind(), &options.keep) {
        (FileTooLarge | QuotaExceeded | ReadOnlyFilesystem | StorageFull, Some(keep)) => {
            unkept(&keep.folder, &error)
        }
        _ => source.failed(error),
    }
}

fn unkept(folder: &Path, error: &io::Error) -> Error {
    let why = Failure::writing("keep what was read of a stream", error, "choose another --out");
    Failed::new(Exit::Io, format!("{}: {why}", folder.display())).into()
}

/// The error of a source with less content than an earlier process read.
fn shorter(source: &Source, found: u64, expected: u64) -> Error {
    let expected =
        format!("expected at least {expected}, which an earlier process read; pass the same input");
    source.refused(Exit::BadInput, format!("found {found} bytes, {expected}"))
}

/// Number of lines in whole lines, of which the last may have no LF.
fn n_lines(lines: &[u8]) -> u64 {
    let is_cut = lines.last().is_some_and(|&last| last != b'\n');
    memchr_iter(b'\n', lines).count() as u64 + u64::from(is_cut)
}

/// Cuts out lines that are too long. Returns their numbers, from 1.
fn cut_long(lines: &mut Vec<u8>) -> Vec<u64> {
    let (mut long, mut kept) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(lines.split_inclusive(|&byte| byte == b'\n')) {
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        match without_mark(content).len() > LINE_BYTES_MAX {
            true => long.push(number),
            false => kept.extend_from_slice(line),
        }
    }
    if !long.is_empty() {
        *lines = kept;
    }
    long
}

/// Whether the bytes of a file are its content.
fn is_plain(file: &File, encoding: &'static Encoding) -> io::Result<bool> {
    let mut beginning = Vec::new();
    file.take(input::FORM_BYTES as u64).read_to_end(&mut beginning)?;
    let mut file = file;
    file.rewind()?;
    Ok(encoding == UTF_8 && input::is_plain_whole(&beginning, encoding)?)
}

/// A plain file behind this number of bytes.
fn behind(source: &Source, mut file: File, bytes: u64) -> Result<WholeFile, Error> {
    let found = file.metadata().map_err(|error| source.failed(error))?.len();
    if found < bytes {
        return Err(shorter(source, found, bytes));
    }
    let file = file.seek(SeekFrom::Start(bytes)).and_then(|_| WholeFile::of(file));
    file.map_err(|error| source.failed(error))
}

/// Reads past this number of bytes.
fn skip(source: &Source, content: &mut impl Read, bytes: u64) -> Result<(), Error> {
    let found = io::copy(&mut content.take(bytes), &mut io::sink()).map_err(|error| source.failed(error))?;
    match found == bytes {
        true => Ok(()),
        false => Err(shorter(source, found, bytes)),
    }
}
