//! A worker that trains on lines as they arrive: its own source, or a part of one. The servers count words and give them rows.
//!
//! A step is a block of lines. Its push has the updates of rows, the counts of the block's words and the place behind it: a
//! worker that is started again continues at the place of its last step. A worker without lines completes a step without
//! them when another one has completed more steps, which would wait for it otherwise. If no source has lines, no worker
//! pushes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use embeddings::skipgram::{
    Decay, Distribution, Done, Sentences, SkipGramTraining, Vocabulary, Work, number, rebuilt_after,
};
use launch::interrupt::{Interrupts, Requested};
use parameters::{Client, Commit, KEY_BYTES_MAX, KeyRange, LEFT, LineCounts, Moment, Pulled, Spec, Wire};
use program::exit::{Exit, Failed};
use reading::{Passed, SequenceOptions};
use report::whole;
use serde::Serialize;
use serde_json::Value;
use training::print::print_json;
use training::tell::tell;
use training::texts_out::TextsOut;
use training::{Error, Result};

use super::comparisons::{Compared, Comparisons};
use super::input::no_words;
use super::lines::Lines;
use super::model::{Model, check_finite, check_vectors, reads, updates};
use super::out;
use super::progress::{Counts, Progress};
use super::served::{check_removed, checked, client, join, settings_content, tell_end, tell_removed};
use super::settings::skip_gram_settings;
use super::shares::{WORDS_MAX, words_per_step};
use super::steps::{INTERVAL, Leftovers, add, keep, read_rows};
use super::stream::{Counters, LAST_LINES_WITHIN, Read, StreamCheckpoint, options_of, read, tell_resumed};
use crate::arguments::{Place, Train};

/// Bytes of a word and the space after it, about.
const BYTES_PER_WORD: u64 = 6;
/// Time between two signs of life for the servers, and between two deletions of what was taken from a stream and is trained on.
const SIGN_EVERY: Duration = Duration::from_secs(1);

/// The summary that `--json` prints.
#[derive(Debug, Serialize)]
struct LinesSummary {
    /// The worker, and the number of workers.
    worker: u32,
    workers: u32,
    /// The model folder, of worker 0.
    model: Option<std::path::PathBuf>,
    /// Number of words with a vector, of tokens that all workers counted, and of those whose words came when all rows were used.
    words: u64,
    tokens: u64,
    left_out_tokens: u64,
    /// Lines of this worker's source: trained on, skipped, and lost by processes that were killed.
    lines: u64,
    skipped_lines: u64,
    lost_lines: u64,
    /// Steps of this worker.
    steps: u64,
    /// Mean loss and pairs of words per second of this process.
    loss: Option<f64>,
    pairs_per_s: f64,
    #[serde(flatten)]
    compared: Compared,
}

/// The words that have rows.
struct Words {
    /// By row. Counts are those of the last time that all were read.
    vocabulary: Vocabulary,
    distribution: Arc<Distribution>,
    rebuilt_at: u64,
    /// Without its keys.
    last: KeyRange,
}

/// A worker.
struct LinesWorker<'a> {
    arguments: &'a Train,
    interrupts: Interrupts,
    client: Client,
    out: TextsOut,
    recipe: Value,
    comparisons: Comparisons,
    /// Of worker 0.
    progress: Option<Progress>,
    options: SequenceOptions,
    chunks: Receiver<Read>,
    counters: Arc<Counters>,
    lines: Lines,
    reached: StreamCheckpoint,
    words: Words,
    training: SkipGramTraining,
    leftovers: Leftovers,
    /// Whether others wait for the steps of this worker.
    is_bounded: bool,
    step: u64,
    done: Done,
}

/// A block of lines.
enum Block {
    /// Cleaned lines.
    Lines(Vec<u8>),
    /// No line has come so far.
    None,
    /// There are no more lines.
    End,
}

/// Trains as a worker. Worker 0 also writes the model.
pub(super) fn train(arguments: &Train) -> Result<()> {
    let (recipe, comparisons) = checked(arguments)?;
    let worker = arguments.served.worker;
    let out = out::take(arguments)?;
    // Refuses a training with other settings.
    out.has_model(&recipe)?;
    let interrupts = Interrupts::listen().map_err(Error::Signals)?;
    let mut client = client(arguments, &interrupts, arguments.served.patience)?;
    let training = SkipGramTraining::new(skip_gram_settings(arguments), arguments.words_max)?;
    let mut content = settings_content(arguments, &training)?;
    content.push("lines as they arrive".to_owned());
    let specs: Vec<Spec> = training.specs(&content.join("\n"));
    let specs: Vec<Spec> =
        specs.into_iter().map(|spec| Spec { min_count: arguments.min_count, ..spec }).collect();
    let joined = join(&mut client, arguments, &specs, worker)?;
    check_removed(&joined)?;
    if joined.step == LEFT && !joined.is_removed && out.model().is_dir() {
        return out::finish_again(&out, arguments);
    }
    out::begin_served(&out, arguments, &recipe)?;
    let reached = reached_at(&joined.place)?;
    if joined.step > 0 && joined.step != LEFT {
        tell(&format!("continuing after step {}", whole(joined.step)));
    }
    let counters = Counters::of(reached.n_skipped);
    let block = usize::try_from(words_per_step(arguments) * BYTES_PER_WORD).unwrap_or(usize::MAX);
    let options = options_of(arguments, &out, block.clamp(1 << 9, 1 << 20));
    let chunks = match joined.step {
        // It reads nothing. Its source had ended, or it was removed.
        LEFT => sync_channel(0).1,
        _ => read(options.clone(), arguments.if_slow, reached.place.clone(), &counters)?,
    };
    let progress = (worker.number == 0).then(|| Progress::new(&out, 0)).transpose()?;
    let mut worker = LinesWorker {
        arguments,
        interrupts,
        client,
        out,
        recipe,
        comparisons,
        progress,
        options,
        chunks,
        counters,
        lines: Lines::of(arguments)?,
        reached,
        words: Words::new(arguments.words_max),
        training,
        leftovers: specs.iter().map(|_| HashMap::new()).collect(),
        is_bounded: joined.staleness.is_some(),
        step: joined.step,
        done: Done::default(),
    };
    let began = Instant::now();
    match joined.step {
        LEFT if joined.is_removed => {}
        LEFT => tell("this worker has left, because its source had ended; no line is read"),
        _ => worker.run()?,
    }
    worker.finish(began)
}

impl Words {
    fn new(words_max: usize) -> Self {
        Self {
            vocabulary: Vocabulary::new(words_max),
            distribution: Arc::new(Distribution::new(&[], 1, 1.0, 0.0)),
            rebuilt_at: 0,
            last: KeyRange::default(),
        }
    }

    /// Learns the words that have new rows and, when there are enough new tokens, the counts of all. With a number of steps, it
    /// waits a moment for a worker that has completed more.
    fn read(&mut self, client: &Client, training: &SkipGramTraining, steps: Option<u64>) -> Result<()> {
        let from = self.vocabulary.n_words() as u64;
        let range = client.keys(from, steps)?;
        if range.n_keys < from {
            let message = "the first server has fewer words than before, because it has lost pushes; start this worker again";
            return Err(Failed::new(Exit::TryAgain, message.to_owned()).into());
        }
        for (word, _) in &range.keys {
            self.vocabulary.count(word);
        }
        self.last = KeyRange { keys: Vec::new(), ..range };
        if self.last.n_counted >= self.rebuilt_at && self.vocabulary.n_words() > 0 {
            self.read_counts(client, training)?;
            self.rebuilt_at = rebuilt_after(self.last.n_counted);
        }
        Ok(())
    }

    /// Reads the counts of all words.
    fn read_counts(&mut self, client: &Client, training: &SkipGramTraining) -> Result<()> {
        let range = client.keys(0, None)?;
        let words = range.keys.iter().map(|(word, n)| (&word[..], *n));
        self.vocabulary = Vocabulary::of(self.vocabulary.words_max(), words, range.n_counted, 0);
        self.last = KeyRange { keys: Vec::new(), ..range };
        self.distribution = Arc::new(training.distribution(&self.vocabulary));
        Ok(())
    }
}

/// A place for the first server: the length of its JSON without `rest`, this JSON, and `rest`, of which JSON would be four times as
/// long.
fn place_bytes(reached: &StreamCheckpoint) -> Result<Vec<u8>> {
    let mut reached = reached.clone();
    let rest = std::mem::take(&mut reached.place.rest);
    let json = serde_json::to_vec(&reached).map_err(|error| Error::internal(&error))?;
    Ok([&(json.len() as u32).to_le_bytes()[..], &json, &rest].concat())
}

/// The place that the first server has.
fn reached_at(place: &[u8]) -> Result<StreamCheckpoint> {
    let Some((length, place)) = place.split_first_chunk() else { return Ok(StreamCheckpoint::default()) };
    let length = u32::from_le_bytes(*length) as usize;
    let (json, rest) = place.split_at_checked(length).ok_or_else(|| Error::internal(&"a cut place"))?;
    let mut reached: StreamCheckpoint =
        serde_json::from_slice(json).map_err(|error| Error::internal(&error))?;
    reached.place.rest = rest.to_vec();
    Ok(reached)
}

/// The words of cleaned lines with their counts. Longer ones than servers count are left out.
fn counts_of(lines: &[u8]) -> Vec<(Vec<u8>, u64)> {
    let mut counts = BTreeMap::new();
    let words = lines.split(|byte| b" \n".contains(byte));
    for word in words.filter(|word| (1..=KEY_BYTES_MAX).contains(&word.len())) {
        *counts.entry(word).or_default() += 1;
    }
    counts.into_iter().map(|(word, n)| (word.to_vec(), n)).collect()
}

impl LinesWorker<'_> {
    /// Trains until the source has ended or, as worker 0, all workers have.
    fn run(&mut self) -> Result<()> {
        let (mut is_ended, mut is_idle) = (false, false);
        let (mut told, mut shown, mut saved) = (Instant::now(), Instant::now(), Instant::now());
        let mut stopping_since: Option<Instant> = None;
        loop {
            // If nobody waits for this worker, any step of the others is none to wait for.
            let awaited = if self.is_bounded { self.step } else { LEFT };
            self.words.read(&self.client, &self.training, is_idle.then_some(awaited))?;
            if is_ended && (self.progress.is_none() || self.words.last.n_workers <= 1) {
                return Ok(());
            }
            let every = Duration::from_secs_f64(self.arguments.checkpoint_every.min(1e9));
            let mut is_due = !every.is_zero() && saved.elapsed() >= every;
            match self.interrupts.requested() {
                Some(Requested::Stop) if stopping_since.is_none() => {
                    self.counters.stop.store(true, Relaxed);
                    stopping_since = Some(Instant::now());
                }
                Some(Requested::Checkpoint) => is_due = true,
                _ => {}
            }
            // Lines that wait any longer are read again by the next process.
            let is_late = stopping_since.is_some_and(|since| since.elapsed() > LAST_LINES_WITHIN);
            let block = match (is_late || (is_ended && stopping_since.is_some()), is_ended) {
                (true, _) => Block::End,
                (false, true) => Block::None,
                (false, false) => self.next()?,
            };
            is_idle = matches!(block, Block::None);
            match block {
                Block::Lines(lines) => self.exchange(&lines)?,
                Block::None if self.words.last.most_steps > awaited => self.exchange(&[])?,
                Block::None => {}
                Block::End => {
                    is_ended = true;
                    if !is_late {
                        self.reached.is_end = true;
                        self.reached.n_skipped = self.counters.n_skipped.load(Relaxed);
                    }
                    self.exchange(&[])?;
                    if stopping_since.is_some() {
                        let step = self.step;
                        let message = format!(
                            "interrupted after step {step}; the servers have its updates: repeat the command with --resume"
                        );
                        return Err(Failed::new(Exit::TryAgain, message).into());
                    }
                }
            }
            if shown.elapsed() >= SIGN_EVERY {
                shown = Instant::now();
                self.client.show_life();
                let folder = out::taken(&self.out);
                self.options.forget(&self.reached.place).map_err(|source| Error::io(&folder, source))?;
            }
            if is_due {
                self.write_model()?;
                saved = Instant::now();
            }
            if told.elapsed() >= INTERVAL {
                told = Instant::now();
                self.tell();
            }
        }
    }

    /// The next lines, if they have come.
    fn next(&mut self) -> Result<Block> {
        let (passed, n_skipped) = match self.chunks.try_recv() {
            Ok(read) => read?,
            Err(TryRecvError::Empty) => return Ok(Block::None),
            Err(TryRecvError::Disconnected) => return Ok(Block::End),
        };
        match passed {
            Passed::Lines(chunk) => {
                let mut cleaned = Vec::new();
                self.lines.clean(&chunk.lines, &mut cleaned)?;
                self.reached.pass(&chunk, n_skipped);
                self.reached.is_end = false;
                Ok(Block::Lines(cleaned))
            }
            Passed::Skipped(skipped) => {
                self.lines.skip(&skipped);
                self.lines.report_skipped();
                Ok(Block::None)
            }
            Passed::Resumed(left) if self.reached.has_nothing_of(&left) => Ok(Block::None),
            Passed::Resumed(left) => {
                self.reached.lose(&left);
                tell_resumed(&left);
                // The place has changed.
                Ok(Block::Lines(Vec::new()))
            }
        }
    }

    /// Completes a step with these lines.
    fn exchange(&mut self, lines: &[u8]) -> Result<()> {
        let Self { client, training, words, .. } = self;
        let mut numbered = Sentences::default();
        number(&words.vocabulary, lines, &mut numbered);
        let mut sentences = Sentences::default();
        for sentence in numbered.iter().flat_map(|sentence| sentence.chunks(WORDS_MAX)) {
            sentences.push(sentence.iter().copied(), sentence.len() as u64);
        }
        let Place { number: worker, of } = self.arguments.served.worker;
        let work = Work {
            sentences: Arc::new(sentences),
            distribution: Arc::clone(&words.distribution),
            subwords: None,
            number: self.step * u64::from(of) + u64::from(worker),
        };
        let rows = training.rows_of(&work);
        let Pulled { values, read_at, .. } =
            client.pulled(client.pull(Moment::Step(self.step), reads(&rows))?)?;
        training.write(&rows, &values);
        let (done, pushed) = training.train(&[work], &rows, &values, Decay::Constant)?;
        self.done.add(&done);
        let mut updates = updates(rows, pushed);
        add(&mut updates, &mut self.leftovers);
        check_finite(&updates, self.step + 1)?;
        let StreamCheckpoint { n_trained: trained, n_skipped: skipped, n_lost: lost, .. } = self.reached;
        let commit = Commit {
            counts: counts_of(lines),
            place: place_bytes(&self.reached)?,
            lines: LineCounts { trained, skipped, lost },
        };
        client.pushed(client.push_and_commit(self.step, &read_at, &mut updates, commit)?)?;
        if self.arguments.served.wire != Wire::F32 {
            keep(updates, &mut self.leftovers);
        }
        self.step += 1;
        Ok(())
    }

    /// Tells the user about the steps so far, and logs them.
    fn tell(&mut self) {
        let loss = self.training.take_loss();
        let loss_text = loss.map_or_else(String::new, |loss| format!(", loss {loss:.4}"));
        let n_words = self.words.vocabulary.n_words() as u64;
        tell(&format!(
            "step {}, {} lines, {} words in the vocabulary{loss_text}",
            whole(self.step),
            whole(self.reached.n_trained),
            whole(n_words)
        ));
        if let Some(progress) = &mut self.progress {
            let n_tokens = Model::n_tokens(&self.training);
            let StreamCheckpoint { n_trained: n_lines, n_skipped, .. } = self.reached;
            let counts = Counts { n_words, n_lines, n_skipped };
            progress.write(n_tokens, loss, progress.tokens_per_s(n_tokens), counts);
        }
    }

    /// Reads the rows of all words at this moment and, as worker 0, compares them and writes the model.
    fn write_model(&mut self) -> Result<()> {
        if self.progress.is_none() || self.words.last.n_keys == 0 {
            return Ok(());
        }
        self.read_rows(Moment::Now)?;
        out::write_model(&self.out, &self.training, &self.words.vocabulary, &self.recipe)
    }

    fn read_rows(&mut self, moment: Moment) -> Result<()> {
        let Self { client, training, words, .. } = self;
        words.read_counts(client, training)?;
        let n_words = words.vocabulary.n_words();
        read_rows(client, training, moment, n_words as u64)?;
        check_vectors(training, n_words, None)?;
        if let Some(progress) = &mut self.progress {
            self.comparisons.compare_tables(training, &words.vocabulary, progress);
        }
        Ok(())
    }

    /// Leaves the servers. Worker 0 writes the model before.
    fn finish(mut self, began: Instant) -> Result<()> {
        self.lines.check(self.arguments)?;
        self.words.read(&self.client, &self.training, None)?;
        let model = (self.progress.is_some()).then(|| self.out.shown_model());
        if let Some(progress) = &mut self.progress {
            progress.finish()?;
            if self.words.last.n_keys == 0 {
                self.client.leave()?;
                return Err(no_words(self.arguments));
            }
            self.read_rows(Moment::End)?;
            tell_removed(&self.client)?;
            out::write_model(&self.out, &self.training, &self.words.vocabulary, &self.recipe)?;
        }
        self.client.leave()?;
        out::delete_taken(&self.out)?;
        if model.is_some() {
            self.out.model_saved()?;
        }
        let Self { arguments, words, reached, step, done, comparisons, .. } = self;
        let seconds = began.elapsed().as_secs_f64();
        if words.last.n_left_out > 0 {
            tell(&format!(
                "{} tokens are of words that came when all rows were used; raise --words-max",
                whole(words.last.n_left_out)
            ));
        }
        let n_words = words.vocabulary.n_words() as u64;
        tell_end(n_words, done.n_pairs, seconds, model.as_deref());
        if arguments.json {
            let Place { number, of } = arguments.served.worker;
            print_json(&LinesSummary {
                worker: number,
                workers: of,
                model,
                words: n_words,
                tokens: words.last.n_counted,
                left_out_tokens: words.last.n_left_out,
                lines: reached.n_trained,
                skipped_lines: self.counters.n_skipped.load(Relaxed),
                lost_lines: reached.n_lost,
                steps: step,
                loss: done.loss(),
                pairs_per_s: done.n_pairs as f64 / seconds.max(f64::MIN_POSITIVE),
                compared: comparisons.into_last(),
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_with_the_longest_line_fits_into_a_push() {
        let mut reached = StreamCheckpoint { n_trained: 7, ..StreamCheckpoint::default() };
        reached.place.rest = vec![b'x'; (4 << 20) + 5];
        let bytes = place_bytes(&reached).unwrap();
        assert!(bytes.len() < 5 << 20, "{} bytes", bytes.len());
        let found = reached_at(&bytes).unwrap();
        assert!(found.n_trained == 7 && found.place == reached.place);
        assert!(reached_at(&[]).unwrap().place.rest.is_empty());
        assert!(reached_at(&bytes[..20]).is_err());
    }
}
