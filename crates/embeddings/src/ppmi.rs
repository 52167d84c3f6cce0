//! The shifted positive PMI matrix of a text, and its factor: the reference of an embedding (Levy and Goldberg 2014,
//! "Neural word embedding as implicit matrix factorization").
//!
//! ```text
//! C_ij      how often word j is within the window of word i
//! PMI_ij    ln(C_ij · ΣC / (C_i· · C_·j))
//! PPMI_ij   max(0, PMI_ij − ln k), with the shift k: the number of negatives of a training
//! E         U_d √Σ_d, from the d largest singular values of PPMI
//! ```
//!
//! Words outside of the vocabulary are removed before windows are formed, as word2vec does. All pairs within a window
//! count 1, and no word is sampled away.
//!
//! The matrix is symmetric, so its singular vectors are eigenvectors. They are found in the block Krylov space of a random
//! start (Musco and Musco 2015, "Randomized block Krylov methods"), with the QR and eigenvalue decompositions of nalgebra.
//! Subspace iteration needs several times as long, because singular values of texts decrease slowly.

use std::num::NonZeroUsize;
use std::thread;

use nalgebra::DMatrix;
use program::random::Random;
use program::threads::spawn;

/// Pairs that are sorted at least at a time: 32 MiB. More are sorted if there are more distinct pairs, so that these are
/// not merged too often.
const BUFFERED_MIN: usize = 4 << 20;
/// Columns by which the space grows at a time.
const BLOCK: usize = 16;
/// Blocks between two decompositions.
const BLOCKS_TOGETHER: usize = 8;
/// The space is large enough if the singular values change by at most this share.
const TOLERANCE: f64 = 1e-3;
/// Maximum number of columns for each wanted one.
const COLUMNS_MAX: usize = 8;
/// A column of which less than this share is outside of the space adds nothing to it.
const WITHIN: f64 = 1e-10;
/// The first part of the key of random numbers.
const PURPOSE: u64 = u64::from_le_bytes(*b"subspace");

/// How often pairs of words are within a window.
#[derive(Clone, Debug)]
pub struct PairCounts {
    n_words: usize,
    window: usize,
    /// Pairs, the smaller word first, that are not sorted yet.
    buffer: Vec<u64>,
    /// Sorted pairs with their counts.
    counts: Vec<(u64, u32)>,
    /// Number of words of all texts.
    n_tokens: u64,
}

impl PairCounts {
    /// No pairs of this many words within `window` words on each side.
    pub fn new(n_words: usize, window: usize) -> Self {
        Self { n_words, window, buffer: Vec::new(), counts: Vec::new(), n_tokens: 0 }
    }

    /// Counts the pairs of a text of numbered words.
    ///
    /// # Panics
    /// If a word does not exist.
    pub fn add(&mut self, text: &[u32]) {
        for (at, &word) in text.iter().enumerate() {
            assert!((word as usize) < self.n_words, "no such word");
            let others = text[at + 1..].iter().take(self.window);
            self.buffer
                .extend(others.map(|&other| u64::from(word.min(other)) << 32 | u64::from(word.max(other))));
        }
        self.n_tokens += text.len() as u64;
        if self.buffer.len() >= BUFFERED_MIN.max(self.counts.len()) {
            self.sort();
        }
    }

    /// Number of words of all texts.
    pub fn n_tokens(&self) -> u64 {
        self.n_tokens
    }

    /// Adds the buffered pairs to the sorted ones.
    fn sort(&mut self) {
        self.buffer.sort_unstable();
        let mut new =
            self.buffer.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len() as u32)).peekable();
        let mut merged = Vec::with_capacity(self.counts.len() + self.buffer.len() / 4);
        for &(pair, count) in &self.counts {
            while let Some(found) = new.next_if(|&(other, _)| other < pair) {
                merged.push(found);
            }
            let more = new.next_if(|&(other, _)| other == pair).map_or(0, |(_, count)| count);
            merged.push((pair, count.saturating_add(more)));
        }
        merged.extend(new);
        self.counts = merged;
        self.buffer.clear();
    }

    /// The positive PMI, shifted by `ln shift`.
    pub fn ppmi(mut self, shift: f64) -> Ppmi {
        self.sort();
        let words_of = |pair: u64| [(pair >> 32) as usize, pair as u32 as usize];
        // A pair of equal words counts twice: each is in the window of the other.
        let mut sums = vec![0.0; self.n_words];
        for &(pair, count) in &self.counts {
            words_of(pair).iter().for_each(|&word| sums[word] += f64::from(count));
        }
        let total: f64 = sums.iter().sum();
        let positive = self.counts.iter().filter_map(|&(pair, count)| {
            let [first, second] = words_of(pair);
            let both = f64::from(count) * if first == second { 2.0 } else { 1.0 };
            let value = (both * total / (sums[first] * sums[second])).ln() - shift.ln();
            (value > 0.0).then_some((first, second, value))
        });
        Ppmi {
            matrix: Sparse::symmetric(self.n_words, positive),
            occurs: sums.iter().map(|&sum| sum > 0.0).collect(),
        }
    }
}

/// The shifted positive PMI of a text.
#[derive(Clone, Debug)]
pub struct Ppmi {
    matrix: Sparse,
    occurs: Vec<bool>,
}

/// `U_d √Σ_d` of a matrix.
#[derive(Clone, Debug)]
pub struct Factor {
    /// `[V, d]`.
    pub vectors: DMatrix<f64>,
    /// The singular values in descending order.
    pub singular_values: Vec<f64>,
    /// Number of columns of the space in which they were found.
    pub columns: usize,
}

impl Ppmi {
    /// The words that occur in a pair, in order of their numbers.
    pub fn words(&self) -> Vec<u32> {
        (0..).zip(&self.occurs).filter(|(_, occurs)| **occurs).map(|(word, _)| word).collect()
    }

    /// Number of values that are not 0.
    pub fn n_values(&self) -> usize {
        self.matrix.values.len()
    }

    /// The factor of at most `dim` columns.
    pub fn factor(&self, dim: usize, threads: NonZeroUsize, seed: u64) -> Factor {
        let n = self.matrix.n_rows();
        let dim = dim.min(n);
        let columns_max = (COLUMNS_MAX * (dim + BLOCK)).min(n);
        let mut space = Krylov::of(&self.matrix, threads, seed);
        let mut before: Vec<f64> = Vec::new();
        loop {
            let columns = (dim + BLOCK).max(space.n_columns() + BLOCKS_TOGETHER * BLOCK).min(columns_max);
            space.grow(columns);
            let within = space.products.clone().symmetric_eigen();
            let mut order: Vec<usize> = (0..columns).collect();
            let size = |at: usize| within.eigenvalues[at].abs();
            order.sort_by(|&a, &b| size(b).total_cmp(&size(a)));
            let values: Vec<f64> = order.iter().take(dim).map(|&at| size(at)).collect();
            if columns == columns_max || is_converged(&before, &values) {
                let mut vectors = &space.basis * within.eigenvectors.select_columns(&order[..dim]);
                for (mut column, value) in vectors.column_iter_mut().zip(&values) {
                    column *= value.sqrt();
                }
                return Factor { vectors, singular_values: values, columns };
            }
            before = values;
        }
    }
}

/// The space of a random block and its products with powers of a symmetric matrix A.
struct Krylov<'a> {
    matrix: &'a Sparse,
    threads: NonZeroUsize,
    random: Random,
    /// `[V, columns]`: an orthonormal basis Q.
    basis: DMatrix<f64>,
    /// QᵀAQ.
    products: DMatrix<f64>,
    /// The block that the space is extended by.
    next: DMatrix<f64>,
}

impl<'a> Krylov<'a> {
    fn of(matrix: &'a Sparse, threads: NonZeroUsize, seed: u64) -> Self {
        let n = matrix.n_rows();
        let mut random = Random::of(&[PURPOSE, seed]);
        let next = random_columns(&mut random, n, BLOCK.min(n));
        let (basis, products) = (DMatrix::zeros(n, 0), DMatrix::zeros(0, 0));
        Self { matrix, threads, random, basis, products, next }
    }

    fn n_columns(&self) -> usize {
        self.basis.ncols()
    }

    /// Extends the space to this number of columns.
    fn grow(&mut self, columns: usize) {
        while self.n_columns() < columns {
            let (from, wanted) = (self.n_columns(), columns - self.n_columns());
            let next = self.next.columns(0, self.next.ncols().min(wanted)).into_owned();
            let block = self.outside(next);
            let product = self.matrix.times(&block, self.threads);
            let (basis, products) = (std::mem::take(&mut self.basis), std::mem::take(&mut self.products));
            let now = from + block.ncols();
            self.basis = basis.resize_horizontally(now, 0.0);
            self.basis.columns_mut(from, block.ncols()).copy_from(&block);
            let with_all = self.basis.transpose() * &product;
            self.products = products.resize(now, now, 0.0);
            self.products.columns_mut(from, block.ncols()).copy_from(&with_all);
            self.products.rows_mut(from, block.ncols()).copy_from(&with_all.transpose());
            self.next = product;
        }
    }

    /// Orthonormal columns outside of the space. Columns within it are replaced by random ones.
    fn outside(&mut self, mut block: DMatrix<f64>) -> DMatrix<f64> {
        let transposed = self.basis.transpose();
        loop {
            let largest = block.column_iter().map(|column| column.norm()).fold(0.0, f64::max);
            // Once more, because the first difference has rounding errors of the whole column.
            for _ in 0..2 {
                block -= &self.basis * (&transposed * &block);
            }
            let (q, r) = block.qr().unpack();
            let is_within = |at: &usize| r[(*at, *at)].abs() <= WITHIN * largest;
            let within: Vec<usize> = (0..q.ncols()).filter(is_within).collect();
            block = q;
            if within.is_empty() {
                return block;
            }
            for at in within {
                block.set_column(at, &random_columns(&mut self.random, block.nrows(), 1).column(0));
            }
        }
    }
}

fn random_columns(random: &mut Random, n_rows: usize, n_columns: usize) -> DMatrix<f64> {
    DMatrix::from_fn(n_rows, n_columns, |_, _| f64::from(random.uniform()) - 0.5)
}

fn is_converged(before: &[f64], now: &[f64]) -> bool {
    let change = before.iter().zip(now).map(|(before, now)| (before - now) * (before - now)).sum::<f64>();
    let size = now.iter().map(|value| value * value).sum::<f64>();
    before.len() == now.len() && change.sqrt() <= TOLERANCE * size.sqrt()
}

/// A sparse matrix by rows.
#[derive(Clone, Debug)]
struct Sparse {
    /// One more than rows.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Sparse {
    /// The symmetric matrix with these values at (i, j) and (j, i), in ascending order.
    fn symmetric(n: usize, values: impl Iterator<Item = (usize, usize, f64)> + Clone) -> Self {
        let mut starts = vec![0; n + 1];
        for (row, column, _) in values.clone() {
            starts[row + 1] += 1;
            if row != column {
                starts[column + 1] += 1;
            }
        }
        for row in 0..n {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let n_values = starts[n];
        let mut matrix = Self { starts, columns: vec![0; n_values], values: vec![0.0; n_values] };
        let mut put = |row: usize, column: usize, value: f64| {
            matrix.columns[next[row]] = column as u32;
            matrix.values[next[row]] = value;
            next[row] += 1;
        };
        for (row, column, value) in values {
            put(row, column, value);
            if row != column {
                put(column, row, value);
            }
        }
        matrix
    }

    fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// The product with a dense matrix.
    fn times(&self, dense: &DMatrix<f64>, threads: NonZeroUsize) -> DMatrix<f64> {
        // Transposed, a row of the matrix is contiguous.
        let (columns, transposed) = (dense.ncols(), dense.transpose());
        let mut product = DMatrix::zeros(columns, self.n_rows());
        let rows_together = self.n_rows().div_ceil(threads.get()).max(1);
        thread::scope(|scope| {
            for (part, sums) in product.as_mut_slice().chunks_mut(rows_together * columns).enumerate() {
                let from = transposed.as_slice();
                spawn(scope, move || {
                    let rows = part * rows_together..;
                    rows.zip(sums.chunks_exact_mut(columns))
                        .for_each(|(row, sum)| self.add_row(row, from, sum));
                });
            }
        });
        product.transpose()
    }

    /// Adds the product of a row and a matrix by rows to a sum.
    fn add_row(&self, row: usize, from: &[f64], sum: &mut [f64]) {
        let range = self.starts[row]..self.starts[row + 1];
        for (&column, &value) in self.columns[range.clone()].iter().zip(&self.values[range]) {
            let other = &from[column as usize * sum.len()..][..sum.len()];
            sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += value * other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREADS: NonZeroUsize = NonZeroUsize::new(2).unwrap();

    fn text(n_words: u32, length: usize) -> Vec<u32> {
        let mut random = Random::of(&[1]);
        // Few words are frequent, and neighbours are alike.
        let mut last = 0;
        (0..length)
            .map(|_| {
                let word = (random.uniform().powi(2) * n_words as f32) as u32;
                last = if random.below(3) == 0 { (last + 1) % n_words } else { word };
                last
            })
            .collect()
    }

    /// By its definition.
    fn dense(text: &[u32], n_words: usize, window: usize, shift: f64) -> DMatrix<f64> {
        let mut counts = DMatrix::<f64>::zeros(n_words, n_words);
        for at in 0..text.len() {
            for other in at.saturating_sub(window)..(at + window + 1).min(text.len()) {
                if other != at {
                    counts[(text[at] as usize, text[other] as usize)] += 1.0;
                }
            }
        }
        let total = counts.sum();
        let sums = counts.column_sum();
        DMatrix::from_fn(n_words, n_words, |row, column| {
            let pmi = (counts[(row, column)] * total / (sums[row] * sums[column])).ln();
            (pmi - shift.ln()).max(0.0)
        })
    }

    fn ppmi(texts: &[&[u32]], n_words: usize, window: usize, shift: f64) -> Ppmi {
        let mut pairs = PairCounts::new(n_words, window);
        for text in texts {
            pairs.add(text);
            pairs.sort();
        }
        pairs.ppmi(shift)
    }

    #[test]
    fn the_matrix_is_that_of_the_definition() {
        let text = text(30, 2000);
        for (window, shift) in [(1, 1.0), (5, 1.0), (3, 2.0)] {
            let expected = dense(&text, 30, window, shift);
            let found = ppmi(&[&text], 30, window, shift);
            let found = found.matrix.times(&DMatrix::identity(30, 30), THREADS);
            assert!((&found - &expected).norm() < 1e-12 * expected.norm(), "{window} {shift}");
        }
    }

    #[test]
    fn texts_are_counted_one_by_one() {
        let found = ppmi(&[&[0, 1], &[0, 1, 1], &[], &[3]], 4, 2, 1.0);
        assert_eq!(found.words(), [0, 1]);
        let matrix = found.matrix.times(&DMatrix::identity(4, 4), THREADS);
        // Pairs: 3 × (0, 1) and 1 × (1, 1), so C = [0 3; 3 2], with the sums 3 and 5.
        assert!((matrix[(0, 1)] - (3.0f64 * 8.0 / 15.0).ln()).abs() < 1e-15);
        assert_eq!(matrix[(1, 1)], 0.0);
    }

    #[test]
    fn the_factor_is_that_of_a_dense_decomposition() {
        let text = text(120, 20_000);
        let ppmi = ppmi(&[&text], 120, 3, 1.0);
        let dense = dense(&text, 120, 3, 1.0);
        let mut expected: Vec<f64> =
            dense.clone().svd(false, false).singular_values.iter().copied().collect();
        expected.sort_by(|a, b| b.total_cmp(a));
        let factor = ppmi.factor(10, THREADS, 1);
        for (found, expected) in factor.singular_values.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-9 * expected, "{:?} {expected}", factor.singular_values);
        }
        // The vectors are those of the largest absolute eigenvalues, so A U = ± U Σ.
        let product = ppmi.matrix.times(&factor.vectors, THREADS);
        for (at, value) in factor.singular_values.iter().enumerate() {
            let norm = product.column(at).norm() / factor.vectors.column(at).norm();
            assert!((norm - value).abs() < 1e-9 * value, "{norm} {value}");
        }
        assert_eq!(factor.vectors.shape(), (120, 10));
    }

    #[test]
    fn a_large_matrix_needs_a_part_of_the_space() {
        let text = text(700, 40_000);
        let ppmi = ppmi(&[&text], 700, 3, 1.0);
        let expected = dense(&text, 700, 3, 1.0).symmetric_eigen().eigenvalues;
        let mut expected: Vec<f64> = expected.iter().map(|value| value.abs()).collect();
        expected.sort_by(|a, b| b.total_cmp(a));
        let factor = ppmi.factor(6, THREADS, 1);
        assert!(factor.columns < 500, "{}", factor.columns);
        for (found, expected) in factor.singular_values.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-3 * expected, "{:?} {expected}", factor.singular_values);
        }
    }

    #[test]
    fn the_dimension_is_at_most_the_number_of_words() {
        assert_eq!(ppmi(&[&[0, 1, 0]], 2, 1, 1.0).factor(5, THREADS, 1).vectors.shape(), (2, 2));
    }
}
