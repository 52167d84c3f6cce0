//! Reads sources one after the other in chunks of whole lines, from a place that an earlier process reached.
//!
//! A place is the number of bytes and lines that were passed on of each source. Bytes are those of the decoded content. A
//! source that grew is read from its place on. Lines that are not complete are passed on when they are, or at the end of the
//! input.
//!
//! [`SequenceOptions::follows`] reads folders again and again: files that appear and lines that are appended are passed on
//! as they come. Compressed files must be complete when they appear. A file that vanishes before it is opened, such as one
//! that its writer renames, is skipped.
//!
//! Standard input and named pipes are read as lines arrive. If the writer pauses, the lines so far are passed on. A process
//! that is told to stop passes on all complete lines that it has read and keeps the rest of the last one in the place, so
//! that the next process continues with the next byte.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use corpus::encoding::{Encoding, UTF_8};
use input::{Compression, Form, Transcoded};
use memchr::memrchr;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use store::S3Options;

use crate::source::{Kind, find_followed};
use crate::{Error, Source, find};

/// Size of one read.
const READ_BYTES: usize = 256 << 10;
/// Bytes that show whether a stream is compressed.
const MAGIC_BYTES: usize = 6;
/// Lines are passed on if nothing arrives for this time; a request to stop is noticed within it.
const PAUSE: Duration = Duration::from_millis(50);
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
    /// Chunks have about this size. It is also the limit of a line; a longer one is an error.
    pub chunk_bytes: usize,
}

/// How much was passed on of each source, by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Bytes and lines of each source.
    pub sources: BTreeMap<String, Position>,
    /// The beginning of a line of standard input or a pipe whose end did not arrive.
    pub rest: Vec<u8>,
}

/// Bytes and lines of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Decoded bytes.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
}

/// Some lines of a source.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The source.
    pub source: Arc<str>,
    /// Whole lines; the last one of a source may have no LF.
    pub lines: Vec<u8>,
    /// Number of lines.
    pub n_lines: u64,
    /// The position in the source behind the lines.
    pub position: Position,
    /// The bytes read behind the lines, if the sequence was stopped.
    pub rest: Vec<u8>,
}

impl Place {
    /// Moves the place behind a chunk.
    pub fn pass(&mut self, chunk: &Chunk) {
        match self.sources.get_mut(&*chunk.source) {
            Some(position) => *position = chunk.position,
            None => drop(self.sources.insert(chunk.source.to_string(), chunk.position)),
        }
        self.rest.clone_from(&chunk.rest);
    }
}

/// Passes all chunks of the inputs behind a place to `pass`, in their order, until the end of the inputs, until `pass`
/// returns false, or until `stop` is true.
///
/// # Errors
/// If a source cannot be read, has a line that is too long, or is shorter than its place.
pub fn read_sequence(
    options: &SequenceOptions,
    place: &Place,
    stop: &AtomicBool,
    mut pass: impl FnMut(Chunk) -> bool,
) -> Result<(), Error> {
    let mut place = place.clone();
    // Sizes of files before they were read to their end. A file that still has that size is not opened again.
    let mut sizes: HashMap<String, u64> = HashMap::new();
    loop {
        let sources = match options.follows {
            true => find_followed(&options.inputs, &options.s3),
            false => find(&options.inputs, &options.s3),
        };
        let sources = match sources {
            Err(Error::Empty { .. } | Error::NoMatch { .. }) if options.follows => Vec::new(),
            found => found?,
        };
        for source in &sources {
            let is_read = |bytes: u64| sizes.get(&source.name) == Some(&bytes);
            if options.follows && source.bytes.is_some_and(is_read) {
                continue;
            }
            if !options.follows || !is_unchanged(source, &place) {
                let mut reader = match Reader::open(source, options, stop, &mut place) {
                    Err(error) if options.follows && has_vanished(&error) => continue,
                    opened => opened?,
                };
                if !reader.each(&mut |chunk: Chunk| {
                    place.pass(&chunk);
                    pass(chunk)
                })? {
                    return Ok(());
                }
            }
            if let Some(bytes) = source.bytes {
                sizes.insert(source.name.clone(), bytes);
            }
        }
        if !options.follows || stop.load(Relaxed) {
            return Ok(());
        }
        thread::sleep(FOLLOW_EVERY);
    }
}

/// Whether a source vanished after it was found.
fn has_vanished(error: &Error) -> bool {
    matches!(error, Error::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

/// Whether a file that is followed has been read to its end. Of a compressed file, only the decoded size is known: it is read
/// once.
fn is_unchanged(source: &Source, place: &Place) -> bool {
    let Some(position) = place.sources.get(&source.name) else { return false };
    match &source.kind {
        Kind::File(path) => match is_compressed(path) {
            Ok(false) => source.bytes == Some(position.bytes),
            Ok(true) | Err(_) => true,
        },
        Kind::Object(_) | Kind::Web(_) => true,
        Kind::StandardInput | Kind::Pipe(_) => false,
    }
}

fn is_compressed(path: &std::path::Path) -> io::Result<bool> {
    let mut beginning = Vec::new();
    File::open(path)?.take(MAGIC_BYTES as u64).read_to_end(&mut beginning)?;
    Ok(Compression::of(&beginning).is_some())
}

/// Opens a file behind this number of bytes. `None` if it must be read from its start, because it is compressed, encoded or
/// shorter.
fn open_behind(source: &Source, bytes: u64, encoding: &'static Encoding) -> io::Result<Option<File>> {
    let Kind::File(path) = &source.kind else { return Ok(None) };
    let mut file = File::open(path)?;
    let mut beginning = Vec::new();
    (&file).take(input::FORM_BYTES as u64).read_to_end(&mut beginning)?;
    let is_plain = Compression::of(&beginning).is_none()
        && encoding == UTF_8
        && matches!(Form::of(&beginning, encoding), Ok(Form::Lines));
    if !is_plain || file.metadata()?.len() < bytes {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(bytes))?;
    Ok(Some(file))
}

/// A source that is read.
struct Reader<'a> {
    source: &'a Source,
    name: Arc<str>,
    content: Box<dyn Read>,
    /// The descriptor of a stream that is not compressed, on which this waits.
    live: Option<Live>,
    position: Position,
    /// Bytes read that are not passed on.
    buffer: Vec<u8>,
    chunk_bytes: usize,
    /// Whether the last line may be incomplete because the file is followed.
    may_grow: bool,
    stop: &'a AtomicBool,
}

/// What one read brought.
enum Filled {
    More,
    Pause,
    End,
    Stop,
}

impl<'a> Reader<'a> {
    fn open(
        source: &'a Source,
        options: &SequenceOptions,
        stop: &'a AtomicBool,
        place: &mut Place,
    ) -> Result<Self, Error> {
        let (content, live): (Box<dyn Read>, _) = match source.kind {
            Kind::StandardInput | Kind::Pipe(_) => {
                Live::open(source, options.encoding).map_err(|error| source.failed(error))?
            }
            _ => (Box::new(source.content(options.encoding)?), None),
        };
        let is_stream = source.is_stream();
        let mut reader = Self {
            source,
            name: source.name.as_str().into(),
            content,
            live,
            position: Position::default(),
            buffer: if is_stream { std::mem::take(&mut place.rest) } else { Vec::new() },
            chunk_bytes: options.chunk_bytes,
            may_grow: options.follows && !is_stream,
            stop,
        };
        match place.sources.get(&source.name) {
            // A stream continues with its next byte.
            Some(&position) if is_stream => reader.position = position,
            Some(&position) => reader.skip(position, options.encoding)?,
            None => {}
        }
        Ok(reader)
    }

    fn skip(&mut self, position: Position, encoding: &'static Encoding) -> Result<(), Error> {
        let behind = open_behind(self.source, position.bytes, encoding);
        if let Some(file) = behind.map_err(|error| self.source.failed(error))? {
            self.content = Box::new(file);
            self.position = position;
            return Ok(());
        }
        let skipped = io::copy(&mut (&mut self.content).take(position.bytes), &mut io::sink());
        let skipped = skipped.map_err(|error| self.source.failed(error))?;
        self.position = position;
        match skipped == position.bytes {
            true => Ok(()),
            false => Err(Error::Shorter {
                input: self.source.name.clone(),
                found: skipped,
                expected: position.bytes,
            }),
        }
    }

    /// Passes all chunks on. Returns false if this must end.
    fn each(&mut self, pass: &mut impl FnMut(Chunk) -> bool) -> Result<bool, Error> {
        loop {
            match self.fill().map_err(|error| self.source.failed(error))? {
                Filled::More if self.buffer.len() < self.chunk_bytes => {}
                Filled::More | Filled::Pause => {
                    if let Some(chunk) = self.whole_lines()?
                        && !pass(chunk)
                    {
                        return Ok(false);
                    }
                }
                Filled::Stop => {
                    if self.source.is_stream() {
                        let lines = self.take(memrchr(b'\n', &self.buffer).map_or(0, |at| at + 1));
                        pass(Chunk { rest: std::mem::take(&mut self.buffer), ..lines });
                    }
                    return Ok(false);
                }
                Filled::End => {
                    let n = if self.may_grow {
                        memrchr(b'\n', &self.buffer).map_or(0, |at| at + 1)
                    } else {
                        self.buffer.len()
                    };
                    return Ok(n == 0 || pass(self.take(n)));
                }
            }
        }
    }

    /// Reads until there is more, a pause, the end, or a request to stop.
    fn fill(&mut self) -> io::Result<Filled> {
        if self.stop.load(Relaxed) {
            return Ok(Filled::Stop);
        }
        if let Some(live) = &mut self.live {
            while !live.is_readable()? {
                if self.stop.load(Relaxed) {
                    return Ok(Filled::Stop);
                }
                if self.buffer.contains(&b'\n') {
                    return Ok(Filled::Pause);
                }
            }
        }
        let from = self.buffer.len();
        self.buffer.resize(from + READ_BYTES, 0);
        let n = loop {
            match self.content.read(&mut self.buffer[from..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(from + *n.as_ref().unwrap_or(&0));
        Ok(if n? == 0 { Filled::End } else { Filled::More })
    }

    /// The complete lines in the buffer.
    fn whole_lines(&mut self) -> Result<Option<Chunk>, Error> {
        match memrchr(b'\n', &self.buffer) {
            Some(at) => Ok(Some(self.take(at + 1))),
            None if self.buffer.len() < self.chunk_bytes => Ok(None),
            None => Err(Error::LongLine {
                input: self.source.name.clone(),
                line: self.position.lines + 1,
                bytes_max: self.chunk_bytes,
            }),
        }
    }

    /// Takes the first `n` bytes, which are whole lines.
    fn take(&mut self, n: usize) -> Chunk {
        let rest = self.buffer.split_off(n);
        let lines = std::mem::replace(&mut self.buffer, rest);
        let is_cut = lines.last().is_some_and(|&last| last != b'\n');
        let n_lines = memchr::memchr_iter(b'\n', &lines).count() as u64 + u64::from(is_cut);
        self.position.bytes += lines.len() as u64;
        self.position.lines += n_lines;
        Chunk { source: Arc::clone(&self.name), lines, n_lines, position: self.position, rest: Vec::new() }
    }
}

/// A stream on which this waits before it reads.
struct Live {
    descriptor: Descriptor,
    /// Whether the bytes that detected the form of the content have been read.
    is_begun: bool,
}

enum Descriptor {
    Standard(io::Stdin),
    Pipe(File),
}

impl Live {
    /// Opens a stream. One that is compressed has no descriptor: decompressors cannot pause.
    fn open(source: &Source, encoding: &'static Encoding) -> io::Result<(Box<dyn Read>, Option<Self>)> {
        let (mut stream, descriptor): (Box<dyn Read>, _) = match &source.kind {
            Kind::Pipe(path) => {
                let file = File::open(path)?;
                (Box::new(file.try_clone()?), Descriptor::Pipe(file))
            }
            _ => (Box::new(program::stdin()?), Descriptor::Standard(io::stdin())),
        };
        let mut beginning = Vec::new();
        (&mut stream).take(MAGIC_BYTES as u64).read_to_end(&mut beginning)?;
        let is_compressed = Compression::of(&beginning).is_some();
        let content = Cursor::new(beginning).chain(stream);
        if is_compressed {
            return Ok((Box::new(input::of_encoding(content, encoding)?.in_utf8(encoding)), None));
        }
        // What one read decodes fits into the next one of this module, so nothing waits for the descriptor.
        Ok((Box::new(Transcoded::of(content, encoding)), Some(Self { descriptor, is_begun: false })))
    }

    /// Whether bytes can be read, now or within a short time.
    fn is_readable(&mut self) -> io::Result<bool> {
        if !std::mem::replace(&mut self.is_begun, true) {
            return Ok(true);
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: PAUSE.subsec_nanos().into() };
        let mut polled = [PollFd::from_borrowed_fd(self.descriptor.as_fd(), PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(n) => Ok(n > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Standard(stdin) => stdin.as_fd(),
            Self::Pipe(file) => file.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    fn options(input: &std::path::Path, follows: bool) -> SequenceOptions {
        let inputs = vec![input.to_str().unwrap().to_owned()];
        SequenceOptions { inputs, s3: S3Options::default(), encoding: UTF_8, follows, chunk_bytes: 16 }
    }

    fn read_all(options: &SequenceOptions, place: &mut Place) -> Vec<u8> {
        let mut all = Vec::new();
        let stop = AtomicBool::new(false);
        read_sequence(options, &place.clone(), &stop, |chunk| {
            all.extend_from_slice(&chunk.lines);
            place.pass(&chunk);
            true
        })
        .unwrap();
        all
    }

    #[test]
    fn a_place_continues_behind_the_last_line_of_each_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "one\ntwo\nthree\n").unwrap();
        fs::write(folder.path().join("b"), "four\nfive").unwrap();
        let options = options(folder.path(), false);
        let mut place = Place::default();
        assert_eq!(read_all(&options, &mut place), b"one\ntwo\nthree\nfour\nfive");
        let lines: Vec<u64> = place.sources.values().map(|position| position.lines).collect();
        assert_eq!(lines, [3, 2]);
        assert_eq!(read_all(&options, &mut place), b"");
        let mut file = fs::OpenOptions::new().append(true).open(folder.path().join("a")).unwrap();
        file.write_all(b"six\n").unwrap();
        fs::write(folder.path().join("c"), "seven\n").unwrap();
        assert_eq!(read_all(&options, &mut place), b"six\nseven\n");
    }

    #[test]
    fn a_place_in_utf_16_continues_behind_its_last_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let encoded = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        fs::write(&path, encoded("\u{feff}one\n")).unwrap();
        let mut place = Place::default();
        read_all(&options(&path, false), &mut place);
        fs::write(&path, encoded("\u{feff}one\ntwo\n")).unwrap();
        assert_eq!(read_all(&options(&path, false), &mut place), b"two\n");
    }

    #[test]
    fn each_chunk_is_a_place_to_continue_from() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let text: String = (0..3000).map(|line| format!("line {line} of the text\n")).collect();
        fs::write(&path, &text).unwrap();
        let options = SequenceOptions { chunk_bytes: 1000, ..options(&path, false) };
        let stop = AtomicBool::new(false);
        let mut chunks = Vec::new();
        read_sequence(&options, &Place::default(), &stop, |chunk| {
            chunks.push(chunk);
            true
        })
        .unwrap();
        let mut place = Place::default();
        place.pass(&chunks[0]);
        let rest = read_all(&options, &mut place);
        assert_eq!([&chunks[0].lines[..], &rest].concat(), text.as_bytes());
        assert!(chunks.iter().all(|chunk| chunk.lines.ends_with(b"\n")));
    }

    #[test]
    fn a_folder_that_is_followed_passes_on_complete_lines_as_they_come() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let options = options(folder.path(), true);
        let stop = AtomicBool::new(false);
        let (sender, receiver) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let pass = |chunk: Chunk| sender.send(chunk.lines).is_ok();
                read_sequence(&options, &Place::default(), &stop, pass).unwrap();
            });
            let mut file = File::create(&path).unwrap();
            file.write_all(b"one\ntw").unwrap();
            assert_eq!(receiver.recv().unwrap(), b"one\n");
            file.write_all(b"o\n").unwrap();
            assert_eq!(receiver.recv().unwrap(), b"two\n");
            fs::write(folder.path().join("next"), "three\n").unwrap();
            assert_eq!(receiver.recv().unwrap(), b"three\n");
            stop.store(true, Relaxed);
        });
    }

    #[test]
    fn a_file_that_vanishes_after_it_was_found_is_skipped_if_it_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        // The first file is listed and cannot be found; the last one is found and cannot be opened.
        std::os::unix::fs::symlink("nowhere", folder.path().join("a")).unwrap();
        fs::write(folder.path().join("b"), "one\n").unwrap();
        fs::write(folder.path().join("c"), "two\n").unwrap();
        let stop = AtomicBool::new(false);
        let mut lines = Vec::new();
        let pass = |chunk: Chunk| {
            lines.extend(chunk.lines);
            fs::remove_file(folder.path().join("c")).unwrap();
            stop.store(true, Relaxed);
            true
        };
        read_sequence(&options(folder.path(), true), &Place::default(), &stop, pass).unwrap();
        assert_eq!(lines, b"one\n");
        let options = options(folder.path(), false);
        assert!(read_sequence(&options, &Place::default(), &stop, |_| true).is_err());
    }

    #[test]
    fn a_pipe_passes_lines_on_when_its_writer_pauses_and_keeps_the_rest_of_a_stop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let options = options(&path, false);
        let stop = AtomicBool::new(false);
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut place = Place::default();
        thread::scope(|scope| {
            scope.spawn(|| {
                let pass = |chunk| sender.send(chunk).is_ok();
                read_sequence(&options, &Place::default(), &stop, pass).unwrap();
                drop(sender);
            });
            let mut writer = fs::OpenOptions::new().write(true).open(&path).unwrap();
            writer.write_all(b"one two\nthr").unwrap();
            let chunk = receiver.recv().unwrap();
            assert_eq!((&chunk.lines[..], chunk.n_lines), (&b"one two\n"[..], 1));
            place.pass(&chunk);
            stop.store(true, Relaxed);
            place.pass(&receiver.recv().unwrap());
        });
        assert_eq!(place.rest, b"thr");
        assert_eq!(place.sources.values().next(), Some(&Position { bytes: 8, lines: 1 }));
        thread::scope(|scope| {
            scope.spawn(|| fs::write(&path, "ee\nfour\n").unwrap());
            assert_eq!(read_all(&options, &mut place), b"three\nfour\n");
        });
        assert_eq!(place.sources.values().next(), Some(&Position { bytes: 19, lines: 3 }));
    }

    #[test]
    fn a_file_that_is_shorter_than_its_place_and_a_line_that_is_too_long_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        fs::write(&path, "one\ntwo\n").unwrap();
        let options = options(&path, false);
        let mut place = Place::default();
        read_all(&options, &mut place);
        fs::write(&path, "one\n").unwrap();
        let stop = AtomicBool::new(false);
        let error = read_sequence(&options, &place, &stop, |_| true).unwrap_err().to_string();
        assert!(error.ends_with("lines: found 4 bytes, expected at least 8, which an earlier process read; pass the same input"), "{error}");
        fs::write(&path, [b"one\n", &[b'a'; 2 * READ_BYTES][..]].concat()).unwrap();
        let error = read_sequence(&options, &Place::default(), &stop, |_| true).unwrap_err().to_string();
        let expected = "lines: line 2 is longer than 16 bytes, expected lines of text; check --format";
        assert!(error.ends_with(expected), "{error}");
    }
}
