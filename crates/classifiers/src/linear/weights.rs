//! Weights of n-grams before training.

/// Log-count ratios. `with` and `without` are the numbers of texts of each n-gram with and without a label.
pub(super) fn naive_bayes(with: &[u32], all: &[u32], smoothing: f32) -> Vec<f32> {
    let smoothing = f64::from(smoothing);
    let sum = |counts: &mut dyn Iterator<Item = u32>| {
        counts.map(u64::from).sum::<u64>() as f64 + smoothing * all.len() as f64
    };
    let sum_with = sum(&mut with.iter().copied());
    let sum_without = sum(&mut all.iter().zip(with).map(|(all, with)| all - with));
    let shift = (sum_without / sum_with).ln();
    // Most counts are small, and logarithms dominate the time.
    let logs: Vec<f64> = (0..LOGS).map(|count| (f64::from(count) + smoothing).ln()).collect();
    let log = |count: u32| match logs.get(count as usize) {
        Some(&log) => log,
        None => (f64::from(count) + smoothing).ln(),
    };
    all.iter().zip(with).map(|(&all, &with)| (log(with) - log(all - with) + shift) as f32).collect()
}

const LOGS: u32 = 1024;

/// Inverse document frequencies of n-grams that occur in these numbers of `n_texts` texts.
pub(super) fn inverse_frequencies(counts: &[u32], n_texts: usize) -> Vec<f32> {
    let n_texts = n_texts as f64;
    counts.iter().map(|&count| (((1.0 + n_texts) / (1.0 + f64::from(count))).ln() + 1.0) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naive_bayes_weights_are_the_log_count_ratios_of_the_formula() {
        // Of three n-grams, in texts with the label 3, 0 and 1 times, in all texts 4, 5 and 2000 times.
        let found = naive_bayes(&[3, 0, 1], &[4, 5, 2000], 0.5);
        let (p, q) = ([3.5f64, 0.5, 1.5], [1.5f64, 5.5, 1999.5]);
        let (sum_p, sum_q) = (p.iter().sum::<f64>(), q.iter().sum::<f64>());
        for ((found, p), q) in found.iter().zip(p).zip(q) {
            let expected = ((p / sum_p) / (q / sum_q)).ln();
            assert!((f64::from(*found) - expected).abs() < 1e-6, "{found} {expected}");
        }
        assert!(naive_bayes(&[], &[], 1.0).is_empty());
    }

    #[test]
    fn inverse_frequencies_are_those_of_scikit_learn() {
        // TfidfVectorizer().fit(["a b", "a c", "a"]).idf_ is [1.0, 1.6931472, 1.6931472].
        let found = inverse_frequencies(&[3, 1, 1], 3);
        assert_eq!(found, [1.0, 1.693_147_2, 1.693_147_2]);
    }
}
