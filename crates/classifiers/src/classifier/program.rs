//! Explains a prediction of a model of the fastText program.

use std::collections::HashMap;

use crate::features::FeatureRows;
use crate::files::bin::{BinLoss, BinModel};
use crate::words::{LABEL_PREFIX, Words};

/// What each distinct n-gram of a text adds to the logit of a label, less the mean logit of the other labels if
/// probabilities sum to 1. With hierarchical softmax, what it adds to the sum of the log-odds of the inner nodes above the label,
/// each for the side of the label.
pub fn explain(model: &BinModel, text: &[u8], label: u32) -> Vec<(String, f64)> {
    let entries = model.entries();
    let n_labels = entries.n_labels();
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
    let paths = model.paths();
    // The rows of the output matrix whose products are summed, and their factors.
    let directions: Vec<(usize, f64)> = match &paths {
        Some(paths) => {
            let of_node =
                |&(inner, is_right): &(u32, bool)| (inner as usize, if is_right { 1.0 } else { -1.0 });
            paths.of(label).iter().map(of_node).collect()
        }
        None if model.args().loss == BinLoss::Softmax && n_labels > 1 => {
            let of_others = -1.0 / (n_labels - 1) as f64;
            let factor = |of: usize| if of == label as usize { 1.0 } else { of_others };
            (0..n_labels).map(|of| (of, factor(of))).collect()
        }
        None => vec![(label as usize, 1.0)],
    };
    let mut found: Vec<(String, f64)> = Vec::new();
    let mut places = HashMap::new();
    let mut vector = vec![0.0; model.args().dim];
    for (row, span) in spans {
        vector.fill(0.0);
        model.input().add_row(row as usize, &mut vector);
        let product =
            |&(row, factor): &(usize, f64)| factor * f64::from(model.output().dot_row(row, &vector));
        let ngram = String::from_utf8_lossy(&words[span].join(&b' ')).into_owned();
        let place = *places.entry(ngram.clone()).or_insert(found.len());
        if place == found.len() {
            found.push((ngram, 0.0));
        }
        found[place].1 += share * directions.iter().map(product).sum::<f64>();
    }
    found
}
