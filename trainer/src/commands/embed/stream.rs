//! Trains on lines as they arrive: the vocabulary grows while its vectors are trained. Each line is read once.
//!
//! Threads: one reads lines, this one cleans, counts and numbers them, and the others train.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use corpus::encoding::UTF_8;
use launch::interrupt::{Asked, Interrupts};
use reading::{Chunk, Place, SequenceOptions, read_sequence};
use report::whole;
use serde::{Deserialize, Serialize};
use skipgram::{Decay, Done, Growing, Training, Vocabulary, Work};

use super::comparisons::Comparisons;
use super::lines::Lines;
use super::model::{CHECKED_WORDS, check_vectors};
use super::out::{self, CHUNK_BYTES};
use super::progress::{Counts, Progress};
use super::{Processes, Trained, Vectors, recipe, settings, threads};
use crate::arguments::{Embed, IfSlow};
use crate::commands::texts_out::TextsOut;
use crate::error::{Error, Result};
use crate::tell::tell;

/// Chunks of lines that wait to be numbered. Lines that arrive when it is full wait or are skipped.
const CHUNKS_WAITING: usize = 4;
/// Time between two checks of signals while no line arrives.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A reader that waits for a store or a compressed stream is not waited for longer: what it holds can be read again.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(5);

/// The place of a checkpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Reached {
    /// Bytes and lines of each source.
    sources: std::collections::BTreeMap<String, [u64; 2]>,
    /// The beginning of a line of standard input.
    rest: Vec<u8>,
    /// Lines that were trained on, and lines that were skipped.
    n_trained: u64,
    n_skipped: u64,
    /// Whether the process stopped after it, so that no line was read since.
    is_end: bool,
}

impl Reached {
    /// Lines before the place, of which some may have been skipped.
    fn n_passed(&self) -> u64 {
        self.sources.values().map(|[_, lines]| lines).sum()
    }

    fn place(&self) -> Place {
        let position = |&[bytes, lines]: &[u64; 2]| reading::Position { bytes, lines };
        let sources = self.sources.iter().map(|(name, of)| (name.clone(), position(of))).collect();
        Place { sources, rest: self.rest.clone() }
    }

    fn pass(&mut self, chunk: &Chunk) {
        let position = [chunk.position.bytes, chunk.position.lines];
        match self.sources.get_mut(&*chunk.source) {
            Some(of) => *of = position,
            None => drop(self.sources.insert(chunk.source.to_string(), position)),
        }
        self.rest.clone_from(&chunk.rest);
        self.n_trained += chunk.n_lines;
    }
}

/// Lines that the reader counts for the other threads.
#[derive(Debug, Default)]
struct Counters {
    n_skipped: AtomicU64,
    stop: AtomicBool,
}

pub(super) fn train(
    arguments: &Embed,
    out: &mut TextsOut,
    interrupts: &Interrupts,
    comparisons: &mut Comparisons,
) -> Result<Trained> {
    out::begin(out, arguments, &recipe(arguments, Processes::One)?)?;
    let settings = settings(arguments);
    let mut training = Training::new(settings, arguments.words_max)?;
    let (vocabulary, reached) = match out::state(out)? {
        None => {
            if arguments.resume {
                tell_lost(arguments, &Reached::default(), out);
            }
            (Vocabulary::new(arguments.words_max), Reached::default())
        }
        Some((_, mut file)) => {
            let (vocabulary, place) = training.restore(arguments.words_max, &mut file)?;
            let reached: Reached = serde_json::from_slice(&place).map_err(|error| Error::internal(&error))?;
            tell_lost(arguments, &reached, out);
            (vocabulary, reached)
        }
    };
    let mut progress = Progress::new(out, training.n_tokens())?;
    let counters = Arc::new(Counters::default());
    counters.n_skipped.store(reached.n_skipped, Relaxed);
    let chunks = read(arguments, out, &reached, &counters)?;
    let lines = Lines::of(arguments)?;
    let growing = Growing::new(vocabulary, &training);
    let mut stream =
        Stream { arguments, training, growing, chunks, lines, reached, counters, n_tokens: 0, loss: None };
    let ended = stream.train(out, &mut progress, interrupts, comparisons);
    stream.counters.stop.store(true, Relaxed);
    ended?;
    progress.finish()?;
    stream.lines.check(arguments)?;
    let Stream { training, growing, reached, n_tokens, loss, counters, .. } = stream;
    let n_skipped = counters.n_skipped.load(Relaxed);
    Ok(Trained {
        vectors: Vectors::Table(Box::new(training)),
        vocabulary: growing.into_vocabulary(),
        n_lines: reached.n_trained,
        n_skipped,
        n_tokens,
        loss,
    })
}

/// Reports lines of a stream that a killed process read after its last checkpoint.
fn tell_lost(arguments: &Embed, reached: &Reached, out: &TextsOut) {
    let is_stream = arguments.input.iter().any(|place| place == "-");
    let read = fs::read_to_string(out::lines_read(out)).ok().and_then(|text| text.trim().parse::<u64>().ok());
    if let (true, false, Some(read)) = (is_stream, reached.is_end, read) {
        let n_lost = read.saturating_sub(reached.n_passed());
        tell(&format!(
            "warning: the last process did not end with a checkpoint: {} lines that it read after its last one are lost",
            whole(n_lost)
        ));
    }
}

/// Starts to read the lines behind a place.
fn read(
    arguments: &Embed,
    out: &TextsOut,
    reached: &Reached,
    counters: &Arc<Counters>,
) -> Result<Receiver<Result<Chunk>>> {
    let options = SequenceOptions {
        inputs: arguments.input.clone(),
        s3: arguments.storage.options(),
        encoding: arguments.encoding.unwrap_or(UTF_8),
        follows: arguments.follow,
        chunk_bytes: CHUNK_BYTES,
    };
    let (sender, receiver) = sync_channel(CHUNKS_WAITING);
    let path = out::lines_read(out);
    let file = fs::File::create(&path).map_err(|source| Error::io(&path, source))?;
    let (place, counters) = (reached.place(), Arc::clone(counters));
    let mut n_read = reached.n_passed();
    let skips = arguments.if_slow == IfSlow::Skip;
    let work = move || {
        let pass = |chunk: Chunk| {
            n_read += chunk.n_lines;
            // It is read only after a kill. Its loss would hide a warning.
            let _ = file.write_all_at(format!("{n_read:020}\n").as_bytes(), 0);
            send(chunk, &sender, skips, &counters)
        };
        if let Err(error) = read_sequence(&options, &place, &counters.stop, pass) {
            let _ = sender.send(Err(texts::Error::from(error).into()));
        }
    };
    // It is not joined: a read of a pipe may never return.
    thread::Builder::new().name("reading".to_owned()).spawn(work).map_err(texts::Error::Thread)?;
    Ok(receiver)
}

/// Passes a chunk on. If the queue is full, it waits, or its lines are skipped. Returns whether there is a receiver.
fn send(chunk: Chunk, sender: &SyncSender<Result<Chunk>>, skips: bool, counters: &Counters) -> bool {
    // The last lines of a process that stops have the beginning of the next one.
    if !skips || counters.stop.load(Relaxed) {
        return sender.send(Ok(chunk)).is_ok();
    }
    match sender.try_send(Ok(chunk)) {
        Ok(()) => true,
        Err(TrySendError::Full(Ok(chunk))) => {
            counters.n_skipped.fetch_add(chunk.n_lines, Relaxed);
            true
        }
        Err(_) => false,
    }
}

/// A stream, and the vectors that are trained on it.
struct Stream<'a> {
    arguments: &'a Embed,
    training: Training,
    growing: Growing,
    chunks: Receiver<Result<Chunk>>,
    lines: Lines,
    reached: Reached,
    counters: Arc<Counters>,
    /// Tokens that this process trained on, and the mean loss since the last line or checkpoint.
    n_tokens: u64,
    loss: Option<f64>,
}

/// Why a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// There are no more lines, or enough words.
    Input,
    /// A checkpoint is due or requested.
    Checkpoint,
    /// A stop is requested.
    Stop,
}

impl Stream<'_> {
    fn train(
        &mut self,
        out: &mut TextsOut,
        progress: &mut Progress,
        interrupts: &Interrupts,
        comparisons: &mut Comparisons,
    ) -> Result<()> {
        let every = self.arguments.checkpoint_every;
        loop {
            let due = (every > 0.0).then(|| Instant::now() + Duration::from_secs_f64(every.min(1e9)));
            let ended = self.segment(due, progress, interrupts)?;
            check_vectors(&self.training, self.growing.vocabulary().n_words(), None)?;
            let (training, vocabulary) = (&self.training, self.growing.vocabulary());
            let of = |word: &[u8]| training.vector_of(vocabulary, word);
            comparisons.compare(training.n_tokens(), vocabulary, of, progress);
            if ended == Ended::Input {
                return Ok(());
            }
            self.reached.is_end = ended == Ended::Stop;
            self.reached.n_skipped = self.counters.n_skipped.load(Relaxed);
            let place = serde_json::to_vec(&self.reached).map_err(|error| Error::internal(&error))?;
            out::save(out, &self.training, self.growing.vocabulary(), &place)?;
            out::replace_model(
                out,
                &self.training,
                self.growing.vocabulary(),
                &recipe(self.arguments, Processes::One)?,
            )?;
            if ended == Ended::Stop {
                out.checkpoints_saved()?;
                return Err(Error::Interrupted { resume: out.shown_checkpoints() });
            }
        }
    }

    /// Trains until the input ends, a checkpoint is due or a stop is requested. Then all lines that were taken are trained.
    fn segment(
        &mut self,
        due: Option<Instant>,
        progress: &mut Progress,
        interrupts: &Interrupts,
    ) -> Result<Ended> {
        let Self { arguments, training, growing, chunks, lines, reached, counters, .. } = self;
        let decay = match arguments.words {
            Some(n_tokens) => Decay::Linear { n_tokens },
            None => Decay::Constant,
        };
        let threads = threads(arguments);
        let (sender, receiver) = sync_channel::<Work>(threads);
        let receiver = Mutex::new(receiver);
        let take = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
        let mut cleaned = Vec::new();
        let (ended, done): (Result<Ended>, skipgram::Result<Done>) = thread::scope(|scope| {
            let trained = scope.spawn(|| training.run(threads, decay, &take));
            let mut stopping_since = None;
            let ended = loop {
                let counts = Counts {
                    n_words: growing.vocabulary().n_words() as u64,
                    n_lines: reached.n_trained,
                    n_skipped: counters.n_skipped.load(Relaxed),
                };
                if progress.is_due()
                    && let Err(error) =
                        check_vectors(training, CHECKED_WORDS.min(growing.vocabulary().n_words()), None)
                {
                    break Err(error);
                }
                progress.note(training.n_tokens(), || training.take_loss(), Some(counts));
                if stopping_since.is_none() {
                    match interrupts.asked() {
                        Some(Asked::Stop) => {
                            counters.stop.store(true, Relaxed);
                            stopping_since = Some(Instant::now());
                        }
                        Some(Asked::Checkpoint) => break Ok(Ended::Checkpoint),
                        None if due.is_some_and(|due| Instant::now() >= due) => break Ok(Ended::Checkpoint),
                        None => {}
                    }
                }
                match chunks.recv_timeout(LOOK_EVERY) {
                    Ok(Ok(chunk)) => {
                        reached.pass(&chunk);
                        if let Err(error) = lines.clean(&chunk.lines, &mut cleaned) {
                            break Err(error);
                        }
                        if sender.send(growing.work(training, &cleaned)).is_err() {
                            break Err(Error::internal(&"the threads of a training ended early"));
                        }
                        if arguments.words.is_some_and(|words| growing.vocabulary().n_tokens() >= words) {
                            break Ok(Ended::Input);
                        }
                    }
                    Ok(Err(error)) => break Err(error),
                    Err(RecvTimeoutError::Timeout) => {
                        if stopping_since.is_some_and(|since: Instant| since.elapsed() > LAST_LINES_WITHIN) {
                            break Ok(Ended::Stop);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        break Ok(if stopping_since.is_some() { Ended::Stop } else { Ended::Input });
                    }
                }
            };
            drop(sender);
            let done = trained.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (ended, done)
        });
        let done = done?;
        self.n_tokens += done.n_tokens;
        self.loss = done.loss();
        let counts = Counts {
            n_words: self.growing.vocabulary().n_words() as u64,
            n_lines: self.reached.n_trained,
            n_skipped: self.counters.n_skipped.load(Relaxed),
        };
        let n_tokens = self.training.n_tokens();
        progress.write(n_tokens, self.loss, progress.tokens_per_s(n_tokens), counts);
        ended
    }
}
