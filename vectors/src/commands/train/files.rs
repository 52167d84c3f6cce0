//! Trains on an input that ends: its words are counted first, and each epoch reads the sentences again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use embeddings::skipgram::{Decay, Distribution, Done, SkipGramTraining, Subwords, Work};
use launch::interrupt::{Interrupts, Requested};
use program::threads::{locked, spawn};
use serde::{Deserialize, Serialize};
use training::texts_out::TextsOut;
use training::{Error, Result};

use super::comparisons::Comparisons;
use super::input::{Input, read};
use super::kept::Kept;
use super::model::{CHECKED_WORDS, check_vectors};
use super::out::{self, Trained, Vectors};
use super::progress::Progress;
use super::settings::{Processes, recipe, skip_gram_settings};
use crate::arguments::Train;

/// The place of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct FilesCheckpoint {
    /// Number of parts trained on, over all epochs.
    n_done: usize,
    /// Number of parts of an epoch, tokens and words, which an unchanged input has again.
    n_parts: usize,
    n_tokens: u64,
    n_words: usize,
}

pub(super) fn train(
    arguments: &Train,
    out: &mut TextsOut,
    interrupts: &Interrupts,
    comparisons: &mut Comparisons,
) -> Result<Trained> {
    let input = read(arguments)?;
    input.tell("");
    let Input { vocabulary, sentences, n_lines } = &input;
    out::begin(out, arguments, &recipe(arguments, Processes::One)?)?;
    let settings = skip_gram_settings(arguments);
    let distribution = Distribution::new(&vocabulary.counts(), 1, settings.power, settings.sample);
    let mut training = SkipGramTraining::new(settings, vocabulary.n_words())?;
    let mut reached = FilesCheckpoint {
        n_done: 0,
        n_parts: sentences.len(),
        n_tokens: vocabulary.n_tokens(),
        n_words: vocabulary.n_words(),
    };
    match out::state(out)? {
        None => (0..vocabulary.n_words() as u32).for_each(|word| training.draw(word)),
        Some((path, mut file)) => {
            let (words, place) = training.restore(vocabulary.n_words(), &mut file)?;
            let found: FilesCheckpoint =
                serde_json::from_slice(&place).map_err(|error| Error::internal(&error))?;
            reached.n_done = found.n_done;
            // Rows belong to words by their order.
            if found != reached || !words.iter().eq(vocabulary.iter()) {
                return Err(Error::other_input(&path, reached.n_tokens, found.n_tokens));
            }
        }
    }
    let epochs = arguments.epochs();
    let run = TrainingRun {
        training: &training,
        sentences,
        subwords: training.subwords(vocabulary).map(Arc::new),
        distribution: Arc::new(distribution),
        decay: Decay::Linear { n_tokens: vocabulary.n_tokens() * u64::from(epochs) },
        threads: arguments.threads(),
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
struct TrainingRun<'a> {
    training: &'a SkipGramTraining,
    sentences: &'a Kept,
    subwords: Option<Arc<Subwords>>,
    distribution: Arc<Distribution>,
    decay: Decay,
    threads: usize,
    n_words: usize,
    interrupts: &'a Interrupts,
}

impl TrainingRun<'_> {
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
