//! A map of word vectors: their two principal components.

use nalgebra::DMatrix;

use crate::embedding::Embedding;

/// The two principal components of these words, in their order. Of each component, the largest weight is positive, so that the map does not depend on signs.
pub fn pca2(embedding: &Embedding, words: &[u32]) -> Vec<[f32; 2]> {
    if words.is_empty() {
        return Vec::new();
    }
    let dim = embedding.dim;
    let mut vectors =
        DMatrix::from_fn(dim, words.len(), |at, word| f64::from(embedding.vector(words[word])[at]));
    let mean = vectors.column_mean();
    vectors.column_iter_mut().for_each(|mut column| column -= &mean);
    let covariance = (&vectors * vectors.transpose()).symmetric_eigen();
    let mut order: Vec<usize> = (0..dim).collect();
    order.sort_by(|&a, &b| covariance.eigenvalues[b].total_cmp(&covariance.eigenvalues[a]));
    let components: Vec<_> = order
        .iter()
        .take(2)
        .map(|&at| {
            let component = covariance.eigenvectors.column(at).into_owned();
            let largest = component[component.icamax()];
            component * largest.signum()
        })
        .collect();
    let place = |word: usize, axis: usize| {
        components.get(axis).map_or(0.0, |component| component.dot(&vectors.column(word)) as f32)
    };
    (0..words.len()).map(|word| [place(word, 0), place(word, 1)]).collect()
}

/// The numbers of the `n` most frequent words, in descending order of their counts; without counts, the first words.
pub fn frequent(embedding: &Embedding, n: usize) -> Vec<u32> {
    let mut words: Vec<u32> = (0..embedding.n_words() as u32).collect();
    words.sort_by_key(|&word| std::cmp::Reverse(embedding.words.count(word)));
    words.truncate(n);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{names, random};

    #[test]
    fn the_map_has_the_axes_of_the_largest_variance() {
        // The first axis varies most, then the third.
        let vectors = vec![5.0, 1.0, 0.0, -5.0, 1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 1.0, -2.0];
        let embedding = Embedding::new(names(&["a", "b", "c", "d"]), None, 3, vectors);
        let found = pca2(&embedding, &[0, 1, 2, 3]);
        let expected = [[5.0, 0.0], [-5.0, 0.0], [0.0, 2.0], [0.0, -2.0]];
        for (found, expected) in found.iter().zip(expected) {
            assert!((0..2).all(|at| (found[at] - expected[at]).abs() < 1e-6), "{found:?} {expected:?}");
        }
    }

    #[test]
    fn frequent_words_are_mapped() {
        let embedding = Embedding::new(names(&["a", "b", "c"]), Some(vec![1, 5, 5]), 1, vec![1.0, 2.0, 4.0]);
        assert_eq!(frequent(&embedding, 2), [1, 2]);
        assert_eq!(pca2(&embedding, &[1, 2]), [[-1.0, 0.0], [1.0, 0.0]]);
        assert_eq!(pca2(&random(30, 5, 1), &[3, 9, 27]).len(), 3);
        assert!(pca2(&random(30, 5, 1), &[]).is_empty());
    }
}
