//! Words of the n-grams with the greatest and the least weights.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::keys::{self, Ngram};
use super::model::{Outputs, Stored};
use super::parallel;
use super::rows::{Rows, row_of_hash};
use crate::error::Result;
use crate::texts::{Block, Texts};

/// An n-gram with its weight for a label.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Number of the label.
    pub label: u32,
    /// Words of the n-gram. The words of a pair are separated by ` … `.
    pub ngram: String,
    /// Positive if it speaks for the label.
    pub weight: f32,
    /// Number of its occurrences. Other n-grams of the same hash are not counted.
    pub count: u64,
}

/// The words of an n-gram of a text; `None` if a word is unknown.
pub(super) fn name<'a>(ngram: Ngram, word: impl Fn(usize) -> Option<&'a [u8]>) -> Option<String> {
    let (separator, indices) = if ngram.is_pair {
        (" … ", vec![ngram.first, ngram.last])
    } else {
        (" ", (ngram.first..=ngram.last).collect())
    };
    let words: Option<Vec<_>> =
        indices.into_iter().map(|index| word(index).map(String::from_utf8_lossy)).collect();
    words.map(|words| words.join(separator))
}

/// The `n` n-grams with the greatest and the `n` with the least weight of each classifier, by descending weight. Of
/// several n-grams with the same hash the most frequent one is named.
pub(super) fn strongest(texts: &Texts, stored: &Stored, rows: &Rows, n: usize) -> Result<Vec<Named>> {
    let n_classifiers = stored.biases.len();
    let mut chosen: Vec<Vec<u32>> = Vec::new();
    for classifier in 0..n_classifiers {
        let weight = |row: u32| stored.weights[row as usize * n_classifiers + classifier];
        let mut all: Vec<u32> = (0..rows.n_rows() as u32).filter(|&row| weight(row) != 0.0).collect();
        let descending = |a: &u32, b: &u32| weight(*b).total_cmp(&weight(*a)).then(a.cmp(b));
        if n > 0 && all.len() > 2 * n {
            all.select_nth_unstable_by(n - 1, descending);
            let rest = all.len() - n;
            all[n..].select_nth_unstable_by(rest - n, descending);
            all.drain(n..rest);
        }
        all.truncate(2 * n);
        all.sort_unstable_by(descending);
        chosen.push(all);
    }
    let names = names(texts, stored, rows, &chosen)?;
    let mut named = Vec::new();
    for (classifier, rows) in (0..).zip(&chosen) {
        let of_row = |&row: &u32| {
            let (ngram, count) = names.get(&row)?;
            let weight = stored.weights[row as usize * n_classifiers + classifier as usize];
            Some(Named { label: classifier, ngram: ngram.clone(), weight, count: *count })
        };
        named.extend(rows.iter().filter_map(of_row));
    }
    if stored.outputs == Outputs::Two {
        let others =
            named.iter().rev().map(|named| Named { label: 1, weight: -named.weight, ..named.clone() });
        named.extend(others.collect::<Vec<_>>());
    }
    Ok(named)
}

/// The most frequent n-gram of each chosen row, and its count.
fn names(
    texts: &Texts,
    stored: &Stored,
    rows: &Rows,
    chosen: &[Vec<u32>],
) -> Result<HashMap<u32, (String, u64)>> {
    let settings = &stored.settings;
    let mut is_chosen = vec![false; rows.n_rows()];
    chosen.iter().flatten().for_each(|&row| is_chosen[row as usize] = true);
    type Counts = HashMap<u32, BTreeMap<String, u64>>;
    struct State {
        counts: Counts,
        scratch: Block,
        hashes: Vec<u32>,
    }
    let state = || State { counts: HashMap::new(), scratch: Block::default(), hashes: Vec::new() };
    let dictionary = &texts.dictionary;
    let (read, states) = parallel::map_with(settings.threads, texts.n_blocks(), state, |state, index| {
        let State { counts, scratch, hashes } = state;
        let mut words = Vec::new();
        for text in texts.block(index, scratch)?.texts() {
            words.clear();
            words.extend(text.words().map(std::result::Result::ok));
            let mut count = |row: Option<u32>, ngram: Ngram| {
                let Some(row) = row.filter(|&row| is_chosen[row as usize]) else { return };
                if let Some(name) = name(ngram, |index| words[index].map(|word| dictionary.name(word))) {
                    *counts.entry(row).or_default().entry(name).or_default() += 1;
                }
            };
            match rows {
                Rows::Hashed { bits, words, .. } => {
                    keys::word_hashes(text, dictionary, hashes);
                    keys::each_hash(settings, *bits, hashes, |hash, ngram| {
                        count(row_of_hash(words, hash), ngram);
                    });
                }
                Rows::Exact { rows } => {
                    keys::each_exact(settings, &words, |key, ngram| count(rows.get(&key).copied(), ngram));
                }
            }
        }
        Ok(())
    });
    read.into_iter().collect::<Result<()>>()?;
    let mut all = Counts::new();
    for (row, names) in states.into_iter().flat_map(|state| state.counts) {
        let sums = all.entry(row).or_default();
        names.into_iter().for_each(|(name, count)| *sums.entry(name).or_default() += count);
    }
    let most = |(row, names): (u32, BTreeMap<String, u64>)| {
        let most = names.into_iter().min_by_key(|(_, count)| Reverse(*count))?;
        Some((row, most))
    };
    Ok(all.into_iter().filter_map(most).collect())
}
