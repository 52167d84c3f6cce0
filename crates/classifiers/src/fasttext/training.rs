//! Runs all steps of a training.
//!
//! Threads take texts in turn and update the shared rows without locks. A training is divided into segments, between
//! which all threads wait; a checkpoint is possible there. With one thread, or with
//! [`FastTextSettings::is_deterministic`], equal texts and settings give equal bits.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use kernels::simd::{Processor, Table, table_bytes};
use program::random::mix;
use program::threads::spawn;

use super::kernel;
use super::listing::Listing;
use super::model::FastTextModel;
use super::order::{self, Window};
use super::rounds;
use super::segment::Segment;
use super::settings::{FastTextSettings, Loss};
use super::update::{Shared, Step};
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::features::FeatureRows;
use crate::texts::Texts;
use crate::tree::{Paths, Tree};

/// Number of texts that a thread takes at once.
const TEXTS_TOGETHER: usize = 64;
/// Number of tokens per thread and segment; about a tenth of a second. Tests have several segments per epoch.
const SEGMENT_TOKENS: u64 = if cfg!(test) { 1 << 8 } else { 1 << 22 };

/// A training that has not ended.
pub struct Training<'a> {
    pub(super) texts: &'a Texts,
    pub(super) settings: FastTextSettings,
    pub(super) rows: FeatureRows,
    pub(super) input: Arc<Table>,
    pub(super) output: Arc<Table>,
    pub(super) listing: Listing,
    /// Of hierarchical softmax.
    paths: Option<Paths>,
    processor: Processor,
    keeps: Vec<f32>,
    pub(super) at: Position,
    window: Option<Window<'a>>,
}

/// The next text of a training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub epoch: u32,
    pub window: u32,
    /// Number of texts of the window that are done.
    pub text: u64,
    /// Number of texts of the epoch that are done.
    pub epoch_texts: u64,
}

/// The state of a training after a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastTextProgress {
    /// Number of epochs that are done.
    pub epoch: u32,
    /// Number of texts that are done, of all epochs.
    pub n_done: u64,
    /// Number of texts of all epochs.
    pub n_total: u64,
    /// Mean loss of the segment.
    pub loss: f64,
    /// Learning rate of the next step.
    pub rate: f32,
}

impl<'a> Training<'a> {
    /// Draws the first weights of all rows that the texts have.
    ///
    /// # Errors
    /// If there is no text, the tables exceed the memory limit, or a temporary file cannot be read.
    pub fn new(texts: &'a Texts, settings: FastTextSettings) -> Result<Self> {
        Self::starting_from(texts, settings, None)
    }

    /// The same with the weights of a model of the same features, dimension and labels. The dictionary of the texts has the
    /// words of the model.
    ///
    /// # Errors
    /// As [`Training::new`].
    ///
    /// # Panics
    /// If the model has a word or label that the dictionary does not have, or another dimension.
    pub fn starting_from(
        texts: &'a Texts,
        settings: FastTextSettings,
        model: Option<&FastTextModel>,
    ) -> Result<Self> {
        let training = Self::empty(texts, settings, model)?;
        training.draw();
        if let Some(model) = model {
            training.copy(model);
        }
        Ok(training)
    }

    /// Sets the first weights of a word. A word that no text has keeps its own.
    pub fn set_word(&self, word: u32, weights: &[f32]) {
        if let Some(position) = self.listing.met.position(word) {
            self.input.write(position, 0, weights);
        }
    }

    /// Sets the weights of all rows of a model.
    fn copy(&self, model: &FastTextModel) {
        let mut values = vec![0.0; self.settings.dim];
        for (at, row) in (0..).zip(rows_of(model, &self.texts.dictionary)) {
            let position = self.listing.met.position(row).expect("the set has the rows of the model");
            model.input().read(at, 0, &mut values);
            self.input.write(position, 0, &values);
        }
        for (at, name) in (0..).zip(model.dictionary().labels().iter()) {
            let label = self.texts.dictionary.label(name).expect("a label of the texts");
            model.output().read(at, 0, &mut values);
            self.output.write(label, 0, &values);
        }
    }

    /// A training whose weights are zero, with the rows of the texts and of a model.
    pub(super) fn empty(
        texts: &'a Texts,
        settings: FastTextSettings,
        model: Option<&FastTextModel>,
    ) -> Result<Self> {
        if texts.n_texts() == texts.counts().n_empty {
            return Err(Error::NoTexts { n_unlabelled: texts.counts().n_unlabelled });
        }
        let dictionary = &texts.dictionary;
        let (n_rows, n_labels) = (settings.features.n_rows(dictionary.n_words()), dictionary.labels().len());
        let parts = settings.optimizer.parts();
        if n_rows >= u64::from(u32::MAX) {
            return Err(Error::TooManyRows { n_rows, max: u32::MAX - 1 });
        }
        let rows = FeatureRows::new(settings.features, dictionary);
        let of_texts = texts.memory_bytes();
        let left = usize::try_from(settings.memory_bytes.saturating_sub(of_texts)).unwrap_or(usize::MAX);
        let lists_max = if settings.subsampling > 0.0 { 0 } else { settings.lists_bytes.min(left) };
        let of_model = model.map_or_else(Vec::new, |model| rows_of(model, dictionary));
        let mut listing = Listing::of(texts, &rows, &of_model, settings.threads, lists_max)?;
        let of = |n_rows| table_bytes(n_rows as u64, settings.dim, parts).unwrap_or(u64::MAX);
        let n_rows = listing.met.len();
        let (needed, max) = (of(n_rows).saturating_add(of(n_labels)), settings.memory_bytes);
        let too_large = || Error::TooLarge { n_rows, dim: settings.dim, needed, max };
        if needed > max {
            return Err(too_large());
        }
        if of_texts.saturating_add(listing.n_bytes).saturating_add(needed) > max {
            listing.lists = None;
        }
        let table = |n_rows| Table::new(n_rows, settings.dim, parts).map(Arc::new).map_err(|_| too_large());
        let (input, output) = (table(n_rows)?, table(n_labels)?);
        let keeps = keeps(texts, settings.subsampling);
        let (processor, at) = (Processor::best(), Position::default());
        let tree = || Tree::new(dictionary.label_counts()).paths();
        let paths = (settings.loss == Loss::HierarchicalSoftmax).then(tree);
        Ok(Self { texts, settings, rows, input, output, listing, paths, processor, keeps, at, window: None })
    }

    /// Uses another instruction set than the fastest one.
    #[must_use]
    pub fn with_processor(mut self, processor: Processor) -> Self {
        self.processor = processor;
        self
    }

    /// Trains one segment. Returns `None` if the training has ended.
    ///
    /// # Errors
    /// If the loss is not finite, or a temporary file cannot be read.
    pub fn step(&mut self) -> Result<Option<FastTextProgress>> {
        let n_texts = self.n_texts();
        if self.at.epoch >= self.settings.epochs {
            return Ok(None);
        }
        let windows = order::windows(self.texts, self.settings.seed, self.at.epoch);
        let window = match self.window.take() {
            Some(window) => window,
            None => {
                let key = [self.settings.seed, u64::from(self.at.epoch), u64::from(self.at.window)];
                let blocks = &windows[self.at.window as usize];
                Window::open(self.texts, blocks, key, self.settings.threads)?
            }
        };
        let from = self.at.text as usize;
        let to = (from + self.segment_texts()).min(window.n_texts());
        let (loss, n_trained) = self.run(&window, from..to);
        if !loss.is_finite() {
            let epoch = self.at.epoch + 1;
            return Err(Error::NotFinite { epoch, rate: self.settings.rate });
        }
        self.at.epoch_texts += (to - from) as u64;
        self.at.text = to as u64;
        if to < window.n_texts() {
            self.window = Some(window);
        } else if (self.at.window as usize) + 1 < windows.len() {
            self.at = Position { window: self.at.window + 1, text: 0, ..self.at };
        } else {
            self.at = Position { epoch: self.at.epoch + 1, ..Position::default() };
        }
        let (n_done, n_total) = self.done(n_texts);
        let rate = self.settings.rate_at(n_done, n_total);
        let loss = loss / n_trained.max(1) as f64;
        Ok(Some(FastTextProgress { epoch: self.at.epoch, n_done, n_total, loss, rate }))
    }

    /// The model between two segments. It shares the weights, which the next segment changes.
    pub fn model(&self) -> FastTextModel {
        FastTextModel::new(
            &self.settings,
            self.texts.dictionary.clone(),
            self.rows.clone(),
            [Arc::clone(&self.input), Arc::clone(&self.output)],
            self.listing.met.clone(),
        )
    }

    /// The model with the current weights.
    pub fn finish(self) -> FastTextModel {
        FastTextModel::new(
            &self.settings,
            self.texts.dictionary.clone(),
            self.rows,
            [self.input, self.output],
            self.listing.met,
        )
    }

    /// Number of texts with words.
    fn n_texts(&self) -> u64 {
        self.texts.n_texts() - self.texts.counts().n_empty
    }

    fn done(&self, n_texts: u64) -> (u64, u64) {
        let n_done = u64::from(self.at.epoch) * n_texts + self.at.epoch_texts;
        (n_done, u64::from(self.settings.epochs) * n_texts)
    }

    /// Number of texts of a segment.
    fn segment_texts(&self) -> usize {
        let n_tokens = self.texts.counts().n_tokens.max(1);
        let texts = u128::from(SEGMENT_TOKENS) * u128::from(self.n_texts()) / u128::from(n_tokens);
        (texts as usize).max(TEXTS_TOGETHER).saturating_mul(self.settings.threads.max(1))
    }

    /// Trains texts of a window. Returns the sum of losses and the number of texts.
    fn run(&self, window: &Window<'_>, positions: Range<usize>) -> (f64, u64) {
        let (n_done, n_total) = self.done(self.n_texts());
        let shared = Shared {
            settings: &self.settings,
            dictionary: &self.texts.dictionary,
            rows: &self.rows,
            input: &self.input,
            output: &self.output,
            processor: self.processor,
            listing: &self.listing,
            paths: self.paths.as_ref(),
            keeps: &self.keeps,
        };
        let segment = Segment { window, from: positions.start, to: positions.end, n_done, n_total };
        train_on_threads(&shared, &segment)
    }

    /// Draws the first weights of all rows that were met.
    fn draw(&self) {
        let seed = mix(self.settings.seed ^ mix(0x6477));
        let met = &self.listing.met;
        let share = met.n_groups().div_ceil(self.settings.threads.max(1));
        thread::scope(|scope| {
            for thread in 0..self.settings.threads.max(1) {
                let rows = met.iter_groups(thread * share..(thread + 1) * share);
                let (processor, input) = (self.processor, &self.input);
                let draw = move |row| {
                    let position = met.position(row).expect("a row of the set");
                    kernel::draw_on(processor, input, position, mix(seed ^ u64::from(row)));
                };
                spawn(scope, move || rows.for_each(draw));
            }
        });
    }
}

/// The rows of a model, in the order of its table, as rows of a dictionary that has its words. Buckets follow the words.
fn rows_of(model: &FastTextModel, dictionary: &Dictionary) -> Vec<u32> {
    let n_words = model.dictionary().n_words() as u32;
    let row = |row: u32| match row.checked_sub(n_words) {
        Some(bucket) => dictionary.n_words() as u32 + bucket,
        None => dictionary.word(model.dictionary().name(row)).expect("a word of the dictionary"),
    };
    model.met().iter().map(row).collect()
}

/// Trains the texts of a segment. Returns the sum of losses and the number of texts.
fn train_on_threads(shared: &Shared<'_>, segment: &Segment<'_>) -> (f64, u64) {
    let threads = shared.settings.threads;
    if shared.settings.is_deterministic && threads > 1 {
        return rounds::run(shared, segment);
    }
    let next = AtomicUsize::new(segment.from);
    let run = || train(shared, segment, &next);
    let sums = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| spawn(scope, run)).collect();
        let first = std::iter::once(run());
        first.chain(others.into_iter().map(|thread| thread.join().expect("no panic"))).collect::<Vec<_>>()
    });
    sums.into_iter().fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// Trains texts until none is left.
fn train(shared: &Shared<'_>, segment: &Segment<'_>, next: &AtomicUsize) -> (f64, u64) {
    let Segment { window, to, n_total, .. } = *segment;
    let mut step = Step::new(shared);
    let (mut own, mut following) = (Vec::new(), Vec::new());
    let (mut loss, mut n_trained) = (0.0, 0);
    loop {
        let from = next.fetch_add(TEXTS_TOGETHER, Relaxed);
        if from >= to {
            return (loss, n_trained);
        }
        let to = (from + TEXTS_TOGETHER).min(to);
        let mut listed = step.list_rows(shared, window, from, segment.step(from), &mut own);
        for position in from..to {
            let next = position + 1;
            let next = if next < to {
                step.list_rows(shared, window, next, segment.step(next), &mut following)
            } else {
                Some(&[][..])
            };
            let rows = listed.unwrap_or(&own);
            if !rows.is_empty() {
                let n_done = segment.step(position);
                let rule = shared.settings.rule(shared.settings.rate_at(n_done, n_total), n_done + 1);
                loss += f64::from(step.forward(shared, rows, window.text(position).labels, n_done));
                step.update_output(shared, &rule);
                step.update_rows(shared, rows, &rule, next.unwrap_or(&following));
                n_trained += 1;
            }
            listed = next;
            std::mem::swap(&mut own, &mut following);
        }
    }
}

/// The probability to keep each word; none if all words are kept.
fn keeps(texts: &Texts, threshold: f32) -> Vec<f32> {
    if threshold <= 0.0 {
        return Vec::new();
    }
    let dictionary = &texts.dictionary;
    let keep = |word| {
        let ratio = f64::from(threshold) * texts.counts().n_tokens as f64 / dictionary.count(word) as f64;
        (ratio.sqrt() + ratio) as f32
    };
    (0..dictionary.n_words() as u32).map(keep).collect()
}
