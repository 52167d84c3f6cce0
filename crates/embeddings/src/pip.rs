//! The distance of two embeddings by their inner products: the PIP loss ‖E₁E₁ᵀ − E₂E₂ᵀ‖ of Yin and Shen 2018, "On the
//! dimensionality of word embedding", in the Frobenius norm, over the words that both have.
//!
//! It does not change if an embedding is rotated. The `n × n` products are not formed:
//!
//! ```text
//! ‖E₁E₁ᵀ − E₂E₂ᵀ‖² = ‖E₁ᵀE₁‖² + ‖E₂ᵀE₂‖² − 2‖E₁ᵀE₂‖²
//! ```
//!
//! In 64-bit floats, the sum loses the digits that its terms have in common: of nearly equal embeddings, all digits. If
//! the sum is less than 10⁻⁵ of its terms, the loss is therefore computed without squares. With `[E₁ E₂] = Q [R₁ R₂]`,
//! it is ‖R₁R₁ᵀ − R₂R₂ᵀ‖, because Q is orthogonal; its error is about 10⁻¹⁶ of ‖E₁E₁ᵀ‖.

use nalgebra::DMatrix;
use program::random::Random;
use serde::Serialize;

use crate::embedding::Embedding;
use crate::error::{Error, Result};

/// Below this share of the terms, the sum of squares has less than ten correct digits.
const CANCELLED: f64 = 1e-5;
/// The first part of the key of random numbers.
const PURPOSE: u64 = u64::from_le_bytes(*b"pip loss");

/// The distance of an embedding to a reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pip {
    /// Number of words that both have.
    pub words: usize,
    /// With the vectors as they are.
    pub raw: Losses,
    /// With vectors of length 1.
    pub unit: Losses,
}

/// PIP losses against one reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Losses {
    /// Of the embedding.
    pub loss: f64,
    /// Of an embedding whose values are all 0: the norm of the reference's products.
    pub zero: f64,
    /// Of an embedding of the same shape with random values of the same mean square.
    pub random: f64,
}

/// Compares an embedding with another one. `seed` determines the random embedding.
///
/// # Errors
/// If they have no word in common.
pub fn between(embedding: &Embedding, reference: &Embedding, seed: u64) -> Result<Pip> {
    let pairs = (0u32..)
        .zip(embedding.words.words().iter())
        .filter(|&(word, name)| embedding.words.word(name) == Some(word))
        .filter_map(|(word, name)| Some((word, reference.words.word(name)?)));
    let (ours, theirs): (Vec<u32>, Vec<u32>) = pairs.unzip();
    let reference = matrix(&theirs, reference.dim, |word| reference.vector(word));
    compare(embedding, &ours, &reference, seed)
}

/// Compares the vectors of these words with the rows of a matrix `[n, D]`.
///
/// # Errors
/// If there are no words.
pub fn compare(embedding: &Embedding, words: &[u32], reference: &DMatrix<f64>, seed: u64) -> Result<Pip> {
    if words.is_empty() {
        return Err(Error::NothingInCommon);
    }
    let vectors = matrix(words, embedding.dim, |word| embedding.vector(word));
    let raw = losses(&vectors, reference, seed);
    let unit = losses(&with_unit_rows(vectors), &with_unit_rows(reference.clone()), seed);
    Ok(Pip { words: words.len(), raw, unit })
}

/// The PIP loss of two matrices with one row per word.
///
/// # Panics
/// If they have different numbers of rows.
pub fn loss(first: &DMatrix<f64>, second: &DMatrix<f64>) -> f64 {
    assert_eq!(first.nrows(), second.nrows(), "one row per word");
    if first == second {
        return 0.0;
    }
    let transposed = first.transpose();
    let cross = (&transposed * second).norm_squared();
    let terms = (&transposed * first).norm_squared() + (second.transpose() * second).norm_squared();
    let squared = terms - 2.0 * cross;
    if squared > CANCELLED * terms { squared.sqrt() } else { loss_by_factors(first, second) }
}

/// The loss from the triangular factor of both matrices.
fn loss_by_factors(first: &DMatrix<f64>, second: &DMatrix<f64>) -> f64 {
    let (n_words, columns) = (first.nrows(), first.ncols());
    let mut both = DMatrix::zeros(n_words, columns + second.ncols());
    both.columns_mut(0, columns).copy_from(first);
    both.columns_mut(columns, second.ncols()).copy_from(second);
    let factor = both.qr().r();
    let product = |from: usize, n: usize| {
        let part = factor.columns(from, n);
        part * part.transpose()
    };
    (product(0, columns) - product(columns, second.ncols())).norm()
}

fn losses(vectors: &DMatrix<f64>, reference: &DMatrix<f64>, seed: u64) -> Losses {
    let random = random_like(vectors, seed);
    Losses {
        loss: loss(vectors, reference),
        zero: (reference.transpose() * reference).norm(),
        random: loss(&random, reference),
    }
}

/// Normal values of the same mean square, by the transform of Box and Muller.
fn random_like(vectors: &DMatrix<f64>, seed: u64) -> DMatrix<f64> {
    let scale = (vectors.norm_squared() / vectors.len() as f64).sqrt();
    let mut random = Random::of(&[PURPOSE, seed]);
    DMatrix::from_fn(vectors.nrows(), vectors.ncols(), |_, _| {
        // From 0 to 1, without 0.
        let [first, second] = [0; 2].map(|_| ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64);
        scale * (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos()
    })
}

fn with_unit_rows(mut vectors: DMatrix<f64>) -> DMatrix<f64> {
    for mut row in vectors.row_iter_mut() {
        let norm = row.norm();
        if norm > 0.0 {
            row /= norm;
        }
    }
    vectors
}

fn matrix<'a>(words: &[u32], dim: usize, vector: impl Fn(u32) -> &'a [f32]) -> DMatrix<f64> {
    let mut matrix = DMatrix::zeros(words.len(), dim);
    for (row, &word) in words.iter().enumerate() {
        for (column, &value) in vector(word).iter().enumerate() {
            matrix[(row, column)] = f64::from(value);
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{names, random};

    fn matrix_of(n: usize, dim: usize, seed: u64) -> DMatrix<f64> {
        let embedding = random(n, dim, seed);
        matrix(&(0..n as u32).collect::<Vec<_>>(), dim, |word| embedding.vector(word))
    }

    /// By the products of all pairs of words.
    fn explicit(first: &DMatrix<f64>, second: &DMatrix<f64>) -> f64 {
        (first * first.transpose() - second * second.transpose()).norm()
    }

    fn close(found: f64, expected: f64, relative: f64) {
        assert!((found - expected).abs() <= relative * expected, "{found} {expected}");
    }

    #[test]
    fn the_loss_is_that_of_all_pairs_of_words() {
        for (n, first, second) in [(1, 1, 1), (60, 8, 8), (200, 20, 7), (10, 15, 12)] {
            let (first, second) = (matrix_of(n, first, 1), matrix_of(n, second, 2));
            close(loss(&first, &second), explicit(&first, &second), 1e-10);
            close(loss_by_factors(&first, &second), explicit(&first, &second), 1e-10);
        }
    }

    #[test]
    fn nearly_equal_embeddings_have_a_loss_of_ten_digits() {
        let first = matrix_of(300, 10, 1);
        for power in [3, 5, 7] {
            let second = &first + matrix_of(300, 10, 2) * 10f64.powi(-power);
            // The explicit differences of products lose as many digits as the sum of factors.
            close(loss(&first, &second), explicit(&first, &second), 1e-14 * 10f64.powi(power + 1));
        }
    }

    #[test]
    fn a_rotation_does_not_change_the_loss() {
        let (first, second) = (matrix_of(100, 12, 1), matrix_of(100, 12, 2));
        let rotation = matrix_of(12, 12, 3).qr().q();
        close(loss(&(&first * &rotation), &second), loss(&first, &second), 1e-12);
        assert!(loss(&(&first * &rotation), &first) < 1e-13 * explicit(&first, &(&first * 0.0)));
    }

    #[test]
    fn an_embedding_has_the_loss_0_against_itself() {
        let embedding = random(50, 6, 4);
        let found = between(&embedding, &embedding, 1).unwrap();
        assert_eq!((found.words, found.raw.loss, found.unit.loss), (50, 0.0, 0.0));
        let products = matrix_of(50, 6, 4);
        close(found.raw.zero, explicit(&products, &(&products * 0.0)), 1e-12);
        assert!(found.raw.random > found.raw.zero);
    }

    #[test]
    fn only_words_of_both_are_compared() {
        let first = Embedding::new(names(&["a", "b", "c"]), None, 1, vec![1.0, 2.0, 3.0]);
        let second = Embedding::new(names(&["c", "x", "a"]), None, 2, vec![3.0, 0.0, 7.0, 7.0, 0.0, 2.0]);
        let found = between(&first, &second, 1).unwrap();
        // a: 1 against (0, 2); c: 3 against (3, 0).
        let expected = explicit(
            &DMatrix::from_row_slice(2, 1, &[1.0, 3.0]),
            &DMatrix::from_row_slice(2, 2, &[0.0, 2.0, 3.0, 0.0]),
        );
        assert_eq!(found.words, 2);
        close(found.raw.loss, expected, 1e-12);
        let other = Embedding::new(names(&["x"]), None, 1, vec![1.0]);
        assert_eq!(
            between(&first, &other, 1).unwrap_err().to_string(),
            "the vocabularies have no word in common; compare embeddings of the same language and case"
        );
    }
}
