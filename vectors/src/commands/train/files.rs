//! Trains on an input that ends: its words are counted first, and each epoch reads the sentences again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use corpus::encoding::UTF_8;
use embeddings::skipgram::{
    Decay, Distribution, Done, Sentences, Subwords, Training, Vocabulary, Work, count, number,
};
use launch::interrupt::{Interrupts, Requested};
use program::threads::{locked, spawn};
use reading::{Passed, Place, SequenceOptions, read_sequence};
use report::whole;
use serde::{Deserialize, Serialize};
use training::places::is_dataset;
use training::tell::tell;
use training::texts_out::TextsOut;
use training::{Error, Result};

use super::comparisons::Comparisons;
use super::kept::Kept;
use super::lines::{Lines, each_row};
use super::model::{CHECKED_WORDS, check_vectors};
use super::out::{self, CHUNK_BYTES};
use super::progress::Progress;
use super::{Processes, Trained, Vectors, epochs, recipe, settings, threads};
use crate::arguments::Train;

/// A part of the sentences has at least this number of words. Threads take parts, and the order of their random numbers depends
/// on it.
const WORDS_PER_PART: usize = 1 << 15;
/// Chunks that wait between the thread that reads and the one that counts.
const CHUNKS_WAITING: usize = 4;

/// The place of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Reached {
    /// Number of parts trained on, over all epochs.
    n_done: usize,
    /// Number of parts of an epoch, tokens and words, which an unchanged input has again.
    n_parts: usize,
    n_tokens: u64,
    n_words: usize,
}

/// An input that was read.
pub(super) struct Input {
    pub(super) vocabulary: Vocabulary,
    pub(super) sentences: Kept,
    pub(super) n_lines: u64,
}

pub(super) fn train(
    arguments: &Train,
    out: &mut TextsOut,
    interrupts: &Interrupts,
    comparisons: &mut Comparisons,
) -> Result<Trained> {
    let input = read(arguments)?;
    let Input { vocabulary, sentences, n_lines } = &input;
    tell(&format!(
        "{} lines with {} tokens; {} words",
        whole(*n_lines),
        whole(vocabulary.n_tokens()),
        whole(vocabulary.n_words() as u64)
    ));
    out::begin(out, arguments, &recipe(arguments, Processes::One)?)?;
    let settings = settings(arguments);
    let distribution = Distribution::new(&vocabulary.counts(), 1, settings.power, settings.sample);
    let mut training = Training::new(settings, vocabulary.n_words())?;
    let mut reached = Reached {
        n_done: 0,
        n_parts: sentences.len(),
        n_tokens: vocabulary.n_tokens(),
        n_words: vocabulary.n_words(),
    };
    match out::state(out)? {
        None => (0..vocabulary.n_words() as u32).for_each(|word| training.draw(word)),
        Some((path, mut file)) => {
            let (words, place) = training.restore(vocabulary.n_words(), &mut file)?;
            let found: Reached = serde_json::from_slice(&place).map_err(|error| Error::internal(&error))?;
            reached.n_done = found.n_done;
            // Rows belong to words by their order.
            if found != reached || !words.iter().eq(vocabulary.iter()) {
                return Err(Error::other_input(&path, reached.n_tokens, found.n_tokens));
            }
        }
    }
    let epochs = epochs(arguments);
    let run = Run {
        training: &training,
        sentences,
        subwords: training.subwords(vocabulary).map(Arc::new),
        distribution: Arc::new(distribution),
        decay: Decay::Linear { n_tokens: vocabulary.n_tokens() * u64::from(epochs) },
        threads: threads(arguments),
        n_words: reached.n_words,
        interrupts,
    };
    comparisons.read_held_out(arguments, &training, vocabulary)?;
    let mut progress = Progress::new(out, training.n_tokens())?;
    let (mut n_tokens, mut loss) = (0, None);
    let mut saved_at = Instant::now();
    let mut of_epoch = Done::default();
    while reached.n_done < reached.n_parts * epochs as usize {
        let epoch = reached.n_done / reached.n_parts;
        let due = (arguments.checkpoint_every > 0.0)
            .then(|| saved_at + Duration::from_secs_f64(arguments.checkpoint_every.min(1e9)));
        let (done, asked) = run.to(&mut reached.n_done, (epoch + 1) * reached.n_parts, due, &mut progress)?;
        n_tokens += done.n_tokens;
        of_epoch.add(&done);
        if reached.n_done == (epoch + 1) * reached.n_parts {
            loss = of_epoch.loss();
            progress.end_epoch(epoch as u32 + 1, epochs, training.n_tokens(), loss);
            check_vectors(&training, reached.n_words, Some(epoch as u32 + 1))?;
            of_epoch = Done::default();
            comparisons.compare_tables(&training, vocabulary, &mut progress);
        }
        let is_complete = reached.n_done == reached.n_parts * epochs as usize;
        if asked.is_some() && !is_complete {
            check_vectors(&training, reached.n_words, Some(epoch as u32 + 1))?;
            let place = serde_json::to_vec(&reached).map_err(|error| Error::internal(&error))?;
            out::save(out, &training, vocabulary, &place)?;
            comparisons.compare_tables(&training, vocabulary, &mut progress);
            saved_at = Instant::now();
        }
        if asked == Some(Requested::Stop) && !is_complete {
            out.checkpoints_saved()?;
            return Err(Error::Interrupted { resume: out.shown_checkpoints() });
        }
    }
    progress.finish()?;
    drop(run);
    let vectors = Vectors::Table(Box::new(training));
    Ok(Trained {
        vectors,
        n_lines: *n_lines,
        vocabulary: input.vocabulary,
        n_skipped: 0,
        n_lost: 0,
        n_tokens,
        loss,
        speed: progress.last(),
        is_open: false,
    })
}

/// What a training runs with.
struct Run<'a> {
    training: &'a Training,
    sentences: &'a Kept,
    subwords: Option<Arc<Subwords>>,
    distribution: Arc<Distribution>,
    decay: Decay,
    threads: usize,
    n_words: usize,
    interrupts: &'a Interrupts,
}

impl Run<'_> {
    /// Trains the parts from `n_done` to `end`, or fewer if a checkpoint is due or a stop is requested.
    fn to(
        &self,
        n_done: &mut usize,
        end: usize,
        due: Option<Instant>,
        progress: &mut Progress,
    ) -> Result<(Done, Option<Requested>)> {
        let next = AtomicUsize::new(*n_done);
        let (asked, failed) = (Mutex::new(None), Mutex::new(None));
        let is_ended = AtomicBool::new(false);
        let epoch = (*n_done / self.sentences.len()) as u32 + 1;
        let take = || {
            let is_due = due.is_some_and(|due| Instant::now() >= due);
            if let Some(what) = self.interrupts.requested().or(is_due.then_some(Requested::Checkpoint)) {
                *locked(&asked) = Some(what);
                is_ended.store(true, Relaxed);
            }
            if is_ended.load(Relaxed) {
                return None;
            }
            let at = next.fetch_update(Relaxed, Relaxed, |at| (at < end).then_some(at + 1)).ok()?;
            match self.sentences.get(at % self.sentences.len()) {
                Ok(sentences) => {
                    let (distribution, subwords) = (Arc::clone(&self.distribution), self.subwords.clone());
                    Some(Work { sentences, distribution, subwords, number: at as u64 })
                }
                Err(error) => {
                    locked(&failed).get_or_insert(error);
                    is_ended.store(true, Relaxed);
                    None
                }
            }
        };
        let done = thread::scope(|scope| {
            let trained = spawn(scope, || self.training.run(self.threads, self.decay, &take));
            while !trained.is_finished() {
                thread::park_timeout(progress.interval());
                if progress.is_due()
                    && let Err(error) =
                        check_vectors(self.training, CHECKED_WORDS.min(self.n_words), Some(epoch))
                {
                    locked(&failed).get_or_insert(error);
                    is_ended.store(true, Relaxed);
                }
                progress.note(self.training.n_tokens(), || self.training.take_loss(), None);
            }
            trained.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        *n_done = next.into_inner();
        Ok((done, asked.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Reads the input, and refuses one without words.
pub(super) fn read(arguments: &Train) -> Result<Input> {
    let input = numbered(arguments)?;
    if input.vocabulary.n_words() == 0 {
        return Err(no_words(arguments));
    }
    Ok(input)
}

/// The error of an input without words.
pub(super) fn no_words(arguments: &Train) -> Error {
    let found = format!("no word occurs {} times", arguments.min_count);
    let remedy = "lower --min-count, or check --format";
    Error::useless_texts(arguments.input.join(" "), found, remedy)
}

/// The sentences of `--held-out` by the words of a vocabulary.
pub(super) fn held_out(arguments: &Train, vocabulary: &Vocabulary) -> Result<Sentences> {
    let of = Train { input: arguments.held_out.clone(), ..arguments.clone() };
    let mut sentences = Sentences::default();
    each_text(&of, |lines| {
        number(vocabulary, lines, &mut sentences);
        Ok(())
    })?;
    if sentences.n_words() == 0 {
        let (input, found) = (of.input.join(" "), "no word is in the vocabulary".to_owned());
        return Err(Error::useless_texts(input, found, "pass sentences of the same language and --format"));
    }
    Ok(sentences)
}

/// Counts and numbers the words of the input. If the vocabulary was full, the input is read again: numbers have changed.
fn numbered(arguments: &Train) -> Result<Input> {
    let mut vocabulary = Vocabulary::new(arguments.words_max);
    let mut parts = Parts::new(arguments.memory);
    let n_lines =
        each_text(arguments, |lines| parts.add(lines, |lines, to| count(&mut vocabulary, lines, to)))?;
    let (ranked, numbers) = vocabulary.ranked(arguments.min_count);
    if vocabulary.is_exact() {
        let sentences = parts.finish()?.renumber(|word| numbers[word as usize])?;
        return Ok(Input { vocabulary: ranked, sentences, n_lines });
    }
    drop((vocabulary, parts));
    let mut parts = Parts::new(arguments.memory);
    let (n_again, _) =
        each_line(arguments, |lines| parts.add(lines, |lines, to| number(&ranked, lines, to)))?;
    if n_again != n_lines {
        let found = format!("found {n_again} lines when it was read again, expected {n_lines}");
        let remedy = "do not change it while it is read";
        return Err(Error::useless_texts(arguments.input.join(" "), found, remedy));
    }
    Ok(Input { vocabulary: ranked, sentences: parts.finish()?, n_lines })
}

/// Sentences in parts of about equal numbers of words.
struct Parts {
    kept: Kept,
    last: Sentences,
}

impl Parts {
    fn new(memory: usize) -> Self {
        Self { kept: Kept::new(memory), last: Sentences::default() }
    }

    fn add(&mut self, lines: &[u8], add: impl FnOnce(&[u8], &mut Sentences)) -> Result<()> {
        add(lines, &mut self.last);
        if self.last.n_words() >= WORDS_PER_PART {
            self.kept.push(std::mem::take(&mut self.last))?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Kept> {
        self.kept.push(self.last)?;
        Ok(self.kept)
    }
}

/// Passes the cleaned lines of the input to `add`, some at a time, and reports lines without a text. Returns the number of
/// lines.
fn each_text(arguments: &Train, add: impl FnMut(&[u8]) -> Result<()>) -> Result<u64> {
    let (n_lines, lines) = each_line(arguments, add)?;
    lines.map_or(Ok(()), |mut lines| lines.check(arguments))?;
    Ok(n_lines)
}

/// As [`each_text`], without a report. Returns the counts of lines, too, if the input is not a dataset.
fn each_line(arguments: &Train, mut add: impl FnMut(&[u8]) -> Result<()>) -> Result<(u64, Option<Lines>)> {
    if let [place] = &arguments.input[..]
        && is_dataset(place)
    {
        return Ok((each_row(place, &arguments.storage.options(), add)?, None));
    }
    let options = SequenceOptions {
        inputs: arguments.input.clone(),
        s3: arguments.storage.options(),
        encoding: arguments.encoding.unwrap_or(UTF_8),
        follows: false,
        chunk_bytes: CHUNK_BYTES,
        keep: None,
    };
    let mut lines = Lines::of(arguments)?;
    let (sender, receiver) = sync_channel(CHUNKS_WAITING);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let read = spawn(scope, || {
            let pass = |passed| sender.send(passed).is_ok();
            let read = read_sequence(&options, &Place::default(), &stop, pass);
            drop(sender);
            read
        });
        let mut cleaned = Vec::new();
        let mut added = Ok(());
        for passed in receiver {
            match passed {
                Passed::Lines(chunk) => {
                    added = lines.clean(&chunk.lines, &mut cleaned).and_then(|()| add(&cleaned));
                }
                Passed::Skipped(skipped) => lines.skip(&skipped),
                Passed::Resumed(_) => {}
            }
            if added.is_err() {
                stop.store(true, Relaxed);
                break;
            }
        }
        read.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .map_err(training::texts::Error::from)?;
        added
    })?;
    Ok((lines.n_lines, Some(lines)))
}
