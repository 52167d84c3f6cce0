//! Explains a prediction of a model of the fastText program.

use std::collections::HashMap;

use crate::features::FeatureRows;
use crate::files::bin::{BinLoss, BinModel};
use crate::words::{LABEL_PREFIX, Words};

/// What each distinct n-gram of a text adds to the logit of a label, less the mean logit of the other labels if
/// probabilities sum to 1. A model with hierarchical softmax has no logit per label: there is no explanation.
pub fn explain(model: &BinModel, text: &[u8], label: u32) -> Vec<(String, f64)> {
    let entries = model.entries();
    let n_labels = entries.n_labels();
    if model.args().loss == BinLoss::HierarchicalSoftmax {
        return Vec::new();
    }
    let mut words: Vec<Vec<u8>> = Vec::new();
    Words::Spaces.each(text, &mut Vec::new(), |word| {
        if !word.starts_with(LABEL_PREFIX) {
            words.push(word.to_vec());
        }
    });
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let n_words = entries.dictionary().n_words() as u32;
    let pruned: Option<HashMap<u32, u32>> = entries.pruned().map(|pruned| pruned.iter().copied().collect());
    let mut spans = Vec::new();
    let rows = FeatureRows::new(model.args().features(), entries.dictionary());
    rows.each_of_words(entries.dictionary(), &words, |row, span| {
        let bucket = row.checked_sub(n_words);
        let row = match (bucket, &pruned) {
            (Some(bucket), Some(pruned)) => pruned.get(&bucket).map(|row| n_words + row),
            _ => Some(row),
        };
        spans.extend(row.map(|row| (row, span)));
    });
    let share = 1.0 / spans.len().max(1) as f64;
    let of_others =
        if model.args().loss == BinLoss::Softmax && n_labels > 1 { 1.0 / (n_labels - 1) as f64 } else { 0.0 };
    let mut found: Vec<(String, f64)> = Vec::new();
    let mut places = HashMap::new();
    let mut vector = vec![0.0; model.args().dim];
    for (row, span) in spans {
        vector.fill(0.0);
        model.input().add_row(row as usize, &mut vector);
        let logit = |label: usize| f64::from(model.output().dot_row(label, &vector));
        let others = if of_others > 0.0 {
            (0..n_labels).filter(|&other| other != label as usize).map(logit).sum()
        } else {
            0.0
        };
        let ngram = String::from_utf8_lossy(&words[span].join(&b' ')).into_owned();
        let place = *places.entry(ngram.clone()).or_insert(found.len());
        if place == found.len() {
            found.push((ngram, 0.0));
        }
        found[place].1 += share * (logit(label as usize) - of_others * others);
    }
    found
}
