//! Explains the predictions of an n-gram model: converts each line of the input into the n-grams that spoke for the
//! predicted label, and those that spoke against it.
//!
//! The weight of an n-gram is its part of the score of the predicted label. All models compute this score as a sum over
//! n-grams, so the weights are exact. For the linear model it is the score of the label's classifier. For embeddings it is
//! the logit of the label, less the mean logit of the other labels if probabilities sum to 1; with two labels, these are
//! the log-odds. With hierarchical softmax it is the sum of the log-odds along the path to the label, whose probability is the
//! product of the probabilities of these odds. The occurrences of an n-gram are added, also that at the end of a text, and so are the character
//! n-grams of a word.

use std::collections::{HashMap, HashSet};

use classifiers::{END, Reader};
use training::answers::Refusal;
use training::answers::explain::{Explained, Reading, Weighed};

/// The explanation of a text, or the reason why there is none.
pub(crate) fn explain(reader: &mut Reader<'_>, text: &[u8]) -> Result<Explained, Refusal> {
    let probabilities = reader.of_known(text).ok_or(Refusal::OnlyUnknown)?.to_vec();
    if !probabilities.iter().all(|probability| probability.is_finite()) {
        return Err(Refusal::NotFinite);
    }
    let labels = reader.labels();
    let predicted = labels.predicted(&probabilities);
    let calibrated = labels.calibrated(&probabilities);
    let (score, probability) = match labels.n_labels() {
        2 => {
            let second = labels.in_order().nth(1).unwrap_or_default();
            (Some(labels.outputs(&probabilities)[0] as f32), calibrated[second as usize])
        }
        _ => (None, calibrated[predicted as usize]),
    };
    let label = labels.place(predicted);
    let contributions = reader.contributions(text, predicted);
    let text = marked(reader, text, &contributions);
    let words = weighed(distinct(contributions), &text);
    Ok(Explained { label, score, probability: Some(f64::from(probability)), words, text })
}

/// The parts of distinct n-grams. One at the end of a text is the same n-gram as that within it.
fn distinct(contributions: Vec<(String, f64)>) -> Vec<(String, f64)> {
    let end = format!(" {}", String::from_utf8_lossy(END));
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut all: Vec<(String, f64)> = Vec::new();
    for (ngram, weight) in contributions {
        let ngram = ngram.strip_suffix(&end).unwrap_or(&ngram);
        match places.get(ngram) {
            Some(&place) => all[place].1 += weight,
            None => {
                places.insert(ngram.to_owned(), all.len());
                all.push((ngram.to_owned(), weight));
            }
        }
    }
    all
}

/// The n-grams, the largest weight first, with the number of their occurrences. Equal weights are in the order of the text.
fn weighed(contributions: Vec<(String, f64)>, text: &[(String, Reading)]) -> Vec<Weighed> {
    let words: Vec<&str> = text.iter().map(|(word, _)| word.as_str()).collect();
    let times = |ngram: &str| {
        let parts: Vec<&str> = ngram.split(' ').collect();
        words.windows(parts.len()).filter(|words| **words == parts).count().max(1)
    };
    let weighed = |(word, weight): (String, f64)| Weighed { times: times(&word), word, weight };
    let mut words: Vec<Weighed> = contributions.into_iter().map(weighed).collect();
    words.sort_by(|one, other| other.weight.abs().total_cmp(&one.weight.abs()));
    words
}

/// The words of a text, and whether the model has a weight for them.
fn marked(reader: &Reader<'_>, text: &[u8], contributions: &[(String, f64)]) -> Vec<(String, Reading)> {
    let known: HashSet<&str> = contributions.iter().map(|(ngram, _)| ngram.as_str()).collect();
    let mut words = Vec::new();
    reader.each_word(text, |word| {
        let word = String::from_utf8_lossy(word).into_owned();
        let reading = if known.contains(word.as_str()) { Reading::Id(0) } else { Reading::Unknown };
        words.push((word, reading));
    });
    words
}
