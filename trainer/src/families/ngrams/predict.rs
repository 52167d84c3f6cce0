//! Converts each line of the input into one line of JSON with the prediction of an n-gram model, in the same order.
//!
//! ```text
//! {"line":1,"label":1,"class":"positive","score":2.5,"probability":0.9241418}
//! {"line":2,"error":"blank"}
//! {"line":3,"label":2,"class":"c","probabilities":{"c":0.625,"b":0.25,"a":0.125}}
//! ```
//!
//! The first form is that of two labels: `label` is the place of the predicted label in the order of names, `score` its
//! log-odds of the second label, and `probability` the probability of that label. The second form is that of three and
//! more labels, or of `--top` and `--threshold`: the most probable labels, in descending order. Without a label that is
//! probable enough, `label` and `class` are `null`.
//!
//! `error` is one of the names of [`crate::predict`]; `only_unknown` is a text without a word or an n-gram that the
//! model has a row for.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::num::NonZeroUsize;
use std::thread;

use corpus::lines::LineReader;
use serde::{Serialize, Serializer};

use super::Classifier;
use super::labels::Labels;
use super::quality::largest;
use super::text::{Format, Parser};
use crate::predict::pause::{Pausing, is_pause};
use crate::predict::{Counts, Error, Refusal, is_invalid};

/// Labels printed by default for three and more labels.
const TOP: usize = 5;
/// Maximum texts of a window.
const WINDOW_ROWS: usize = 1 << 14;
/// Maximum bytes of a window, without its last text.
const WINDOW_BYTES: usize = 4 << 20;

/// Options of a prediction.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the input file, if one was named.
    pub file: Option<String>,
    /// Content of a line.
    pub format: Format,
    /// Maximum length of a line.
    pub line_bytes_max: usize,
    /// Which labels are printed.
    pub choice: Choice,
    /// Number of threads.
    pub threads: NonZeroUsize,
}

/// Which labels are printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice {
    /// The most probable ones.
    pub top: Option<usize>,
    /// Those of at least this probability.
    pub threshold: Option<f64>,
}

impl Options {
    /// Name of the input for messages.
    pub fn place(&self) -> String {
        self.file.clone().unwrap_or_else(|| "standard input".to_owned())
    }
}

/// Reads all lines of `input` and writes a prediction for each to `output`.
pub fn run(
    input: impl Read,
    mut output: impl Write,
    classifier: &Classifier,
    options: &Options,
) -> Result<Counts, Error> {
    let answers_owed = Cell::new(false);
    let mut lines = LineReader::new(Pausing::new(input, &answers_owed), options.line_bytes_max);
    let mut parser = Parser::of(&options.format, classifier.words());
    let mut window = Window::default();
    let mut counts = Counts::default();
    loop {
        answers_owed.set(!window.texts.is_empty());
        let ends = match lines.next_line() {
            Ok(Some(line)) => {
                counts.invalid_utf8 += u64::from(is_invalid(line.content));
                window.push(parser.text(line.content));
                if window.texts.len() < WINDOW_ROWS && window.bytes.len() < WINDOW_BYTES {
                    continue;
                }
                false
            }
            Err(error) if is_pause(&error) => false,
            Ok(None) => true,
            Err(source) => return Err(Error::Read { place: options.place(), source }),
        };
        let answers = window.answers(classifier, options.threads);
        write_lines(&mut output, classifier.labels(), options, &answers, &mut counts)
            .map_err(Error::Write)?;
        window.clear();
        if ends {
            return Ok(counts);
        }
    }
}

/// Texts that are predicted together.
#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    /// The end of each text in `bytes`, or the reason why a line has none.
    texts: Vec<Result<usize, Refusal>>,
}

impl Window {
    fn push(&mut self, text: Result<&[u8], Refusal>) {
        self.texts.push(text.map(|text| {
            self.bytes.extend_from_slice(text);
            self.bytes.len()
        }));
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.texts.clear();
    }

    /// The probabilities of each text, in the order of lines. Each thread has a contiguous part of the texts.
    fn answers(&self, classifier: &Classifier, threads: NonZeroUsize) -> Vec<Result<Vec<f32>, Refusal>> {
        let mut begin = 0;
        let texts: Vec<Result<&[u8], Refusal>> = self
            .texts
            .iter()
            .map(|text| text.map(|end| &self.bytes[std::mem::replace(&mut begin, end)..end]))
            .collect();
        let answer = |texts: &[Result<&[u8], Refusal>]| {
            let mut reader = classifier.reader();
            texts
                .iter()
                .map(|text| text.and_then(|text| probabilities(&mut reader, text)))
                .collect::<Vec<_>>()
        };
        // A thread costs more than some texts.
        let n_of_thread = texts.len().div_ceil(threads.get()).max(16);
        if texts.len() <= n_of_thread {
            return answer(&texts);
        }
        thread::scope(|scope| {
            let answer = &answer;
            let threads: Vec<_> =
                texts.chunks(n_of_thread).map(|texts| scope.spawn(move || answer(texts))).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("a prediction does not panic"))
                .collect()
        })
    }
}

fn probabilities(reader: &mut super::Reader<'_>, text: &[u8]) -> Result<Vec<f32>, Refusal> {
    let probabilities = reader.probabilities(text).ok_or(Refusal::OnlyUnknown)?;
    match probabilities.iter().all(|probability| probability.is_finite()) {
        true => Ok(probabilities.to_vec()),
        false => Err(Refusal::NotFinite),
    }
}

/// A line of the output.
#[derive(Serialize)]
struct Said<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    line: u64,
    #[serde(flatten)]
    answer: Answer<'a>,
}

/// The prediction of an input line, or the reason why there is none.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    OfTwo { label: u32, class: &'a str, score: f32, probability: f32 },
    OfMany { label: Option<u32>, class: Option<&'a str>, probabilities: OfLabels<'a> },
    Refusal { error: &'static str },
}

/// Writes the lines of a window in one call, and counts them.
fn write_lines(
    output: &mut impl Write,
    labels: &Labels,
    options: &Options,
    answers: &[Result<Vec<f32>, Refusal>],
    counts: &mut Counts,
) -> io::Result<()> {
    let mut lines = Vec::new();
    for answer in answers {
        counts.lines += 1;
        let answer = match answer {
            Ok(probabilities) => {
                counts.predicted += 1;
                predicted(probabilities, labels, options.choice)
            }
            Err(refusal) => {
                *counts.refused.entry(refusal.name()).or_default() += 1;
                Answer::Refusal { error: refusal.name() }
            }
        };
        let said = Said { file: options.file.as_deref(), line: counts.lines, answer };
        serde_json::to_writer(&mut lines, &said)?;
        lines.push(b'\n');
    }
    output.write_all(&lines)?;
    output.flush()
}

fn predicted<'a>(probabilities: &[f32], labels: &'a Labels, choice: Choice) -> Answer<'a> {
    if let (2, Choice { top: None, threshold: None }) = (labels.n_labels(), choice) {
        let label = largest(probabilities);
        let second = labels.in_order().nth(1).unwrap_or_default();
        return Answer::OfTwo {
            label: labels.place(label),
            class: labels.name(label),
            score: labels.outputs(probabilities)[0] as f32,
            probability: probabilities[second as usize],
        };
    }
    let mut order: Vec<u32> = (0..probabilities.len() as u32).collect();
    let n = choice.top.unwrap_or(if choice.threshold.is_some() { usize::MAX } else { TOP }).min(order.len());
    let descending = |&one: &u32, &other: &u32| {
        probabilities[other as usize].total_cmp(&probabilities[one as usize]).then(one.cmp(&other))
    };
    if n > 0 && n < order.len() {
        order.select_nth_unstable_by(n - 1, descending);
    }
    order.truncate(n);
    order.sort_unstable_by(descending);
    let threshold = choice.threshold.unwrap_or(0.0);
    order.retain(|&label| f64::from(probabilities[label as usize]) >= threshold);
    let first = order.first().copied();
    Answer::OfMany {
        label: first.map(|label| labels.place(label)),
        class: first.map(|label| labels.name(label)),
        probabilities: OfLabels { labels, order, probabilities: probabilities.to_vec() },
    }
}

/// The probability of each printed label.
struct OfLabels<'a> {
    labels: &'a Labels,
    order: Vec<u32>,
    probabilities: Vec<f32>,
}

impl Serialize for OfLabels<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let each =
            self.order.iter().map(|&label| (self.labels.name(label), self.probabilities[label as usize]));
        serializer.collect_map(each)
    }
}
