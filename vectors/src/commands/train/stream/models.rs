//! The models that learn from lines as they arrive.

use std::fs::File;
use std::io::BufReader;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use embeddings::skipgram::{Counting, Decay, Done, Growing, SkipGramTraining, Vocabulary, Work};
use embeddings::spelling::SpellingTraining;
use program::threads::spawn;
use serde_json::Value;
use training::texts_out::TextsOut;
use training::{Error, Result};

use crate::arguments::Train;
use crate::commands::train::comparisons::Comparisons;
use crate::commands::train::model::{CHECKED_WORDS, check_vectors};
use crate::commands::train::out::{self, Vectors};
use crate::commands::train::progress::Progress;
use crate::commands::train::settings::{Processes, skip_gram_settings, spelling_settings};
use crate::commands::train::spelled;

/// A model with the vocabulary of a stream.
pub(super) trait StreamModel: Sized {
    /// Begins a training, or restores the newest checkpoint; then returns its place, too.
    fn begin(arguments: &Train, out: &mut TextsOut) -> Result<(Self, Option<Vec<u8>>)>;

    /// Trains on the lines that `lines` passes on. On return, all of them are trained on.
    fn learn<T>(
        &mut self,
        threads: usize,
        decay: Decay,
        lines: impl FnOnce(&mut dyn Learning) -> Result<T>,
    ) -> Result<(Result<T>, Done)>;

    fn vocabulary(&self) -> &Vocabulary;

    fn n_tokens(&self) -> u64;

    /// Refuses values that no file can have.
    fn check(&self) -> Result<()>;

    /// Compares the vectors of this moment.
    fn compare(&self, comparisons: &mut Comparisons, progress: &mut Progress);

    /// Saves a checkpoint.
    fn save(&mut self, out: &mut TextsOut, place: &[u8]) -> Result<()>;

    /// Writes the model of this moment.
    fn write(&mut self, out: &TextsOut, recipe: &Value) -> Result<()>;

    fn into_vectors(self) -> (Vectors, Vocabulary);
}

/// The vocabulary and the place of the newest checkpoint, which `restore` reads, or a new vocabulary.
fn begun(
    words_max: usize,
    out: &mut TextsOut,
    restore: impl FnOnce(&mut BufReader<File>) -> embeddings::Result<(Vocabulary, Vec<u8>)>,
) -> Result<(Vocabulary, Option<Vec<u8>>)> {
    let Some((_, mut file)) = out::state(out)? else { return Ok((Vocabulary::new(words_max), None)) };
    let (vocabulary, place) = restore(&mut file)?;
    Ok((vocabulary, Some(place)))
}

/// A model while it learns.
pub(super) trait Learning {
    /// Trains on cleaned lines, now or soon.
    fn learn(&mut self, lines: &[u8]) -> Result<()>;

    /// Number of words in the vocabulary.
    fn n_words(&self) -> u64;

    /// Number of tokens that were counted, and of those that were trained on.
    fn n_counted(&self) -> u64;
    fn n_tokens(&self) -> u64;

    /// The mean loss since the last call.
    fn take_loss(&mut self) -> Option<f64>;

    /// Refuses values that no file can have, as far as they are found quickly.
    fn check(&self) -> Result<()>;
}

/// Skip-gram.
pub(super) struct SkipGramStream {
    training: SkipGramTraining,
    growing: Growing,
}

/// Skip-gram, which threads train.
struct LearningSkipGram<'a> {
    training: &'a SkipGramTraining,
    growing: &'a mut Growing,
    sender: SyncSender<Work>,
}

impl StreamModel for SkipGramStream {
    fn begin(arguments: &Train, out: &mut TextsOut) -> Result<(Self, Option<Vec<u8>>)> {
        let words_max = arguments.words_max;
        let mut training = SkipGramTraining::new(skip_gram_settings(arguments), words_max)?;
        let (vocabulary, place) = begun(words_max, out, |file| training.restore(words_max, file))?;
        let growing = Growing::new(vocabulary, &training);
        Ok((Self { training, growing }, place))
    }

    fn learn<T>(
        &mut self,
        threads: usize,
        decay: Decay,
        lines: impl FnOnce(&mut dyn Learning) -> Result<T>,
    ) -> Result<(Result<T>, Done)> {
        let Self { training, growing } = self;
        let training = &*training;
        let (sender, receiver) = sync_channel::<Work>(threads);
        let receiver = Mutex::new(receiver);
        let take = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
        thread::scope(|scope| {
            let trained = spawn(scope, || training.run(threads, decay, &take));
            let mut learning = LearningSkipGram { training, growing, sender };
            let ended = lines(&mut learning);
            drop(learning);
            let done = trained.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((ended, done?))
        })
    }

    fn vocabulary(&self) -> &Vocabulary {
        self.growing.vocabulary()
    }

    fn n_tokens(&self) -> u64 {
        self.training.n_tokens()
    }

    fn check(&self) -> Result<()> {
        check_vectors(&self.training, self.vocabulary().n_words(), None)
    }

    fn compare(&self, comparisons: &mut Comparisons, progress: &mut Progress) {
        comparisons.compare_tables(&self.training, self.vocabulary(), progress);
    }

    fn save(&mut self, out: &mut TextsOut, place: &[u8]) -> Result<()> {
        out::save(out, &self.training, self.growing.vocabulary(), place)
    }

    fn write(&mut self, out: &TextsOut, recipe: &Value) -> Result<()> {
        out::write_model(out, &self.training, self.growing.vocabulary(), recipe)
    }

    fn into_vectors(self) -> (Vectors, Vocabulary) {
        (Vectors::Table(Box::new(self.training)), self.growing.into_vocabulary())
    }
}

impl Learning for LearningSkipGram<'_> {
    fn learn(&mut self, lines: &[u8]) -> Result<()> {
        let sent = self.sender.send(self.growing.work(self.training, lines));
        sent.map_err(|_| Error::internal(&"the threads of a training ended early"))
    }

    fn n_words(&self) -> u64 {
        self.growing.vocabulary().n_words() as u64
    }

    fn n_counted(&self) -> u64 {
        self.growing.vocabulary().n_tokens()
    }

    fn n_tokens(&self) -> u64 {
        self.training.n_tokens()
    }

    fn take_loss(&mut self) -> Option<f64> {
        self.training.take_loss()
    }

    fn check(&self) -> Result<()> {
        check_vectors(self.training, CHECKED_WORDS.min(self.growing.vocabulary().n_words()), None)
    }
}

/// char-lstm.
pub(super) struct SpelledStream {
    training: SpellingTraining,
    counting: Counting,
}

/// char-lstm, which trains on lines before it takes the next ones.
struct LearningSpelled<'a> {
    stream: &'a mut SpelledStream,
    decay: Decay,
    done: Done,
    recent: Done,
}

impl StreamModel for SpelledStream {
    fn begin(arguments: &Train, out: &mut TextsOut) -> Result<(Self, Option<Vec<u8>>)> {
        let (settings, words_max) = (spelling_settings(arguments, Processes::One), arguments.words_max);
        let [power, sample] = [settings.power, settings.sample];
        let mut training = SpellingTraining::of_stream(settings, arguments.threads());
        let (vocabulary, place) = begun(words_max, out, |file| training.restore_stream(words_max, file))?;
        let counting = Counting::new(vocabulary, arguments.min_count, power, sample);
        Ok((Self { training, counting }, place))
    }

    fn learn<T>(
        &mut self,
        _: usize,
        decay: Decay,
        lines: impl FnOnce(&mut dyn Learning) -> Result<T>,
    ) -> Result<(Result<T>, Done)> {
        let (done, recent) = (Done::default(), Done::default());
        let mut learning = LearningSpelled { stream: self, decay, done, recent };
        let ended = lines(&mut learning);
        Ok((ended, learning.done))
    }

    fn vocabulary(&self) -> &Vocabulary {
        self.counting.vocabulary()
    }

    fn n_tokens(&self) -> u64 {
        self.training.n_tokens()
    }

    fn check(&self) -> Result<()> {
        spelled::check(&self.training, None)
    }

    fn compare(&self, comparisons: &mut Comparisons, progress: &mut Progress) {
        comparisons.compare_spelled(&self.training, self.vocabulary(), progress);
    }

    fn save(&mut self, out: &mut TextsOut, place: &[u8]) -> Result<()> {
        let Self { training, counting } = self;
        out.save(|file| training.save_stream(counting.vocabulary(), place, file))
    }

    fn write(&mut self, out: &TextsOut, recipe: &Value) -> Result<()> {
        out::write_spelled(out, &mut self.training, self.counting.vocabulary(), recipe)
    }

    fn into_vectors(self) -> (Vectors, Vocabulary) {
        (Vectors::Spelled(Box::new(self.training)), self.counting.into_vocabulary())
    }
}

impl Learning for LearningSpelled<'_> {
    fn learn(&mut self, lines: &[u8]) -> Result<()> {
        let SpelledStream { training, counting } = &mut *self.stream;
        let work = counting.work(lines, |begun| training.begin(begun));
        let done = training.run(self.decay, &work);
        self.done.add(&done);
        self.recent.add(&done);
        Ok(())
    }

    fn n_words(&self) -> u64 {
        self.stream.vocabulary().n_words() as u64
    }

    fn n_counted(&self) -> u64 {
        self.stream.vocabulary().n_tokens()
    }

    fn n_tokens(&self) -> u64 {
        self.stream.training.n_tokens()
    }

    fn take_loss(&mut self) -> Option<f64> {
        std::mem::take(&mut self.recent).loss()
    }

    fn check(&self) -> Result<()> {
        self.stream.check()
    }
}
