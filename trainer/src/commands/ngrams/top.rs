//! The n-grams that speak most for each label, for the report.

use std::collections::HashMap;

use ::ngrams::{Block, Texts};
use runs::training::{FORMAT_VERSION, TopNgrams, TopOfLabel, WeighedNgram};

use crate::error::Result;
use crate::families::ngrams::evaluate::spell;
use crate::families::ngrams::{Classifier, Model};

/// N-grams per label.
const N_NGRAMS: usize = 20;
/// Labels with n-grams.
const N_LABELS: usize = 10;
/// Tokens of the texts in which n-grams of embeddings are searched.
const TOKENS_MAX: usize = 1 << 15;

/// The n-grams with the largest weights of each label. A linear model has a list of them. Of embeddings, whose n-grams are
/// hashed, they are searched in the first texts.
pub fn top(classifier: &Classifier, texts: &Texts) -> Result<TopNgrams> {
    let labels = classifier.labels();
    let of_label = |label: u32| -> Result<TopOfLabel> {
        let mut ngrams = match classifier.model() {
            Model::Linear(model) => {
                let named = model.stored().named.iter().filter(|named| named.label == label);
                named.map(|named| (named.ngram.clone(), f64::from(named.weight))).collect()
            }
            Model::FastText(_) | Model::Program(_) => found(classifier, texts, label)?,
        };
        ngrams.retain(|(_, weight)| *weight > 0.0);
        ngrams.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        ngrams.truncate(N_NGRAMS);
        let ngrams = ngrams.into_iter().map(|(ngram, weight)| WeighedNgram { ngram, weight }).collect();
        Ok(TopOfLabel { name: labels.name(label).to_owned(), ngrams })
    };
    let labels = labels.in_order().take(N_LABELS).map(of_label).collect::<Result<Vec<_>>>()?;
    Ok(TopNgrams { version: FORMAT_VERSION, labels })
}

/// The weight of each n-gram of the first texts: what it adds to the logit of a text that has nothing else.
fn found(classifier: &Classifier, texts: &Texts, label: u32) -> Result<Vec<(String, f64)>> {
    let mut weights: HashMap<String, f64> = HashMap::new();
    let (mut scratch, mut line, mut n_tokens) = (Block::default(), Vec::new(), 0);
    let reader = classifier.reader();
    for index in 0..texts.n_blocks() {
        for text in texts.block(index, &mut scratch)?.texts() {
            if n_tokens > TOKENS_MAX {
                return Ok(weights.into_iter().collect());
            }
            n_tokens += text.tokens.len();
            spell(&texts.dictionary, text, &mut line);
            let times = occurrences(classifier.ngrams(), &line);
            let n_rows = times.values().sum::<usize>() as f64;
            for (ngram, weight) in reader.contributions(&line, label) {
                let n = times.get(&ngram).copied().unwrap_or(1) as f64;
                weights.insert(ngram, weight * n_rows / n);
            }
        }
    }
    Ok(weights.into_iter().collect())
}

/// The n-grams of words between spaces, with the number of occurrences of each.
fn occurrences(longest: usize, line: &[u8]) -> HashMap<String, usize> {
    let text = String::from_utf8_lossy(line);
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let mut times = HashMap::new();
    for length in 1..=longest {
        words.windows(length).for_each(|ngram| *times.entry(ngram.join(" ")).or_default() += 1);
    }
    times
}
