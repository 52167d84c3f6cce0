//! Unit vectors of words, and their products with queries: cosines.
//!
//! The words are in panels of 32. A panel is stored dimension by dimension, so that the lanes of a vector are words and
//! a product needs no sum over lanes.

use std::ops::Range;

use kernels::simd::{Processor, Vector, on_processor};

use crate::embedding::Embedding;

/// Words of a panel.
pub(crate) const PANEL: usize = 32;
/// Queries whose sums are in registers at a time.
const QUERIES: usize = 4;

/// The unit vectors of all words. A zero vector stays zero.
#[derive(Debug)]
pub(crate) struct Units {
    pub n_words: usize,
    dim: usize,
    /// `[panels, D, 32]`; missing words of the last panel are 0.
    panels: Vec<f32>,
    pub processor: Processor,
}

impl Units {
    pub fn of(embedding: &Embedding) -> Self {
        let (n_words, dim) = (embedding.n_words(), embedding.dim);
        let mut panels = vec![0.0; n_words.div_ceil(PANEL) * dim * PANEL];
        for (word, vector) in embedding.vectors.chunks_exact(dim).enumerate() {
            let panel = &mut panels[word / PANEL * dim * PANEL..][..dim * PANEL];
            for (to, value) in panel.iter_mut().skip(word % PANEL).step_by(PANEL).zip(unit(vector)) {
                *to = value;
            }
        }
        Self { n_words, dim, panels, processor: Processor::best() }
    }

    /// Number of panels.
    pub fn n_panels(&self) -> usize {
        self.n_words.div_ceil(PANEL)
    }

    /// The cosines of unit queries `[Q, D]` and the words of these panels, `[Q, stride]`.
    pub fn products(&self, panels: Range<usize>, queries: &[f32], products: &mut [f32], stride: usize) {
        for (at, number) in panels.enumerate() {
            let panel = &self.panels[number * self.dim * PANEL..][..self.dim * PANEL];
            multiply_panel(self.processor, panel, queries, &mut products[at * PANEL..], stride);
        }
    }

    /// The cosines of a unit query and all words.
    pub fn cosines(&self, query: &[f32]) -> Vec<f32> {
        let mut products = vec![0.0; self.n_panels() * PANEL];
        let stride = products.len();
        self.products(0..self.n_panels(), query, &mut products, stride);
        products.truncate(self.n_words);
        products
    }
}

/// A vector of length 1 with the same direction. A zero vector stays zero.
pub(crate) fn unit(vector: &[f32]) -> impl Iterator<Item = f32> {
    let norm = vector.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>().sqrt();
    let scale = if norm > 0.0 { 1.0 / norm } else { 0.0 };
    vector.iter().map(move |&value| (f64::from(value) * scale) as f32)
}

on_processor! {
    fn multiply_panel(panel: &[f32], queries: &[f32], products: &mut [f32], stride: usize) = multiply;
}

/// Writes the products of queries `[Q, D]` and a panel `[D, 32]` into `[Q, stride]`.
#[inline(always)]
fn multiply<V: Vector>(panel: &[f32], queries: &[f32], products: &mut [f32], stride: usize) {
    let dim = panel.len() / PANEL;
    let mut groups = queries.chunks_exact(QUERIES * dim);
    let mut at = 0;
    for group in &mut groups {
        multiply_rows::<V, QUERIES>(panel, group, &mut products[at..], stride);
        at += QUERIES * stride;
    }
    for query in groups.remainder().chunks_exact(dim) {
        multiply_rows::<V, 1>(panel, query, &mut products[at..], stride);
        at += stride;
    }
}

#[inline(always)]
fn multiply_rows<V: Vector, const N: usize>(
    panel: &[f32],
    queries: &[f32],
    products: &mut [f32],
    stride: usize,
) {
    let dim = panel.len() / PANEL;
    for at in (0..PANEL).step_by(2 * V::LANES) {
        let mut sums = [[V::splat(0.0); 2]; N];
        for (position, row) in panel.chunks_exact(PANEL).enumerate() {
            let words = [V::load(&row[at..]), V::load(&row[at + V::LANES..])];
            for (query, sums) in sums.iter_mut().enumerate() {
                let value = V::splat(queries[query * dim + position]);
                sums[0] = value.fma(words[0], sums[0]);
                sums[1] = value.fma(words[1], sums[1]);
            }
        }
        for (query, sums) in sums.into_iter().enumerate() {
            let to = &mut products[query * stride + at..];
            sums[0].store(to);
            sums[1].store(&mut to[V::LANES..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random;

    #[test]
    fn products_are_cosines_on_every_processor() {
        for (n_words, dim, n_queries) in [(1, 1, 1), (70, 7, 6), (100, 33, 9)] {
            let (embedding, others) = (random(n_words, dim, 1), random(n_queries, dim, 2));
            let queries: Vec<f32> = others.vectors.chunks_exact(dim).flat_map(unit).collect();
            for processor in Processor::all() {
                let units = Units { processor, ..Units::of(&embedding) };
                let stride = units.n_panels() * PANEL;
                let mut products = vec![0.0; n_queries * stride];
                units.products(0..units.n_panels(), &queries, &mut products, stride);
                for query in 0..n_queries {
                    for word in 0..n_words {
                        let (a, b) = (others.vector(query as u32), embedding.vector(word as u32));
                        let expected = crate::similarity::cosine(a, b);
                        let found = f64::from(products[query * stride + word]);
                        assert!((found - expected).abs() < 1e-5, "{processor:?} {found} {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_zero_vector_has_the_cosine_0() {
        assert_eq!(unit(&[0.0, 0.0]).collect::<Vec<_>>(), [0.0, 0.0]);
        assert_eq!(unit(&[3.0, 4.0]).collect::<Vec<_>>(), [0.6, 0.8]);
    }
}
