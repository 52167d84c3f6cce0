//! Trains vectors of words by their characters (`--model char-lstm`), in batches of positions.

pub(super) mod shared;

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use embeddings::is_sound;
use embeddings::skipgram::{Decay, Distribution, Done};
use embeddings::spelling::SpellingTraining;
use launch::interrupt::{Interrupts, Requested};
use report::whole;
use serde::{Deserialize, Serialize};
use training::texts_out::TextsOut;
use training::{Error, Result};

use super::comparisons::Comparisons;
use super::input::{Input, digest_of, read};
use super::model::diverging;
use super::out::{self, Trained, Vectors};
use super::progress::Progress;
use super::settings::{Processes, recipe, spelling_settings};
use crate::arguments::Train;

/// The place of a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SpellingCheckpoint {
    /// Number of parts of the sentences trained on, over all epochs, and of batches of the next part.
    n_done: usize,
    n_batches: usize,
    /// Number of parts of an epoch, tokens and words, which an unchanged input has again.
    n_parts: usize,
    n_tokens: u64,
    n_words: usize,
    /// Digest of the words, which the state does not contain; empty in checkpoints of older versions.
    #[serde(default)]
    vocabulary: String,
}

pub(super) fn train(
    arguments: &Train,
    out: &mut TextsOut,
    interrupts: &Interrupts,
    comparisons: &mut Comparisons,
) -> Result<Trained> {
    let input = read(arguments)?;
    let settings = spelling_settings(arguments, Processes::One);
    let distribution = Distribution::new(&input.vocabulary.counts(), 1, settings.power, settings.sample);
    let mut training = SpellingTraining::new(settings, &input.vocabulary, arguments.threads());
    input.tell(&format!(" of {} characters", whole(training.characters().all().len() as u64)));
    let Input { vocabulary, sentences, n_lines } = input;
    out::begin(out, arguments, &recipe(arguments, Processes::One)?)?;
    let mut reached = SpellingCheckpoint {
        n_done: 0,
        n_batches: 0,
        n_parts: sentences.len(),
        n_tokens: vocabulary.n_tokens(),
        n_words: vocabulary.n_words(),
        vocabulary: digest_of(&vocabulary),
    };
    if let Some(state) = out::state(out)? {
        reached.restore(&mut training, state)?;
    }
    let mut progress = Progress::new(out, training.n_tokens())?;
    let epochs = arguments.epochs();
    let n_parts = reached.n_parts * epochs as usize;
    let decay = Decay::Linear { n_tokens: vocabulary.n_tokens() * u64::from(epochs) };
    let mut pauses =
        CheckpointTimer { every: arguments.checkpoint_every, saved_at: Instant::now(), interrupts };
    let (mut n_tokens, mut loss, mut of_epoch) = (0, None, Done::default());
    while reached.n_done < n_parts {
        let epoch = (reached.n_done / reached.n_parts) as u32 + 1;
        let sentences = sentences.get(reached.n_done % reached.n_parts)?;
        let part = training.part(&sentences, &distribution, reached.n_done as u64);
        while reached.n_batches < part.n_batches() {
            let done = training.step(&part, reached.n_batches, &distribution, decay);
            n_tokens += done.n_tokens;
            of_epoch.add(&done);
            reached.n_batches += 1;
            let asked = pauses.requested();
            if asked.is_some() || progress.is_due() {
                check(&training, Some(epoch))?;
            }
            progress.note(training.n_tokens(), || None, None);
            if let Some(asked) = asked {
                let place = serde_json::to_vec(&reached).map_err(|error| Error::internal(&error))?;
                out.save(|file| training.save(&place, file))?;
                comparisons.compare_spelled(&training, &vocabulary, &mut progress);
                if asked == Requested::Stop {
                    out.checkpoints_saved()?;
                    return Err(Error::Interrupted { resume: out.shown_checkpoints() });
                }
                pauses.saved_at = Instant::now();
            }
        }
        (reached.n_done, reached.n_batches) = (reached.n_done + 1, 0);
        if reached.n_done.is_multiple_of(reached.n_parts) {
            loss = of_epoch.loss();
            progress.end_epoch(epoch, epochs, training.n_tokens(), loss);
            check(&training, Some(epoch))?;
            of_epoch = Done::default();
            comparisons.compare_spelled(&training, &vocabulary, &mut progress);
        }
    }
    progress.finish()?;
    let vectors = Vectors::Spelled(Box::new(training));
    Ok(Trained {
        vectors,
        n_lines,
        vocabulary,
        n_skipped: 0,
        n_lost: 0,
        n_tokens,
        loss,
        speed: progress.last(),
        is_open: false,
    })
}

/// Refuses weights that no file can have. `epoch`: the current one, from 1.
pub(super) fn check(training: &SpellingTraining, epoch: Option<u32>) -> Result<()> {
    match training.generator().weights().all().iter().flatten().all(is_sound) {
        true => Ok(()),
        false => Err(diverging(epoch, training.n_tokens())),
    }
}

impl SpellingCheckpoint {
    /// Restores a checkpoint of an unchanged input.
    fn restore(&mut self, training: &mut SpellingTraining, state: (PathBuf, BufReader<File>)) -> Result<()> {
        let (path, mut file) = state;
        let place = training.restore(&mut file)?;
        let mut found: Self = serde_json::from_slice(&place).map_err(|error| Error::internal(&error))?;
        if found.vocabulary.is_empty() {
            found.vocabulary.clone_from(&self.vocabulary);
        }
        (self.n_done, self.n_batches) = (found.n_done, found.n_batches);
        match found == *self {
            true => Ok(()),
            false => Err(Error::other_input(&path, self.n_tokens, found.n_tokens)),
        }
    }
}

/// When a training pauses for a checkpoint.
struct CheckpointTimer<'a> {
    /// Seconds between two checkpoints; 0: none is due.
    every: f64,
    saved_at: Instant,
    interrupts: &'a Interrupts,
}

impl CheckpointTimer<'_> {
    fn requested(&self) -> Option<Requested> {
        let is_due =
            self.every > 0.0 && self.saved_at.elapsed() >= Duration::from_secs_f64(self.every.min(1e9));
        self.interrupts.requested().or(is_due.then_some(Requested::Checkpoint))
    }
}
