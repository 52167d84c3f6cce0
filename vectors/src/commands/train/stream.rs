//! Trains on lines as they arrive: the vocabulary grows while its vectors are trained. Each line is read once.
//!
//! Threads: one reads lines, this one cleans, counts and numbers them. Those that train are the model's.

mod models;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use corpus::encoding::UTF_8;
use embeddings::skipgram::Decay;
use launch::interrupt::{Interrupts, Requested};
use reading::{Chunk, Keep, Passed, Place, Resumed, SequenceOptions, read_sequence};
use report::whole;
use serde::{Deserialize, Serialize};
use training::tell::tell;
use training::texts_out::TextsOut;
use training::{Error, Result};

use self::models::{Learning, SkipGramStream, SpelledStream, StreamModel};
use super::comparisons::Comparisons;
use super::lines::Lines;
use super::out::{self, CHUNK_BYTES, Trained};
use super::progress::{Counts, Progress};
use super::settings::{Processes, recipe};
use crate::arguments::{IfSlow, ModelName, Train};

/// Chunks of [`CHUNK_BYTES`] that wait to be numbered. Lines that arrive when they are full wait or are skipped.
const CHUNKS_WAITING: usize = 4;
/// Size of a chunk for char-lstm, which trains on it between two checks of signals.
const CHUNK_BYTES_OF_LSTM: usize = 1 << 15;
/// Time between two checks of signals while no line arrives.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A reader that waits for a store or a compressed stream is not waited for longer: what it holds can be read again.
pub(super) const LAST_LINES_WITHIN: Duration = Duration::from_secs(5);

/// The place of a checkpoint. The lines before it are trained on, skipped or lost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StreamCheckpoint {
    pub(super) place: Place,
    /// Lines that were trained on.
    pub(super) n_trained: u64,
    /// Lines that were skipped: too fast, too long, or behind the last word of `--words`.
    pub(super) n_skipped: u64,
    /// Lines that a killed process had read.
    pub(super) n_lost: u64,
    /// Whether the process stopped after it, so that no line was read since.
    pub(super) is_end: bool,
}

impl StreamCheckpoint {
    /// Moves behind lines that are trained on. `n_skipped` lines were skipped before them.
    pub(super) fn pass(&mut self, chunk: &Chunk, n_skipped: u64) {
        self.place.pass(chunk);
        self.n_trained += chunk.n_lines - chunk.n_long;
        self.n_skipped = n_skipped;
    }

    /// Moves behind what a killed process had read.
    pub(super) fn lose(&mut self, left: &Resumed) {
        self.place.lose(left);
        self.n_lost += left.n_lost.unwrap_or_default();
    }

    /// Whether there is nothing to report: a process that stopped has left nothing.
    pub(super) fn has_nothing_of(&self, left: &Resumed) -> bool {
        left.n_lost.is_none() && self.is_end
    }
}

/// What the thread that reads passes on, and the number of lines that were skipped before it.
pub(super) type Read = Result<(Passed, u64)>;

/// Lines that the reader counts for the other threads.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) n_skipped: AtomicU64,
    pub(super) stop: AtomicBool,
}

impl Counters {
    /// Continues after this number of skipped lines.
    pub(super) fn of(n_skipped: u64) -> Arc<Self> {
        Arc::new(Self { n_skipped: n_skipped.into(), stop: AtomicBool::default() })
    }
}

pub(super) fn train(
    arguments: &Train,
    out: &mut TextsOut,
    interrupts: &Interrupts,
    comparisons: &mut Comparisons,
) -> Result<Trained> {
    out::begin(out, arguments, &recipe(arguments, Processes::One)?)?;
    match arguments.model {
        ModelName::SkipGram => {
            learn(SkipGramStream::begin(arguments, out)?, arguments, out, interrupts, comparisons)
        }
        ModelName::CharLstm => {
            learn(SpelledStream::begin(arguments, out)?, arguments, out, interrupts, comparisons)
        }
    }
}

/// Trains a model from a place on, which its checkpoint has.
fn learn<M: StreamModel>(
    (model, place): (M, Option<Vec<u8>>),
    arguments: &Train,
    out: &mut TextsOut,
    interrupts: &Interrupts,
    comparisons: &mut Comparisons,
) -> Result<Trained> {
    let reached: StreamCheckpoint = match place {
        None => StreamCheckpoint::default(),
        Some(place) => serde_json::from_slice(&place).map_err(|error| Error::internal(&error))?,
    };
    let mut progress = Progress::new(out, model.n_tokens())?;
    let counters = Counters::of(reached.n_skipped);
    let chunk_bytes = match arguments.model {
        ModelName::SkipGram => CHUNK_BYTES,
        ModelName::CharLstm => CHUNK_BYTES_OF_LSTM,
    };
    let options = options_of(arguments, out, chunk_bytes);
    let chunks = read(options.clone(), arguments.if_slow, reached.place.clone(), &counters)?;
    let lines = Lines::of(arguments)?;
    let mut stream =
        Stream { arguments, options, model, chunks, lines, reached, counters, n_tokens: 0, loss: None };
    let ended = stream.train(out, &mut progress, interrupts, comparisons);
    stream.counters.stop.store(true, Relaxed);
    let is_open = ended?;
    progress.finish()?;
    stream.lines.check(arguments)?;
    if is_open {
        stream.save(out)?;
    }
    let Stream { model, reached, n_tokens, loss, counters, .. } = stream;
    let (vectors, vocabulary) = model.into_vectors();
    let n_skipped = counters.n_skipped.load(Relaxed);
    Ok(Trained {
        vectors,
        vocabulary,
        n_lines: reached.n_trained,
        n_skipped,
        n_lost: reached.n_lost,
        n_tokens,
        loss,
        speed: progress.last(),
        is_open,
    })
}

/// How the lines of a stream are read.
pub(super) fn options_of(arguments: &Train, out: &TextsOut, chunk_bytes: usize) -> SequenceOptions {
    SequenceOptions {
        inputs: arguments.input.clone(),
        s3: arguments.storage.options(),
        encoding: arguments.encoding.unwrap_or(UTF_8),
        follows: arguments.follow,
        chunk_bytes,
        keep: Some(Keep::in_folder(out::taken(out))),
    }
}

/// Reports what a killed process had read of a stream after its last checkpoint.
pub(super) fn tell_resumed(resumed: &Resumed) {
    let Resumed { n_lost, n_again, n_open, .. } = *resumed;
    let killed = "the last process did not end with a checkpoint";
    if n_again > 0 {
        tell(&format!("{killed}: {} lines that it read after its last one are read again", whole(n_again)));
    }
    match n_lost {
        Some(0) => {}
        Some(n_lost) => tell(&format!(
            "warning: {killed}: {} lines that it read after its last one are lost",
            whole(n_lost)
        )),
        None => tell(&format!(
            "warning: {killed} in this folder: lines that it read after its last one are lost, and their number is unknown"
        )),
    }
    if n_open > 0 {
        tell(&format!(
            "warning: {killed}: the first {} bytes of a line, whose end it did not read, are lost",
            whole(n_open)
        ));
    }
}

/// Starts to read the lines behind a place.
pub(super) fn read(
    options: SequenceOptions,
    if_slow: IfSlow,
    place: Place,
    counters: &Arc<Counters>,
) -> Result<Receiver<Read>> {
    // As many lines wait whatever the size of chunks.
    let n_waiting = CHUNKS_WAITING * (CHUNK_BYTES / options.chunk_bytes).max(1);
    let (sender, receiver) = sync_channel(n_waiting);
    let counters = Arc::clone(counters);
    let work = move || {
        let pass = |passed: Passed| send(passed, &sender, if_slow, &counters);
        if let Err(error) = read_sequence(&options, &place, &counters.stop, pass) {
            let _ = sender.send(Err(training::texts::TextsError::from(error).into()));
        }
    };
    // It is not joined: a read of a pipe may never return.
    thread::Builder::new()
        .name("reading".to_owned())
        .spawn(work)
        .map_err(training::texts::TextsError::Thread)?;
    Ok(receiver)
}

/// Passes lines on. If the queue is full, they wait or are skipped. Returns whether there is a receiver.
fn send(passed: Passed, sender: &SyncSender<Read>, if_slow: IfSlow, counters: &Counters) -> bool {
    let n_skipped = || counters.n_skipped.load(Relaxed);
    let (n_lines, n_long) = match &passed {
        Passed::Lines(chunk) => (chunk.n_lines, chunk.n_long),
        Passed::Resumed(_) | Passed::Skipped(_) => (0, 0),
    };
    counters.n_skipped.fetch_add(n_long, Relaxed);
    // The last lines of a process that stops have the beginning of the next one.
    if n_lines == n_long || if_slow == IfSlow::Wait || counters.stop.load(Relaxed) {
        return sender.send(Ok((passed, n_skipped()))).is_ok();
    }
    match sender.try_send(Ok((passed, n_skipped()))) {
        Ok(()) => true,
        Err(TrySendError::Full(_)) => {
            counters.n_skipped.fetch_add(n_lines - n_long, Relaxed);
            true
        }
        Err(TrySendError::Disconnected(_)) => false,
    }
}

/// A stream, and the vectors that are trained on it.
struct Stream<'a, M> {
    arguments: &'a Train,
    options: SequenceOptions,
    model: M,
    chunks: Receiver<Read>,
    lines: Lines,
    reached: StreamCheckpoint,
    counters: Arc<Counters>,
    /// Tokens that this process trained on, and the mean loss since the last line or checkpoint.
    n_tokens: u64,
    loss: Option<f64>,
}

/// Why a segment ended.
#[derive(Debug)]
enum Ended {
    /// There are no more lines.
    Input,
    /// There are enough words.
    Words,
    /// A checkpoint is due or requested.
    Checkpoint,
    /// A stop is requested.
    Stop,
    /// No more lines can be read.
    Unread(Error),
}

impl<M: StreamModel> Stream<'_, M> {
    /// Trains to the end of the input or of `--words`. Returns whether more lines may follow.
    fn train(
        &mut self,
        out: &mut TextsOut,
        progress: &mut Progress,
        interrupts: &Interrupts,
        comparisons: &mut Comparisons,
    ) -> Result<bool> {
        let every = self.arguments.checkpoint_every;
        loop {
            let due = (every > 0.0).then(|| Instant::now() + Duration::from_secs_f64(every.min(1e9)));
            let ended = self.segment(due, progress, interrupts)?;
            self.model.check()?;
            self.model.compare(comparisons, progress);
            match ended {
                Ended::Input => {
                    self.reached.is_end = true;
                    return Ok(self.arguments.words.is_none() && !out.is_in_s3());
                }
                Ended::Words => {
                    self.skip_rest(out)?;
                    return Ok(false);
                }
                // There is nothing to save.
                Ended::Unread(error) if self.reached.place == Place::default() => return Err(error),
                Ended::Checkpoint | Ended::Stop | Ended::Unread(_) => {}
            }
            self.reached.is_end = matches!(ended, Ended::Stop);
            self.save(out)?;
            self.model.write(out, &recipe(self.arguments, Processes::One)?)?;
            match ended {
                Ended::Stop => {
                    out.checkpoints_saved()?;
                    return Err(Error::Interrupted { resume: out.shown_checkpoints() });
                }
                Ended::Unread(error) => {
                    out.checkpoints_saved()?;
                    return Err(error);
                }
                _ => {}
            }
        }
    }

    /// Saves a checkpoint.
    fn save(&mut self, out: &mut TextsOut) -> Result<()> {
        let place = serde_json::to_vec(&self.reached).map_err(|error| Error::internal(&error))?;
        self.model.save(out, &place)?;
        let folder = out::taken(out);
        self.options.forget(&self.reached.place).map_err(|source| Error::io(&folder, source))
    }

    /// Counts the lines that were read and are behind the last word.
    fn skip_rest(&mut self, out: &TextsOut) -> Result<()> {
        self.counters.stop.store(true, Relaxed);
        let place = &mut self.reached.place;
        while let Ok(Ok((passed, _))) = self.chunks.recv_timeout(LAST_LINES_WITHIN) {
            if let Passed::Lines(chunk) = passed {
                self.counters.n_skipped.fetch_add(chunk.n_lines - chunk.n_long, Relaxed);
                place.pass(&chunk);
            }
        }
        let n_unread = self.options.n_unread_lines(place);
        let n_unread = n_unread.map_err(|source| Error::io(&out::taken(out), source))?;
        self.counters.n_skipped.fetch_add(n_unread, Relaxed);
        Ok(())
    }

    /// Trains until the input ends, a checkpoint is due or a stop is requested. Then all lines that were taken are trained.
    fn segment(
        &mut self,
        due: Option<Instant>,
        progress: &mut Progress,
        interrupts: &Interrupts,
    ) -> Result<Ended> {
        let Self { arguments, model, chunks, lines, reached, counters, .. } = self;
        let decay = match arguments.words {
            Some(n_tokens) => Decay::Linear { n_tokens },
            None => Decay::Constant,
        };
        let mut cleaned = Vec::new();
        let (ended, done) = model.learn(arguments.threads(), decay, |learning: &mut dyn Learning| {
            let mut stopping_since = None;
            loop {
                let counts = Counts {
                    n_words: learning.n_words(),
                    n_lines: reached.n_trained,
                    n_skipped: counters.n_skipped.load(Relaxed),
                };
                if progress.is_due()
                    && let Err(error) = learning.check()
                {
                    break Err(error);
                }
                progress.note(learning.n_tokens(), || learning.take_loss(), Some(counts));
                if stopping_since.is_none() {
                    match interrupts.requested() {
                        Some(Requested::Stop) => {
                            counters.stop.store(true, Relaxed);
                            stopping_since = Some(Instant::now());
                        }
                        Some(Requested::Checkpoint) => break Ok(Ended::Checkpoint),
                        None if due.is_some_and(|due| Instant::now() >= due) => break Ok(Ended::Checkpoint),
                        None => {}
                    }
                }
                match chunks.recv_timeout(LOOK_EVERY) {
                    Ok(Ok((passed, n_skipped))) => {
                        let chunk = match passed {
                            Passed::Lines(chunk) => chunk,
                            Passed::Skipped(skipped) => {
                                lines.skip(&skipped);
                                lines.report_skipped();
                                continue;
                            }
                            Passed::Resumed(left) if reached.has_nothing_of(&left) => continue,
                            Passed::Resumed(left) => {
                                // Before the checkpoint that accounts for it, so that a kill in between hides no loss.
                                tell_resumed(&left);
                                if left.n_lost == Some(0) {
                                    continue;
                                }
                                reached.lose(&left);
                                break Ok(Ended::Checkpoint);
                            }
                        };
                        if let Err(error) = lines.clean(&chunk.lines, &mut cleaned) {
                            break Err(error);
                        }
                        reached.pass(&chunk, n_skipped);
                        if let Err(error) = learning.learn(&cleaned) {
                            break Err(error);
                        }
                        if arguments.words.is_some_and(|words| learning.n_counted() >= words) {
                            break Ok(Ended::Words);
                        }
                    }
                    Ok(Err(error)) => break Ok(Ended::Unread(error)),
                    Err(RecvTimeoutError::Timeout) => {
                        if stopping_since.is_some_and(|since: Instant| since.elapsed() > LAST_LINES_WITHIN) {
                            break Ok(Ended::Stop);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        break Ok(if stopping_since.is_some() { Ended::Stop } else { Ended::Input });
                    }
                }
            }
        })?;
        self.n_tokens += done.n_tokens;
        self.loss = done.loss();
        let counts = Counts {
            n_words: self.model.vocabulary().n_words() as u64,
            n_lines: self.reached.n_trained,
            n_skipped: self.counters.n_skipped.load(Relaxed),
        };
        let n_tokens = self.model.n_tokens();
        progress.write(n_tokens, self.loss, progress.tokens_per_s(n_tokens), counts);
        ended
    }
}
