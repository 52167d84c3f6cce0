//! Reads sequential sources into batches of lines, through a queue of limited length. Records of CSV and elements of a
//! JSON array are passed on like lines.
//!
//! A thread of this module decompresses sources and splits them into lines, one source after the other. The
//! consumer threads take whole batches and return them for reuse. The consumers get the lines of a slow
//! source only when a batch is full or the source ends.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use corpus::csv::Columns;
use corpus::encoding::Encoding;
use corpus::format::Format;
use corpus::lines::{Line, LineContent};
use corpus::rejects::Content;
use input::WholeFile;
use program::exit::Exit;
use program::threads::locked;

use crate::entries::Entries;
use crate::entry::{InputEntry, InputPlace};
use crate::error::Error;
use crate::options::ReadingOptions;
use crate::parquet;
use crate::source::{Kind, Source};
use crate::state::State;

/// A batch of this size is passed on. It is large enough that the cost of the queue is negligible.
const BATCH_BYTES: usize = 1 << 20;
/// Maximum number of lines in a batch, since lines may be empty.
const BATCH_LINES: usize = 64 << 10;

/// The sources that are read as streams.
#[derive(Debug)]
pub(crate) struct Streams {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sources: Arc<[Source]>,
    options: ReadingOptions,
    queue: Mutex<Queue>,
    /// Signals threads that wait for lines.
    filled: Condvar,
    /// Signals threads that read sources.
    emptied: Condvar,
    state: Arc<State>,
}

/// Shared between threads that read and threads that visit.
#[derive(Debug)]
struct Queue {
    /// Indexes of sources that no thread reads yet.
    unread: VecDeque<usize>,
    /// Batches to be visited.
    full: VecDeque<LineBatch>,
    /// Batches to be filled again.
    spent: Vec<LineBatch>,
    /// Number of batches that may still be created.
    n_unmade: usize,
    /// Number of threads that read.
    n_readers: usize,
    failure: Option<Error>,
}

/// Some lines of a source.
#[derive(Debug, Default)]
pub(crate) struct LineBatch {
    source: usize,
    /// Number of lines of the source before it.
    first: u64,
    /// The columns of the source, if the lines are records of CSV.
    columns: Option<Arc<Columns>>,
    bytes: Vec<u8>,
    lines: Vec<BatchLine>,
}

#[derive(Debug)]
struct BatchLine {
    offset: u64,
    content: BatchContent,
}

#[derive(Debug)]
enum BatchContent {
    /// A line of this number of bytes. Its bytes follow those of the previous line in the batch.
    Bytes(usize),
    TooLong {
        bytes: u64,
        blank: bool,
    },
}

impl Streams {
    /// Starts to read the sources with these indexes.
    pub(crate) fn start(
        sources: &Arc<[Source]>,
        numbers: Vec<usize>,
        options: &ReadingOptions,
        state: &Arc<State>,
    ) -> Result<Self, Error> {
        let n_readers = options.streams_max.get().min(numbers.len());
        let names = numbers.clone();
        let queue = Queue {
            unread: numbers.into(),
            full: VecDeque::new(),
            spent: Vec::new(),
            // Two batches per reading thread (one being filled, one in the queue), and one per visiting
            // thread.
            n_unmade: 2 * n_readers + options.threads.get(),
            n_readers,
            failure: None,
        };
        let shared = Arc::new(Shared {
            sources: Arc::clone(sources),
            options: options.clone(),
            queue: Mutex::new(queue),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            state: Arc::clone(state),
        });
        let streams = Self { shared };
        for &number in &names[..n_readers] {
            let shared = Arc::clone(&streams.shared);
            let started = thread::Builder::new().name("reading".to_owned()).spawn(move || shared.read());
            started.map_err(|error| {
                streams.stop();
                sources[number].unreadable("start a thread to read it", error)
            })?;
        }
        Ok(streams)
    }

    /// A batch, if one is available.
    pub(crate) fn take_waiting(&self) -> Result<Option<LineBatch>, Error> {
        self.shared.lock().take()
    }

    /// Waits for the next batch. Returns `None` when there will be no more.
    pub(crate) fn take(&self) -> Result<Option<LineBatch>, Error> {
        let mut queue = self.shared.lock();
        loop {
            let batch = queue.take()?;
            if batch.is_some() || queue.n_readers == 0 || self.shared.state.is_stopped() {
                return Ok(batch);
            }
            queue = self.shared.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns a batch that has been visited.
    pub(crate) fn give_back(&self, batch: LineBatch) {
        self.shared.lock().spent.push(batch);
        self.shared.emptied.notify_one();
    }

    /// Stops all waiting, and all reading at its next step.
    pub(crate) fn stop(&self) {
        // Set under the lock, so that no thread is between its check of the flag and its wait.
        let queue = self.shared.lock();
        self.shared.state.is_stopped.store(true, Ordering::Relaxed);
        drop(queue);
        self.shared.filled.notify_all();
        self.shared.emptied.notify_all();
    }
}

impl Queue {
    fn take(&mut self) -> Result<Option<LineBatch>, Error> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(self.full.pop_front()),
        }
    }
}

impl Shared {
    /// A panic under the lock cannot leave the queue inconsistent.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        locked(&self.queue)
    }

    /// The work of a thread: reads one source after the other.
    fn read(&self) {
        loop {
            let number = {
                let mut queue = self.lock();
                match queue.unread.pop_front() {
                    Some(number) if !self.state.is_stopped() => number,
                    _ => {
                        queue.n_readers -= 1;
                        self.filled.notify_all();
                        return;
                    }
                }
            };
            let leave = LeaveOnPanic { shared: self, number };
            let failure = self.read_source(number).err();
            std::mem::forget(leave);
            if let Some(error) = failure {
                self.fail(error);
                return;
            }
        }
    }

    /// Ends a reading thread with an error.
    fn fail(&self, error: Error) {
        let mut queue = self.lock();
        queue.n_readers -= 1;
        // Only the first error is reported.
        queue.failure.get_or_insert(error);
        // Lines read after the error are not visited.
        queue.unread.clear();
        self.filled.notify_all();
    }

    fn read_source(&self, number: usize) -> Result<(), Error> {
        let source = &self.sources[number];
        let failed = |error| source.failed(error);
        let stream = Counted { stream: source.stream().map_err(failed)?, state: &self.state };
        let content = input::of_encoding(stream, self.options.encoding).map_err(failed)?;
        let mut entries = match &self.options.format {
            Format::Delimited { dialect, fields } => {
                let of = (&*self.sources, number);
                self.state.tables.entries(content, of, (*dialect, fields), &self.options)?
            }
            _ => Entries::of(content, source, &self.options)?,
        };
        let columns = entries.columns();
        if entries.are_elements() {
            locked(&self.state.arrays).insert(number);
        }
        let Some(mut batch) = self.spent() else { return Ok(()) };
        let mut n_lines = 0;
        batch.begin(number, n_lines, columns.as_ref());
        while let Some(line) = entries.next(source)? {
            if line.offset == 0 && parquet::is_beginning(line.content) {
                return Err(source.no_file("Parquet"));
            }
            batch.push(line);
            n_lines += 1;
            if batch.is_full() {
                self.pass_on(batch);
                let Some(spent) = self.spent() else { return Ok(()) };
                batch = spent;
                batch.begin(number, n_lines, columns.as_ref());
            }
        }
        self.pass_on(batch);
        self.state.tables.count(number, entries.table_lines());
        self.state.add_invalid(entries.decoder());
        Ok(())
    }

    fn pass_on(&self, batch: LineBatch) {
        self.lock().full.push_back(batch);
        self.filled.notify_one();
    }

    /// Waits for a batch to fill. Returns `None` when nothing more is to be read.
    fn spent(&self) -> Option<LineBatch> {
        let mut queue = self.lock();
        loop {
            if self.state.is_stopped() {
                return None;
            }
            if let Some(batch) = queue.spent.pop() {
                return Some(batch);
            }
            if queue.n_unmade > 0 {
                queue.n_unmade -= 1;
                return Some(LineBatch { bytes: Vec::with_capacity(BATCH_BYTES), ..LineBatch::default() });
            }
            queue = self.emptied.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Reports a panic of a thread, which the others would otherwise not detect.
struct LeaveOnPanic<'a> {
    shared: &'a Shared,
    number: usize,
}

impl Drop for LeaveOnPanic<'_> {
    fn drop(&mut self) {
        let why = "the thread that read it panicked, see the message above; please report this defect";
        self.shared.fail(self.shared.sources[self.number].refused(Exit::Internal, why));
    }
}

impl LineBatch {
    fn begin(&mut self, source: usize, first: u64, columns: Option<&Arc<Columns>>) {
        self.source = source;
        self.first = first;
        self.columns = columns.cloned();
        self.bytes.clear();
        self.lines.clear();
    }

    fn push(&mut self, line: Line<'_>) {
        let content = match line.content {
            LineContent::Bytes(bytes) => {
                // Exact, because doubling would use twice the memory of the longest line.
                self.bytes.reserve_exact(bytes.len());
                self.bytes.extend_from_slice(bytes);
                BatchContent::Bytes(bytes.len())
            }
            LineContent::TooLong { bytes, blank } => BatchContent::TooLong { bytes, blank },
        };
        self.lines.push(BatchLine { offset: line.offset, content });
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES || self.lines.len() >= BATCH_LINES
    }

    /// Visits the lines of the batch.
    pub(crate) fn each_line<E>(
        &self,
        visit: &mut impl FnMut(InputEntry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = &self.bytes[..];
        for (number, line) in (self.first..).zip(&self.lines) {
            let content = match line.content {
                BatchContent::TooLong { bytes, blank } => LineContent::TooLong { bytes, blank },
                BatchContent::Bytes(bytes) => {
                    let (content, behind) = rest.split_at(bytes);
                    rest = behind;
                    LineContent::Bytes(content)
                }
            };
            let place = InputPlace::at(self.source, line.offset);
            visit(InputEntry {
                place,
                number,
                what: Content::Line(content),
                columns: self.columns.as_deref(),
                values: &[],
            })?;
        }
        Ok(())
    }
}

impl Source {
    /// Opens the content of the source, which is in this encoding, decompressed and in UTF-8, from its start.
    pub fn content(&self, encoding: &'static Encoding) -> Result<impl Read + use<>, Error> {
        let content = self.stream().and_then(|stream| input::of_encoding(stream, encoding));
        content.map(|content| content.in_utf8(encoding)).map_err(|error| self.failed(error))
    }

    /// Opens the bytes of the source, from its start.
    fn stream(&self) -> io::Result<Box<dyn Read>> {
        Ok(match &self.kind {
            Kind::StandardInput => Box::new(program::stdin()?),
            // Opening a pipe blocks until a process opens it for writing.
            Kind::Object(object) => Box::new(object.reader()?),
            Kind::Web(file) => Box::new(file.reader()?),
            Kind::File(path) | Kind::Pipe(path) => Box::new(WholeFile::of(File::open(path)?)?),
        })
    }
}

/// A stream that counts the bytes read.
struct Counted<'a> {
    stream: Box<dyn Read>,
    state: &'a State,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.stream.read(buffer)?;
        self.state.advance(bytes as u64);
        Ok(bytes)
    }
}
