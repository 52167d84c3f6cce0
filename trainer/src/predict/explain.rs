//! Explains predictions by occlusion: converts each line of the input into the words that spoke for the predicted label,
//! and those that spoke against it.
//!
//! The weight of a word is the log-odds of the predicted label minus the log-odds after every occurrence of the word is
//! replaced by the unknown word. A positive weight speaks for the label. For a model that predicts the rating as a
//! number, the weight is a difference of ratings. Weights do not depend on calibration and threshold. They do not add up
//! to the log-odds: two words can say the same, and then neither is missed.
//!
//! The unknown word takes the place, because training replaces words by it too (token dropout), so the model is used to
//! texts with such gaps. All occurrences are replaced at once, because one of several equal words is hardly missed.
//!
//! Words that have no weight are marked: words outside the vocabulary, which the model reads as the unknown word, and
//! words that it does not read: stop words, and words behind the limits of the row or of the model.

pub(crate) mod show;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{self, IsTerminal, Read, Write};

use corpus::lines::LineReader;
use dataset::vocabulary::{PADDING, UNKNOWN};
use kernels::TokenRows;
use scoring::{Decision, Scoring};

use self::show::{View, show};
use super::tokenizer::Reading;
use super::{Counts, Error, Format, Parser, Refusal, Result, Tokenizer, check_answers, is_invalid, text_of};

/// Maximum tokens that the model reads for one text: each distinct word costs the text once more. Longer texts are
/// refused, because the time grows with the square of the length. This many take about 20 seconds on a core.
const TOKENS_MAX: usize = 1 << 26;
/// Maximum tokens of a batch.
const BATCH_TOKENS_MAX: usize = 1 << 18;

/// Options of explanations.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the input file, if one was named.
    pub file: Option<String>,
    /// Content of a line.
    pub format: Format,
    /// Maximum length of a line.
    pub line_bytes_max: usize,
    /// How scores become probabilities and labels.
    pub decision: Decision,
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

impl Options {
    /// Name of the input for messages.
    pub fn place(&self) -> String {
        self.file.clone().unwrap_or_else(|| "standard input".to_owned())
    }

    fn view(&self) -> View<'_> {
        View { file: self.file.as_deref(), names: &self.names, top: self.top, form: self.form }
    }
}

/// The explanation of a prediction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Explained {
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
pub(crate) struct Weighed {
    pub word: String,
    pub weight: f64,
    /// Number of occurrences that the model reads.
    pub times: usize,
}

/// Reads all lines of `input` and writes an explanation for each to `output`. The model must return as many outputs per
/// text as the scoring requires.
pub fn run<E: From<Error>>(
    input: impl Read,
    mut output: impl Write,
    tokenizer: &mut Tokenizer,
    options: &Options,
    mut model: impl FnMut(TokenRows<'_>) -> Result<Vec<Vec<f64>>, E>,
) -> Result<Counts, E> {
    let mut lines = LineReader::new(input, options.line_bytes_max);
    let mut parser = Parser::of(&options.format);
    let mut counts = Counts::default();
    loop {
        let line = lines.next_line();
        let Some(line) = line.map_err(|source| Error::Read { place: options.place(), source })? else {
            return Ok(counts);
        };
        counts.lines += 1;
        counts.invalid_utf8 += u64::from(is_invalid(line.content));
        let words = text_of(&mut parser, line.content).and_then(|text| tokenizer.words(&text));
        let explained = match words {
            Ok(words) => explain(words, options.decision, &mut model)?,
            Err(refusal) => Err(refusal),
        };
        match &explained {
            Ok(_) => counts.predicted += 1,
            Err(refusal) => *counts.refused.entry(refusal.name()).or_default() += 1,
        }
        let shown = show(counts.lines, explained, options.view());
        output.write_all(shown.as_bytes()).and_then(|()| output.flush()).map_err(Error::Write)?;
    }
}

/// The explanation of a text, or the reason why there is none.
fn explain<E: From<Error>>(
    text: Vec<(String, Reading)>,
    decision: Decision,
    model: &mut impl FnMut(TokenRows<'_>) -> Result<Vec<Vec<f64>>, E>,
) -> Result<Result<Explained, Refusal>, E> {
    let ids: Vec<i64> = text.iter().filter_map(|(_, reading)| reading.id().map(i64::from)).collect();
    let known = |id: &i64| *id != i64::from(UNKNOWN) && *id != i64::from(PADDING);
    let mut distinct: Vec<i64> = Vec::new();
    let mut times: HashMap<i64, usize> = HashMap::new();
    for &id in ids.iter().filter(|&id| known(id)) {
        let times = times.entry(id).or_default();
        if *times == 0 {
            distinct.push(id);
        }
        *times += 1;
    }
    if ids.len().saturating_mul(distinct.len() + 1) > TOKENS_MAX {
        return Ok(Err(Refusal::TooLong));
    }
    let scoring = decision.scoring();
    let outputs = occluded(&ids, &distinct, |texts| {
        let answers = model(texts)?;
        check_answers(texts, scoring, &answers)?;
        Ok::<_, E>(answers)
    })?;
    if !outputs.iter().flatten().all(|output| output.is_finite()) {
        return Ok(Err(Refusal::NotFinite));
    }
    let (whole, without) = outputs
        .split_first()
        .ok_or_else(|| Error::Internal { promise: "a model returned no results".to_owned() })?;
    let (label, score, probability) = match scoring {
        Scoring::Classes { .. } => {
            let probabilities = decision.probabilities(whole);
            (probabilities.predicted(), None, Some(f64::from(probabilities.largest())))
        }
        Scoring::Logit | Scoring::Rating { .. } | Scoring::FiveRatings { .. } => {
            let score = decision.score(whole);
            (u8::from(decision.is_positive(score)), Some(score), decision.probability(score))
        }
    };
    let of_label = value(scoring, whole, label);
    let mut words: Vec<Weighed> = distinct
        .iter()
        .zip(without)
        .map(|(id, outputs)| Weighed {
            word: word_of(&text, *id),
            weight: of_label - value(scoring, outputs, label),
            times: times[id],
        })
        .collect();
    words.sort_by(|one, other| other.weight.abs().total_cmp(&one.weight.abs()));
    Ok(Ok(Explained { label: label.into(), score, probability, words, text }))
}

fn word_of(text: &[(String, Reading)], id: i64) -> String {
    let found = text.iter().find(|(_, reading)| reading.id().map(i64::from) == Some(id));
    found.map_or_else(String::new, |(word, _)| word.clone())
}

/// The outputs for a text, then for the text without each of these tokens.
fn occluded<E>(
    ids: &[i64],
    distinct: &[i64],
    mut model: impl FnMut(TokenRows<'_>) -> Result<Vec<Vec<f64>>, E>,
) -> Result<Vec<Vec<f64>>, E> {
    let rows_max = (BATCH_TOKENS_MAX / ids.len().max(1)).max(1);
    let texts: Vec<Option<i64>> = std::iter::once(None).chain(distinct.iter().copied().map(Some)).collect();
    let mut outputs = Vec::with_capacity(texts.len());
    for batch in texts.chunks(rows_max) {
        let without = |&hidden: &Option<i64>| {
            ids.iter().map(move |&id| if Some(id) == hidden { i64::from(UNKNOWN) } else { id })
        };
        let tokens: Vec<i64> = batch.iter().flat_map(without).collect();
        let lengths = vec![ids.len() as i64; batch.len()];
        outputs.extend(model(TokenRows { tokens: &tokens, longest: ids.len(), lengths: &lengths })?);
    }
    Ok(outputs)
}

/// The log-odds of a label; for a rating, its distance in favour of the label.
fn value(scoring: Scoring, outputs: &[f64], label: u8) -> f64 {
    let sign = if label == 1 { 1.0 } else { -1.0 };
    match scoring {
        Scoring::Logit | Scoring::Rating { .. } => sign * outputs[0],
        Scoring::FiveRatings { positive_from } => {
            let (negative, positive) = outputs.split_at(usize::from(positive_from) - 1);
            sign * (log_sum(positive) - log_sum(negative))
        }
        Scoring::Classes { .. } => {
            let class = usize::from(label);
            let others: Vec<f64> = [&outputs[..class], &outputs[class + 1..]].concat();
            outputs[class] - log_sum(&others)
        }
    }
}

/// The logarithm of a sum of exponentials; 0 for no numbers, so that a label that all ratings have stays finite.
fn log_sum(numbers: &[f64]) -> f64 {
    if numbers.is_empty() {
        return 0.0;
    }
    let largest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + numbers.iter().map(|number| (number - largest).exp()).sum::<f64>().ln()
}
