//! Words of the n-grams with the greatest and the least weights.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::keys::{self, Ngram};
use super::matrix::NgramMatrix;
use super::model::{Named, Outputs, StoredModel};
use super::parallel;
use super::row_index::{RowIndex, row_of_hash};
use super::settings::LinearSettings;
use crate::error::Result;
use crate::texts::{Block, TextRef, Texts};

/// The `n` n-grams with the greatest and the `n` with the least weight of each classifier, by descending weight. Of
/// several n-grams with the same hash the one that is most frequent in the first texts is named.
pub(super) fn strongest(
    texts: &Texts,
    matrix: &NgramMatrix,
    stored: &StoredModel,
    rows: &RowIndex,
    n: usize,
) -> Result<Vec<Named>> {
    if n == 0 {
        return Ok(Vec::new());
    }
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
    let names = names(texts, matrix, stored, rows, &chosen)?;
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

/// Number of texts in which the words of an n-gram are looked up.
const TEXTS: usize = 16;

/// The most frequent n-gram of each chosen row in its first texts, and the number of all texts of the row.
fn names(
    texts: &Texts,
    matrix: &NgramMatrix,
    stored: &StoredModel,
    rows: &RowIndex,
    chosen: &[Vec<u32>],
) -> Result<HashMap<u32, (String, u64)>> {
    let settings = &stored.settings;
    let mut is_chosen = vec![false; rows.n_rows()];
    chosen.iter().flatten().for_each(|&row| is_chosen[row as usize] = true);
    let found = parallel::map(settings.threads, matrix.parts.len(), |part| {
        let mut found: BTreeMap<u32, (u64, Vec<usize>)> = BTreeMap::new();
        for (index, (_, text)) in matrix.part(part).enumerate() {
            for &row in text.rows.iter().filter(|&&row| is_chosen[row as usize]) {
                let (count, firsts) = found.entry(row).or_default();
                *count += 1;
                if firsts.len() < TEXTS {
                    firsts.push(index);
                }
            }
        }
        found
    });
    let mut all: HashMap<u32, (u64, usize, BTreeMap<String, u64>)> = HashMap::new();
    let (mut scratch, mut hashes) = (Block::default(), Vec::new());
    for (part, found) in found.into_iter().enumerate() {
        let mut rows_of: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (row, (count, firsts)) in found {
            let (sum, n_texts, _) = all.entry(row).or_default();
            *sum += count;
            for index in firsts.into_iter().take(TEXTS - *n_texts) {
                *n_texts += 1;
                rows_of.entry(index).or_default().push(row);
            }
        }
        if rows_of.is_empty() {
            continue;
        }
        let block = texts.block(part, &mut scratch)?;
        for (index, wanted) in rows_of {
            each_name(block.text(index), texts, settings, rows, &mut hashes, |row, name| {
                if let Some((_, _, names)) = all.get_mut(&row).filter(|_| wanted.contains(&row)) {
                    *names.entry(name()?).or_default() += 1;
                }
                Some(())
            });
        }
    }
    let most = |(row, (count, _, names)): (u32, (u64, usize, BTreeMap<String, u64>))| {
        let (name, _) = names.into_iter().min_by_key(|(_, count)| Reverse(*count))?;
        Some((row, (name, count)))
    };
    Ok(all.into_iter().filter_map(most).collect())
}

/// Calls `each` with the row of each n-gram of a text and a function that returns its name.
fn each_name(
    text: TextRef<'_>,
    texts: &Texts,
    settings: &LinearSettings,
    rows: &RowIndex,
    hashes: &mut Vec<u32>,
    mut each: impl FnMut(u32, &dyn Fn() -> Option<String>) -> Option<()>,
) {
    let words: Vec<Option<u32>> = text.words().map(std::result::Result::ok).collect();
    let word = |index: usize| words[index].map(|word| texts.dictionary.name(word));
    let mut found = |row: Option<u32>, ngram: Ngram| {
        if let Some(row) = row {
            each(row, &|| ngram.name(word));
        }
    };
    match rows {
        RowIndex::Hashed { bits, words, .. } => {
            keys::word_hashes(text, &texts.dictionary, hashes);
            keys::each_hash(settings, *bits, hashes, |hash, ngram| found(row_of_hash(words, hash), ngram));
        }
        RowIndex::Exact { rows } => {
            keys::each_exact(settings, &words, |key, ngram| found(rows.get(&key).copied(), ngram));
        }
    }
}
