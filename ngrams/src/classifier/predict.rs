//! Predicts by an n-gram model. A model of two labels prints the more probable one; other models, and `--top` and
//! `--threshold`, print the predicted label first and the most probable others in descending order.
//!
//! The label of a prediction is its place in the order of labels.

use std::num::NonZeroUsize;
use std::thread;

use classifiers::{Classifier, Labels, Preparation, Reader};
use corpus::ledger::NoReview;
use program::threads::spawn;
use training::answers::{self, Answer, AnswersError, Content, Counts, LineOptions, Output, Refusal};

/// Labels printed by default for three and more labels.
const TOP: usize = 5;
/// Maximum texts of a window.
const WINDOW_ROWS: usize = 1 << 14;
/// Maximum labels that a window prints, unless one text has more.
const WINDOW_LABELS: usize = 1 << 20;
/// Maximum bytes of a window, without its last text.
const WINDOW_BYTES: usize = 4 << 20;

/// Options of a prediction.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which labels are printed.
    pub shown: Shown,
    /// Number of threads.
    pub threads: NonZeroUsize,
    /// Whether a text of which the model knows no word has an answer, as in an evaluation.
    pub answers_unknown: bool,
}

/// Which labels are printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    /// The most probable ones.
    pub top: Option<usize>,
    /// Those of at least this probability.
    pub threshold: Option<f64>,
}

impl Shown {
    /// Maximum number of labels that are printed for a text.
    fn n_labels_max(self, n_labels: usize) -> usize {
        self.top.unwrap_or(if self.threshold.is_some() { usize::MAX } else { TOP }).min(n_labels)
    }
}

/// Reads all lines of `input` and writes a prediction for each to `output`.
pub fn run<'i, 'o>(
    input: impl Into<Content<'i>>,
    output: impl Into<Output<'o>>,
    lines: &LineOptions,
    classifier: &Classifier,
    options: &Options,
) -> Result<Counts, AnswersError> {
    let mut window = Window {
        classifier,
        options,
        preparation: Preparation::of(classifier.words()),
        bytes: Vec::new(),
        texts: Vec::new(),
    };
    answers::run(input, output, lines, &mut window)
}

/// Texts that are predicted together.
struct Window<'a> {
    classifier: &'a Classifier,
    options: &'a Options,
    preparation: Preparation,
    bytes: Vec<u8>,
    /// The end of each text in `bytes`, or the reason why a line has none.
    texts: Vec<Result<usize, Refusal>>,
}

impl<'a> answers::TextWindow<'a> for Window<'a> {
    type Error = AnswersError;

    fn push(&mut self, text: Result<&[u8], Refusal>) {
        let text =
            text.and_then(|text| self.preparation.text(text).ok_or(Refusal::Line(NoReview::EmptyText)));
        self.texts.push(text.map(|text| {
            self.bytes.extend_from_slice(text);
            self.bytes.len()
        }));
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    fn is_full(&self) -> bool {
        let n_labels = self.options.shown.n_labels_max(self.classifier.labels().n_labels());
        let rows_max = WINDOW_ROWS.min(WINDOW_LABELS / n_labels.max(1));
        self.texts.len() >= rows_max || self.bytes.len() >= WINDOW_BYTES
    }

    /// Each thread has a contiguous part of the texts.
    fn answers(&mut self) -> Result<Vec<Result<Answer<'a>, Refusal>>, AnswersError> {
        let Self { classifier, options, .. } = *self;
        let mut begin = 0;
        let texts: Vec<Result<&[u8], Refusal>> = self
            .texts
            .iter()
            .map(|text| text.map(|end| &self.bytes[std::mem::replace(&mut begin, end)..end]))
            .collect();
        let answer = |texts: &[Result<&[u8], Refusal>]| {
            let mut reader = classifier.reader();
            let answers = texts.iter().map(|text| answer(&mut reader, (*text)?, options));
            answers.collect::<Vec<_>>()
        };
        // A thread costs more than some texts.
        let n_of_thread = texts.len().div_ceil(options.threads.get()).max(16);
        let answers = if texts.len() <= n_of_thread {
            answer(&texts)
        } else {
            thread::scope(|scope| {
                let answer = &answer;
                let threads: Vec<_> =
                    texts.chunks(n_of_thread).map(|texts| spawn(scope, move || answer(texts))).collect();
                threads
                    .into_iter()
                    .flat_map(|thread| thread.join().expect("a prediction does not panic"))
                    .collect()
            })
        };
        self.bytes.clear();
        self.texts.clear();
        Ok(answers)
    }
}

fn answer<'a>(reader: &mut Reader<'a>, text: &[u8], options: &Options) -> Result<Answer<'a>, Refusal> {
    let labels = reader.labels();
    let found = if options.answers_unknown { reader.probabilities(text) } else { reader.of_known(text) };
    let probabilities = found.ok_or(Refusal::OnlyUnknown)?;
    match probabilities.iter().all(|probability| probability.is_finite()) {
        true => Ok(predicted(probabilities, labels, options.shown)),
        false => Err(Refusal::NotFinite),
    }
}

fn predicted<'a>(probabilities: &[f32], labels: &'a Labels, shown: Shown) -> Answer<'a> {
    if let (2, Shown { top: None, threshold: None }) = (labels.n_labels(), shown) {
        let label = labels.predicted(probabilities);
        let second = labels.in_order().nth(1).unwrap_or_default();
        let calibrated = labels.calibrated(probabilities);
        return Answer::OfTwo {
            label: labels.place(label),
            score: labels.outputs(probabilities)[0] as f32,
            probability: Some(calibrated[second as usize]),
            rating: None,
            class: Some(labels.name(label)),
        };
    }
    let predicted = labels.predicted(probabilities);
    let probabilities = labels.calibrated(probabilities);
    let mut order: Vec<u32> = (0..probabilities.len() as u32).collect();
    let n = shown.n_labels_max(order.len());
    // The threshold of a model may predict the less probable of two labels.
    let descending = |&one: &u32, &other: &u32| {
        let by_probability = probabilities[other as usize].total_cmp(&probabilities[one as usize]);
        let by_place = labels.place(one).cmp(&labels.place(other));
        (one != predicted).cmp(&(other != predicted)).then(by_probability).then(by_place)
    };
    if n > 0 && n < order.len() {
        order.select_nth_unstable_by(n - 1, descending);
    }
    order.truncate(n);
    order.sort_unstable_by(descending);
    let threshold = shown.threshold.unwrap_or(0.0);
    order.retain(|&label| f64::from(probabilities[label as usize]) >= threshold);
    let first = order.contains(&predicted).then_some(predicted);
    Answer::OfMany {
        label: first.map(|label| labels.place(label)),
        class: first.map(|label| labels.name(label)),
        probabilities: order
            .iter()
            .map(|&label| (labels.place(label), labels.name(label), probabilities[label as usize]))
            .collect(),
    }
}
