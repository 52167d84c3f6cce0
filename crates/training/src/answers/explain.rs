//! Converts each line of the input into an explanation: the words or n-grams that spoke for the predicted label, and those
//! that spoke against it, as an object or as a paragraph for a terminal. Each family of models has a module that computes
//! their weights.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use dataset::vocabulary::UNKNOWN;
use program::exit::printable;
use serde::Serialize;

use super::lines::{Content, Done, Next, each_text};
use super::output::Answers;
use super::{AnswersError, Counts, LineOptions, Refusal};

/// Characters per line of a text.
const COLUMNS: usize = 78;
/// Maximum lines of a text. A screen has 24.
const LINES_MAX: usize = 10;

/// Options of explanations.
#[derive(Clone, Debug)]
pub struct Options {
    /// The names of the labels.
    pub names: Vec<String>,
    /// Maximum number of words for the label, and against it.
    pub top: usize,
    /// The form of the output.
    pub form: Form,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One object per line.
    Json,
    /// A paragraph per line.
    Text,
    /// A paragraph per line, with colours for a terminal.
    Colours,
}

impl Form {
    /// JSON, or text with colours if standard output is a terminal.
    pub fn of_output(json: bool) -> Self {
        match json {
            true => Self::Json,
            false if io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() => Self::Colours,
            false => Self::Text,
        }
    }
}

/// The explanation of a prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The predicted label.
    pub label: u32,
    /// The score; three or more classes have none.
    pub score: Option<f32>,
    /// The probability of label 1; for three or more classes, of the predicted one.
    pub probability: Option<f64>,
    /// Distinct words with a weight, the largest first. Equal weights are in the order of the text.
    pub words: Vec<Weighed>,
    /// All words of the cleaned text.
    pub text: Vec<(String, Reading)>,
}

/// A word and its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighed {
    /// The word, or n-gram.
    pub word: String,
    /// Its weight.
    pub weight: f64,
    /// Number of occurrences that the model reads.
    pub times: usize,
}

/// How a model reads a word of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A word of the vocabulary.
    Id(u32),
    /// As the unknown word, because the vocabulary does not have it.
    Unknown,
    /// Not at all: a stop word.
    Stop,
    /// Not at all: a word behind the limits of the row or of the model.
    Cut,
}

impl Reading {
    /// The id that the model reads.
    pub fn id(self) -> Option<u32> {
        match self {
            Self::Id(id) => Some(id),
            Self::Unknown => Some(UNKNOWN),
            Self::Stop | Self::Cut => None,
        }
    }
}

/// Reads all texts of `input` and writes to `output` what `explain` returns for each. If none of its lines can be read,
/// nothing is written.
pub fn run<'i, E: From<AnswersError>>(
    input: impl Into<Content<'i>>,
    output: impl Write,
    lines: &LineOptions,
    options: &Options,
    mut explain: impl FnMut(&[u8]) -> Result<Result<Explained, Refusal>, E>,
) -> Result<Counts, E> {
    let input = input.into();
    let mut output = Answers::new(output, &input);
    let mut counts = Counts::default();
    let found = each_text(input, lines, |next| {
        let explained = match next {
            Next::Text(Ok(entry), _) => explain(entry.text)?,
            Next::Text(Err(refusal), _) => Err(refusal),
            Next::Pause => return Ok(Done::Answered),
        };
        counts.add(explained.as_ref().map(drop).map_err(|&refusal| refusal));
        let shown = options.show(lines.file.as_deref(), counts.lines, &explained);
        Ok::<_, E>(output.write(shown.as_bytes(), &counts)?)
    })?;
    counts.end(found);
    Ok(counts)
}

impl Options {
    /// The explanation of an input line, or the reason why there is none, with a line end.
    fn show(&self, file: Option<&str>, line: u64, explained: &Result<Explained, Refusal>) -> String {
        match self.form {
            Form::Json => self.object(file, line, explained),
            Form::Text | Form::Colours => self.paragraph(file, line, explained),
        }
    }

    fn object(&self, file: Option<&str>, line: u64, explained: &Result<Explained, Refusal>) -> String {
        let answer = match explained {
            Ok(explained) => {
                let [for_it, against] = sides(explained, self.top).map(|words| listed(&words));
                Explanation::Explained {
                    label: explained.label,
                    name: self.name(explained),
                    score: explained.score,
                    probability: explained.probability.map(|probability| probability as f32),
                    r#for: for_it,
                    against,
                    text: explained
                        .text
                        .iter()
                        .map(|(word, reading)| Marked { word, mark: mark(*reading) })
                        .collect(),
                }
            }
            Err(refusal) => Explanation::Refusal { error: refusal.name() },
        };
        let said = Printed { file, line, answer };
        let mut json = serde_json::to_string(&said).expect("plain values are JSON");
        json.push('\n');
        printable(&json).into_owned()
    }

    fn paragraph(&self, file: Option<&str>, line: u64, explained: &Result<Explained, Refusal>) -> String {
        let paint = Paint { is_on: self.form == Form::Colours };
        let file = file.map_or_else(String::new, |file| format!("{}, ", printable(file)));
        let mut out = format!("{file}line {line}: ");
        let explained = match explained {
            Ok(explained) => explained,
            Err(refusal) => {
                let _ = writeln!(out, "no prediction: {}\n", refusal.name());
                return out;
            }
        };
        let of_label = match (explained.score, explained.label, explained.probability) {
            // The probability of the predicted label.
            (Some(_), 0, Some(probability)) => format!(", probability {:.4}", 1.0 - probability),
            (_, _, Some(probability)) => format!(", probability {probability:.4}"),
            (Some(score), _, None) => format!(", score {score:.4}"),
            (None, _, None) => String::new(),
        };
        let _ = writeln!(out, "{}{of_label}", paint.paint("1", &printable(self.name(explained))));
        let words = sides(explained, self.top);
        for (side, words) in ["for", "against"].into_iter().zip(&words) {
            let mut head = side;
            if words.is_empty() {
                let _ = writeln!(out, "  {head:<8} no word");
            }
            for Weighed { word, weight, times } in words {
                let times = if *times > 1 { format!(" ×{times}") } else { String::new() };
                let _ = writeln!(
                    out,
                    "  {head:<8} {weight:+8.4}  {}{times}",
                    paint.weight(*weight, &printable(word))
                );
                head = "";
            }
        }
        out.push('\n');
        let weights = words.iter().flatten().map(|word| (word.word.as_str(), word.weight)).collect();
        text(&mut out, &explained.text, &weights, paint);
        out.push('\n');
        out
    }

    fn name(&self, explained: &Explained) -> &str {
        self.names.get(explained.label as usize).map_or("", String::as_str)
    }
}

/// The words for the label and those against it, the largest weights first.
fn sides(explained: &Explained, top: usize) -> [Vec<&Weighed>; 2] {
    let side = |is_for: bool| {
        let words = explained.words.iter().filter(|word| word.weight != 0.0 && (word.weight > 0.0) == is_for);
        words.take(top).collect()
    };
    [side(true), side(false)]
}

#[derive(Serialize)]
struct Printed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    line: u64,
    #[serde(flatten)]
    answer: Explanation<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Explanation<'a> {
    Explained {
        label: u32,
        name: &'a str,
        score: Option<f32>,
        probability: Option<f32>,
        r#for: Vec<OneWord<'a>>,
        against: Vec<OneWord<'a>>,
        text: Vec<Marked<'a>>,
    },
    Refusal {
        error: &'static str,
    },
}

#[derive(Serialize)]
struct OneWord<'a> {
    word: &'a str,
    weight: f32,
    times: usize,
}

/// A word of the text, and why it has no weight.
#[derive(Serialize)]
struct Marked<'a> {
    word: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<&'static str>,
}

fn listed<'a>(words: &[&'a Weighed]) -> Vec<OneWord<'a>> {
    let one =
        |&word: &&'a Weighed| OneWord { word: &word.word, weight: word.weight as f32, times: word.times };
    words.iter().map(one).collect()
}

fn mark(reading: Reading) -> Option<&'static str> {
    match reading {
        Reading::Id(_) => None,
        Reading::Unknown => Some("unknown"),
        Reading::Stop => Some("stop_word"),
        Reading::Cut => Some("cut"),
    }
}

/// Colours for a terminal, or none.
#[derive(Clone, Copy)]
struct Paint {
    is_on: bool,
}

impl Paint {
    fn paint(self, code: &str, text: &str) -> String {
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Green for the label, red against it.
    fn weight(self, weight: f64, text: &str) -> String {
        self.paint(if weight > 0.0 { "32" } else { "31" }, text)
    }
}

/// Writes the words of a text, broken into lines, and a key of the marks.
fn text(out: &mut String, words: &[(String, Reading)], weights: &HashMap<&str, f64>, paint: Paint) {
    let (mut column, mut lines) = (0, 1);
    for (at, (word, reading)) in words.iter().enumerate() {
        let shown = printable(word);
        let marked = match reading {
            Reading::Id(_) => shown.into_owned(),
            Reading::Unknown => format!("[{shown}]"),
            Reading::Stop => format!("({shown})"),
            Reading::Cut => format!("{{{shown}}}"),
        };
        let width = marked.chars().count();
        if column > 0 && column + 1 + width > COLUMNS {
            if lines == LINES_MAX {
                let _ = write!(out, "\n  … and {} more words", words.len() - at);
                break;
            }
            lines += 1;
            column = 0;
            out.push('\n');
        }
        out.push_str(if column == 0 { "  " } else { " " });
        let painted = match (reading, weights.get(word.as_str())) {
            (Reading::Id(_), Some(&weight)) => paint.weight(weight, &marked),
            (Reading::Id(_), None) => marked,
            _ => paint.paint("2", &marked),
        };
        out.push_str(&painted);
        column += width + 1;
    }
    out.push('\n');
    let has = |wanted: Reading| words.iter().any(|(_, reading)| *reading == wanted);
    let key: Vec<&str> = [
        (Reading::Unknown, "[not in the vocabulary]"),
        (Reading::Stop, "(stop word, not read)"),
        (Reading::Cut, "{cut, not read}"),
    ]
    .into_iter()
    .filter(|(reading, _)| has(*reading))
    .map(|(_, key)| key)
    .collect();
    if !key.is_empty() {
        let _ = writeln!(out, "  {}", paint.paint("2", &key.join("  ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_words_cannot_control_a_terminal() {
        let hostile = "\u{1b}[2Jred\u{202e}";
        let explained = Explained {
            label: 0,
            score: None,
            probability: None,
            words: vec![Weighed { word: hostile.to_owned(), weight: 1.0, times: 1 }],
            text: vec![(hostile.to_owned(), Reading::Id(2)), (hostile.to_owned(), Reading::Unknown)],
        };
        let explained = Ok(explained);
        for form in [Form::Json, Form::Text] {
            let options = Options { names: vec![hostile.to_owned()], top: 1, form };
            let shown = options.show(Some(hostile), 1, &explained);
            assert_eq!(shown.matches(r"\u001b[2Jred\u202e").count(), 5, "{shown}");
            assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
        }
    }
}
