//! How well cosines order pairs of words as people do: files of word similarity, and Spearman's rank correlation.
//!
//! ```text
//! tiger   cat       7.35
//! book    paper     7.46
//! ```
//!
//! Each line has two words and a score, separated by white space. Words are looked up as they are, then in lower case.

use std::borrow::Cow;
use std::path::Path;

use durable::read_bounded;
use serde::Serialize;

use crate::embedding::Embedding;
use crate::error::{Error, Result};

const FILE_BYTES_MAX: u64 = 256 << 20;
const REMEDY: &str = "pass a file of word similarity, such as WordSim-353";

/// The result for a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Similarity {
    /// The file as passed.
    pub file: String,
    /// Spearman's rank correlation of the cosines and the scores of the pairs found; none if it is undefined.
    pub spearman: Option<f64>,
    /// Number of pairs.
    pub pairs: usize,
    /// Number of pairs whose words both have a vector.
    pub found: usize,
}

/// The pairs of a file.
#[derive(Clone, Debug)]
pub struct Pairs {
    file: String,
    pairs: Vec<([Vec<u8>; 2], f64)>,
}

impl Pairs {
    /// Reads a file.
    ///
    /// # Errors
    /// If a line is not a pair with a score.
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self {
            file: path.display().to_string(),
            pairs: parse(path, &read_bounded(path, FILE_BYTES_MAX)?)?,
        })
    }

    /// Compares the cosines of the vectors that `find` returns with the scores.
    pub fn compare<'a>(&self, find: impl Fn(&[u8]) -> Option<Cow<'a, [f32]>>) -> Similarity {
        let (mut cosines, mut scores) = (Vec::new(), Vec::new());
        for ([first, second], score) in &self.pairs {
            if let (Some(first), Some(second)) = (find(first), find(second)) {
                cosines.push(cosine(&first, &second));
                scores.push(*score);
            }
        }
        let spearman = spearman(&cosines, &scores);
        Similarity { file: self.file.clone(), spearman, pairs: self.pairs.len(), found: scores.len() }
    }
}

/// Compares the cosines of an embedding with the scores of a file.
///
/// # Errors
/// If a line is not a pair with a score.
pub fn similarity(embedding: &Embedding, path: &Path) -> Result<Similarity> {
    Ok(Pairs::read(path)?.compare(|word| embedding.find(word)))
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<([Vec<u8>; 2], f64)>> {
    let mut pairs = Vec::new();
    for (line, number) in bytes.split(|&byte| byte == b'\n').zip(1..) {
        let fields: Vec<&[u8]> =
            line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).collect();
        let (first, second, score) = match fields[..] {
            [] => continue,
            [first, second, score] => (first, second, number_of(score)),
            _ => (line, line, None),
        };
        let Some(score) = score else {
            let line = line.trim_ascii_end();
            return Err(Error::line(path, number, line, "two words and a score", REMEDY));
        };
        pairs.push(([first.to_vec(), second.to_vec()], score));
    }
    Ok(pairs)
}

fn number_of(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.parse().ok().filter(|score: &f64| score.is_finite())
}

/// The cosine of two vectors; 0 if one is zero.
pub(crate) fn cosine(first: &[f32], second: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    let norms = (dot(first, first) * dot(second, second)).sqrt();
    if norms > 0.0 { dot(first, second) / norms } else { 0.0 }
}

/// Spearman's rank correlation; none if there are less than two pairs or one of the lists is constant.
pub fn spearman(first: &[f64], second: &[f64]) -> Option<f64> {
    let (first, second) = (ranks(first), ranks(second));
    let mean = (first.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let norms = (product(&first, &first) * product(&second, &second)).sqrt();
    (norms > 0.0).then(|| product(&first, &second) / norms)
}

/// Ranks from 1. Equal values have the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = before as f64 + (equal.len() as f64 + 1.0) / 2.0;
        equal.iter().for_each(|&at| ranks[at] = rank);
        before += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::names;

    fn of(text: &str) -> Result<Similarity> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pairs.txt");
        std::fs::write(&path, text).unwrap();
        let vectors = vec![1.0, 0.0, 1.0, 0.1, 1.0, 1.0, 0.0, 1.0];
        similarity(&Embedding::new(names(&["a", "b", "c", "d"]), None, 2, vectors), &path)
    }

    #[test]
    fn equal_values_have_the_mean_of_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0, 3.0]), [4.0, 1.0, 4.0, 2.0, 4.0]);
    }

    #[test]
    fn spearman_is_that_of_scipy() {
        // scipy.stats.spearmanr([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]), and with ties in both lists.
        let found = spearman(&[1.0, 2.0, 3.0, 4.0, 5.0], &[5.0, 6.0, 7.0, 8.0, 7.0]).unwrap();
        assert!((found - 0.820_782_681_668_123_3).abs() < 1e-15, "{found}");
        let found = spearman(&[1.0, 1.0, 2.0, 3.0], &[2.0, 1.0, 2.0, 9.0]).unwrap();
        assert!((found - 0.833_333_333_333_333_4).abs() < 1e-15, "{found}");
        assert_eq!(spearman(&[1.0], &[2.0]), None);
        assert_eq!(spearman(&[1.0, 1.0], &[2.0, 3.0]), None);
    }

    #[test]
    fn pairs_found_are_compared_by_cosine() {
        let found = of("A\tb\t9\r\na c 5\n\na d 1.5\nx y 3\n").unwrap();
        assert_eq!((found.spearman, found.pairs, found.found), (Some(1.0), 4, 3));
        let found = of("a b 1\na c 5\na d 9").unwrap();
        assert_eq!(found.spearman, Some(-1.0));
        assert_eq!(of("x y 1").unwrap().spearman, None);
    }

    #[test]
    fn a_line_without_a_score_is_refused() {
        for (text, line, found) in
            [("a b 1\na b\n", 2, "a b"), ("a b x", 1, "a b x"), ("a b nan", 1, "a b nan")]
        {
            let told = of(text).unwrap_err().to_string();
            let expected =
                format!("pairs.txt: line {line} is \"{found}\", expected two words and a score; pass");
            assert!(told.contains(&expected), "{told}");
        }
    }
}
