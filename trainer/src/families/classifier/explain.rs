//! Explains predictions of a classifier by occlusion.
//!
//! The weight of a word is the log-odds of the predicted label minus the log-odds after every occurrence of the word is
//! replaced by the unknown word. A positive weight raises the score of the label. For a model that predicts the rating as a
//! number, the weight is a difference of ratings. Weights do not depend on calibration and threshold. They do not add up
//! to the log-odds: two words can say the same, and then neither is missed.
//!
//! The unknown word takes the place, because training replaces words by it too (token dropout), so the model is used to
//! texts with such gaps. All occurrences are replaced at once, because one of several equal words is hardly missed.
//!
//! Words that have no weight are marked: words outside the vocabulary, which the model reads as the unknown word, and
//! words that it does not read: stop words, and words behind the limits of the row or of the model.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use dataset::vocabulary::{PADDING, UNKNOWN};
use kernels::TokenRows;
use program::exit::Failed;
use scoring::{Decision, Scoring};
use training::answers::explain::{Explained, Reading, Weighed};
use training::answers::{AnswersError, Refusal};

use super::predict::{Tokenizer, check_answers};

/// Maximum tokens that the model reads for one text: each distinct word costs the text once more. Longer texts are
/// refused, because the time grows with the square of the length. This many take about 20 seconds on a core.
const TOKENS_MAX: usize = 1 << 26;
/// Maximum tokens of a batch.
const BATCH_TOKENS_MAX: usize = 1 << 18;

/// The explanation of a text, or the reason why there is none. The model must return as many outputs per text as the
/// scoring requires.
pub(crate) fn explain<E: From<AnswersError>>(
    text: &[u8],
    tokenizer: &mut Tokenizer,
    decision: Decision,
    mut model: impl FnMut(TokenRows<'_>) -> Result<Vec<Vec<f64>>, E>,
) -> Result<Result<Explained, Refusal>, E> {
    let text = match tokenizer.words(&String::from_utf8_lossy(text)) {
        Ok(words) => words,
        Err(refusal) => return Ok(Err(refusal)),
    };
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
        .ok_or_else(|| AnswersError::from(Failed::defect("a model returned no results")))?;
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
