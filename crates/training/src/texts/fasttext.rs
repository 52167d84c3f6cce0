//! Reads lines as fastText does: any labels, several per line, and none. Lines end at LF only.
//!
//! One regular file that is not compressed is read by [`classifiers::read_fasttext_file`]. Of other inputs, few threads
//! decompress one source each and pass it on in chunks of whole lines.

use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, ScopedJoinHandle};

use classifiers::{Counts, LINE_BYTES_MAX, Texts, add_lines, read_fasttext_file};
use corpus::encoding::Encoding;
use corpus::lines::without_mark;
use program::threads::locked;
use reading::{Source, class_folders};

use crate::texts::chunks::{STREAMS_MAX, check_sources, chunk_number};
use crate::texts::division::{BuiltByThread, SplitBuilders, ThreadSplits};
use crate::texts::error::{Result, TextsError};
use crate::texts::labels::without_labels;
use crate::texts::{Ledger, Lines};

/// Size of a chunk, unless a line is longer. It is large enough that the cost of the queue is negligible.
const CHUNK_BYTES: usize = 1 << 20;
/// Size of one read.
const READ_BYTES: usize = 64 << 10;

pub(crate) fn read(
    sources: &[Source],
    lines: &Lines,
    builders: &SplitBuilders,
) -> Result<(Vec<Texts>, Ledger)> {
    check_sources(sources.len())?;
    let threads = lines.threads.get();
    let (texts, n_omitted) = match sources {
        [source]
            if let (true, Some(path)) =
                (builders.takes_all_lines(), source.lines_file(&lines.format, lines.encoding)?) =>
        {
            (vec![read_fasttext_file(path, threads, builders.reading().clone())?], 0)
        }
        _ => read_streams(sources, lines, builders, CHUNK_BYTES)?,
    };
    let sum = |of: fn(Counts) -> u64| texts.iter().map(|texts| of(texts.counts())).sum::<u64>();
    let labelled = sum(|counts| counts.n_texts) + n_omitted;
    let (unlabelled, other_labels) = (sum(|counts| counts.n_unlabelled), sum(|counts| counts.n_other_labels));
    if labelled == 0 {
        let remedy = class_folders(sources).unwrap_or_else(|| "check --format".to_owned());
        return Err(TextsError::NoLabel { n_lines: unlabelled, remedy });
    }
    Ok((texts, Ledger::FastText { labelled, unlabelled, other_labels }))
}

/// Lines of a source, and the number of their chunk.
type Chunk = (u64, Vec<u8>);

pub(crate) fn read_streams(
    sources: &[Source],
    lines: &Lines,
    builders: &SplitBuilders,
    chunk_bytes: usize,
) -> Result<(Vec<Texts>, u64)> {
    let threads = lines.threads.get();
    let n_streams = STREAMS_MAX.min(threads).min(sources.len());
    // One chunk waits per thread.
    let (sender, receiver) = sync_channel(threads);
    let streams = Streams {
        sources,
        encoding: lines.encoding,
        next: AtomicUsize::new(0),
        is_stopped: AtomicBool::new(false),
        chunk_bytes,
    };
    let receiver = Arc::new(Mutex::new(receiver));
    let built: Result<Vec<BuiltByThread>> = thread::scope(|scope| {
        let streams = &streams;
        let (mut readers, mut workers) = (Vec::new(), Vec::new());
        let mut failed = None;
        for _ in 0..n_streams {
            let sender = sender.clone();
            let work = move || streams.read(&sender);
            match thread::Builder::new().name("reading".to_owned()).spawn_scoped(scope, work) {
                Ok(reader) => readers.push(reader),
                Err(error) => failed = Some(TextsError::Thread(error)),
            }
        }
        drop(sender);
        for _ in 0..threads {
            let (receiver, builders) = (Arc::clone(&receiver), builders.of_thread());
            let work = move || streams.stopping(number(&receiver, builders, streams));
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(worker) => workers.push(worker),
                Err(error) => failed = Some(TextsError::Thread(error)),
            }
        }
        // Without this receiver, and without a thread that has one, a stream that waits to pass on a chunk ends.
        drop(receiver);
        if let Some(error) = failed {
            streams.is_stopped.store(true, Ordering::Relaxed);
            return Err(error);
        }
        let built: Vec<_> = workers.into_iter().map(joined).collect();
        // The streams' errors come first: they are the cause if there are several.
        readers.into_iter().try_for_each(joined)?;
        built.into_iter().collect()
    });
    builders.merge(built?)
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Numbers the words of chunks until there are no more.
fn number(
    receiver: &Mutex<Receiver<Chunk>>,
    mut builders: ThreadSplits<'_>,
    streams: &Streams<'_>,
) -> Result<BuiltByThread> {
    let mut of_splits = vec![Vec::new(); builders.n_splits()];
    loop {
        // The lock is released before the chunk is used.
        let chunk = locked(receiver).recv();
        match chunk {
            Ok((number, lines)) if !streams.is_stopped.load(Ordering::Relaxed) => {
                builders.begin(number)?;
                match builders.takes_all_lines() {
                    true => add_lines(builders.builder(0), &lines)?,
                    false => {
                        divide(&lines, &mut builders, &mut of_splits)?;
                        for (split, lines) in of_splits.iter().enumerate() {
                            add_lines(builders.builder(split), lines)?;
                        }
                    }
                }
            }
            _ => return Ok(builders.finish()),
        }
    }
}

/// Sorts lines by their splits, and adds those that have a key. A line without a label is counted by the builder of the
/// first split.
fn divide(lines: &[u8], builders: &mut ThreadSplits<'_>, of_splits: &mut [Vec<u8>]) -> Result<()> {
    of_splits.iter_mut().for_each(Vec::clear);
    let mut text = Vec::new();
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        text.clear();
        let line = without_mark(line);
        let split = match without_labels(line.strip_suffix(b"\n").unwrap_or(line), &mut text) {
            true => builders.index(text.trim_ascii()),
            false => Some(0),
        };
        match split {
            Some(split) if builders.has_keys(split) => add_lines(builders.builder(split), line)?,
            Some(split) => of_splits[split].extend_from_slice(line),
            None => {}
        }
    }
    Ok(())
}

/// The sources, while they are read.
struct Streams<'a> {
    sources: &'a [Source],
    encoding: &'static Encoding,
    /// Index of the next source.
    next: AtomicUsize,
    is_stopped: AtomicBool,
    chunk_bytes: usize,
}

impl Streams<'_> {
    /// The work of a thread: reads one source after the other.
    fn read(&self, sender: &SyncSender<Chunk>) -> Result<()> {
        let read = || {
            loop {
                let at = self.next.fetch_add(1, Ordering::Relaxed);
                match self.sources.get(at) {
                    Some(source) if !self.is_stopped.load(Ordering::Relaxed) => {
                        self.read_source(at, source, sender)?;
                    }
                    _ => return Ok(()),
                }
            }
        };
        self.stopping(read())
    }

    /// Stops all threads if one of them failed.
    fn stopping<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
        result
    }

    fn read_source(&self, at: usize, source: &Source, sender: &SyncSender<Chunk>) -> Result<()> {
        let mut content = source.content(self.encoding)?;
        // The start of a line whose end has not been read.
        let mut rest = Vec::new();
        let mut from = 0;
        for chunk in 0.. {
            let mut lines = Vec::with_capacity(self.chunk_bytes.max(2 * rest.len()));
            lines.append(&mut rest);
            let is_end = self.fill(&mut content, &mut lines, source, from)?;
            if !is_end {
                let end = lines.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
                rest.extend_from_slice(&lines[end..]);
                lines.truncate(end);
            }
            from += lines.len() as u64;
            // If nobody takes the chunk, all other threads have ended.
            let is_taken = lines.is_empty() || sender.send((chunk_number(at, chunk), lines)).is_ok();
            if is_end || !is_taken {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads until `lines` contains a line end and has the size of a chunk. Returns whether the source has ended.
    fn fill(&self, content: &mut impl Read, lines: &mut Vec<u8>, source: &Source, from: u64) -> Result<bool> {
        let mut has_end = false;
        while lines.len() < self.chunk_bytes || !has_end {
            let n_bytes = lines.len();
            if n_bytes > LINE_BYTES_MAX {
                let input = source.name.clone();
                return Err(TextsError::LongLine { input, from, most: LINE_BYTES_MAX });
            }
            lines.resize(n_bytes + self.chunk_bytes.min(READ_BYTES), 0);
            let read = content.read(&mut lines[n_bytes..]);
            let read = match read {
                Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
                Ok(0) => {
                    lines.truncate(n_bytes);
                    return Ok(true);
                }
                read => read,
            };
            let read = read.map_err(|error| source.failed(error))?;
            lines.truncate(n_bytes + read);
            has_end |= lines[n_bytes..].contains(&b'\n');
        }
        Ok(false)
    }
}
