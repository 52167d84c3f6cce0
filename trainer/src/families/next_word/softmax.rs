//! Sampled softmax over the vocabulary for the next word. A step computes only the logits of the next words and of
//! some random words, the candidates.
//!
//! N: pairs of a state and its next word; K: candidates; E: embedding dimension.
//!
//! The N × K logits of long rows would take gigabytes. Loss and gradients are therefore computed in one pass, for a
//! limited number of pairs at a time.
//!
//! The candidate with rank r in the vocabulary, from 0, is drawn with probability ln((r+2)/(r+1)) / ln(R+1), where R
//! is the number of words. This is roughly the distribution of words in natural text. A candidate's logit is reduced
//! by the logarithm of its expected count (Jean et al. 2015, "On using very large target vocabulary"). The expected
//! sum over candidates then equals the sum over all words.

use batches::random::Purpose;
use tch::{Device, Kind, Tensor};

use crate::error::Result;
use crate::families::share::Weighed;
use crate::inputs::on_device;

/// Distinct candidate words, and the logarithm of each one's expected count.
#[derive(Debug)]
pub struct Candidates {
    ids: Vec<i64>,
    log_expected: Vec<f64>,
}

impl Candidates {
    /// Draws `draws` ids. Id 0, padding, is never drawn. Id 1, the unknown word, has rank 0.
    pub fn draw(ids: i64, draws: u32, key: [u64; 3]) -> Self {
        let words = (ids - 1) as f64;
        let mut random = Purpose::Candidates.stream(&key);
        let mut drawn: Vec<i64> = (0..draws)
            .map(|_| {
                let uniform = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
                let rank = ((words + 1.0).ln() * uniform).exp() - 1.0;
                1 + (rank as i64).clamp(0, ids - 2)
            })
            .collect();
        drawn.sort_unstable();
        drawn.dedup();
        let expected = |&id: &i64| {
            let probability = ((id + 1) as f64 / id as f64).ln() / (words + 1.0).ln();
            // Probability of being drawn at least once: 1 - (1 - p)^draws.
            (-(f64::from(draws) * (-probability).ln_1p()).exp_m1()).ln()
        };
        let log_expected = drawn.iter().map(expected).collect();
        Self { ids: drawn, log_expected }
    }
}

/// Pairs of a state and the next word, in a batch.
pub(super) struct Pairs {
    /// Index of the state among B·T, `[N]`.
    places: Tensor,
    /// Index of the row, `[N]`.
    rows: Tensor,
    /// The next word, `[N]`.
    words: Tensor,
    /// Number of pairs per row, at least 1, `[B]`.
    per_row: Tensor,
}

impl Pairs {
    /// The pairs of tokens, `[B, T]`, with these lengths. The host knows their number, so it does not wait for a GPU.
    pub(super) fn of(tokens: &Tensor, lengths: &[i64]) -> Result<Self> {
        let longest = tokens.size2()?.1;
        let device = tokens.device();
        let of_row = |(row, length): (i64, &i64)| row * longest..row * longest + length - 1;
        let places: Vec<i64> = (0..).zip(lengths).flat_map(of_row).collect();
        let places = on_device(&places, Kind::Int64, device)?; // [N]
        let words = tokens.f_reshape([-1])?.f_index_select(0, &places.f_add_scalar(1)?)?;
        let rows = places.f_floor_divide_scalar(longest)?;
        let per_row: Vec<i64> = lengths.iter().map(|length| (length - 1).max(1)).collect();
        Ok(Self { places, rows, words, per_row: on_device(&per_row, Kind::Int64, device)? })
    }

    /// The states of the pairs, `[N, D]`, from all states, `[B, T, D]`.
    pub(super) fn contexts(&self, states: &Tensor) -> Result<Tensor> {
        let size = states.size();
        Ok(states.f_reshape([size[0] * size[1], size[2]])?.f_index_select(0, &self.places)?)
    }

    /// The weight of each pair, `[N]`. The weight of a row, `[B]`, is divided among its pairs.
    pub(super) fn weights(&self, rows: &Tensor) -> Result<Tensor> {
        Ok(rows.f_div(&self.per_row.f_to_kind(rows.kind())?)?.f_index_select(0, &self.rows)?)
    }
}

/// Maximum logits in memory at a time. On a CPU, they fit into its cache. On a GPU, many logits need few calls.
fn logits_together(device: Device) -> i64 {
    if device == Device::Cpu { 1 << 20 } else { 1 << 26 }
}

/// A logit that adds nothing to a sum of exponentials.
const NEVER: f64 = -1e30;

/// The weighted sum of the pairs' losses, with weights `[N]` and predicted embeddings `[N, E]`. `words` are all
/// embeddings, `biases` one value per word.
pub(super) fn loss(
    expected: &Tensor,
    pairs: &Pairs,
    weights: &Tensor,
    words: &Tensor,
    biases: &Tensor,
    candidates: &Candidates,
) -> Result<Weighed> {
    let (kind, device) = (biases.kind(), biases.device());
    let expected = expected.f_to_kind(kind)?;
    let own = expected.f_mul(&words.f_index_select(0, &pairs.words)?)?.f_sum_dim_intlist(1, false, None)?;
    let own = own.f_add(&biases.f_index_select(0, &pairs.words)?)?; // [N]
    let ids = on_device(&candidates.ids, Kind::Int64, device)?; // [K]
    let log_expected = on_device(&candidates.log_expected, kind, device)?;
    let others = words.f_index_select(0, &ids)?; // [K, E]
    let biases = biases.f_index_select(0, &ids)?.f_sub(&log_expected)?; // [K]
    let parts = [&own, &expected, &others, &biases];
    let (loss, by) = tch::no_grad(|| -> Result<_> {
        let by = parts.map(|part| part.f_zeros_like());
        let by: Vec<Tensor> = by.into_iter().collect::<std::result::Result<_, _>>()?;
        let [own, expected, others, biases] = parts.map(Tensor::detach);
        let mut loss = Tensor::f_zeros([], (Kind::Double, device))?;
        let (n, together) = (own.size()[0], (logits_together(device) / ids.size()[0]).max(1));
        for from in (0..n).step_by(together as usize) {
            let some = |all: &Tensor| all.f_narrow(0, from, together.min(n - from));
            let (own, expected, weights) = (some(&own)?, some(&expected)?, some(weights)?);
            // The next word must count once, separately from the candidates.
            let is_own = some(&pairs.words)?.f_unsqueeze(1)?.f_eq_tensor(&ids.f_unsqueeze(0)?)?;
            // Under bfloat16, the product has fewer bits; the mask and the sums have all.
            let mut logits = expected.f_linear(&others, Some(&biases))?.f_to_kind(kind)?;
            let mut logits = logits.f_masked_fill_(&is_own, NEVER)?;
            let log_sum = logits.f_logsumexp(1, false)?.f_logaddexp(&own)?;
            let _ = loss.f_add_(&log_sum.f_sub(&own)?.f_mul(&weights)?.f_sum(Kind::Double)?)?;
            // The gradient of a logit is its softmax probability; for the next word, that probability minus 1.
            let log_weight = log_sum.f_sub(&weights.f_log()?)?;
            let by_logits = logits.f_sub_(&log_weight.f_unsqueeze(1)?)?.f_exp_()?;
            some(&by[0])?.f_copy_(&own.f_sub(&log_sum)?.f_expm1()?.f_mul(&weights)?)?;
            some(&by[1])?.f_copy_(&by_logits.f_matmul(&others)?)?;
            let _ = by[2].shallow_clone().f_add_(&by_logits.f_transpose(0, 1)?.f_matmul(&expected)?)?;
            let _ = by[3].shallow_clone().f_add_(&by_logits.f_sum_dim_intlist(0, false, None)?)?;
        }
        Ok((loss, by))
    })?;
    let products = parts.into_iter().zip(&by).map(|(part, by)| Ok(part.f_mul(by)?.f_sum(kind)?));
    let products = products.collect::<Result<Vec<_>>>()?;
    Ok(Weighed { gradients: Tensor::f_stack(&products, 0)?.f_sum(kind)?, loss })
}

#[cfg(test)]
mod tests {
    use tch::Reduction;

    use super::*;

    const PLACE: (Kind, Device) = (Kind::Double, Device::Cpu);

    fn pairs() -> Pairs {
        let tokens = Tensor::from_slice(&[3i64, 5, 4, 0, 2, 1, 6, 3, 4, 0, 0, 0]).view([3, 4]);
        Pairs::of(&tokens, &[3, 4, 1]).unwrap()
    }

    #[test]
    fn pairs_are_words_and_those_before_them() {
        let pairs = pairs();
        let numbers = |tensor: &Tensor| Vec::<i64>::try_from(tensor).unwrap();
        assert_eq!(numbers(&pairs.words), [5, 4, 1, 6, 3]);
        assert_eq!(numbers(&pairs.rows), [0, 0, 1, 1, 1]);
        let states = Tensor::arange(12, PLACE).view([3, 4, 1]);
        assert_eq!(numbers(&pairs.contexts(&states).unwrap().view(-1).to_kind(Kind::Int64)), [0, 1, 4, 5, 6]);
        let weights = pairs.weights(&Tensor::from_slice(&[1.0, 6.0, 5.0])).unwrap();
        assert_eq!(Vec::<f64>::try_from(&weights).unwrap(), [0.5, 0.5, 2.0, 2.0, 2.0]);
    }

    #[test]
    fn in_bfloat16_the_loss_is_that_of_32_bits_within_its_8() {
        tch::manual_seed(1);
        let parameter = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu));
        let [expected, words, biases] = [parameter(&[5, 4]), parameter(&[7, 4]), parameter(&[7])];
        let weights = Tensor::from_slice(&[0.5f32, 1.0, 0.25, 2.0, 1.0]);
        let all = Candidates { ids: (0..7).collect(), log_expected: vec![0.0; 7] };
        let of_pairs = || loss(&expected, &pairs(), &weights, &words, &biases, &all).unwrap();
        let (exact, found) = (of_pairs(), c10d::in_bfloat16(of_pairs).unwrap());
        let [exact_loss, found_loss] = [&exact, &found].map(|of| of.loss.double_value(&[]));
        let apart = (found_loss - exact_loss).abs() / exact_loss;
        assert!(apart > 0.0 && apart < 1.0 / 128.0, "{found_loss} {exact_loss}");
        assert_eq!(found.gradients.kind(), Kind::Float);
    }

    #[test]
    fn with_all_words_as_candidates_loss_and_gradients_are_those_of_the_whole_softmax() {
        tch::manual_seed(1);
        let pairs = pairs();
        let parameter = |shape: &[i64]| Tensor::randn(shape, PLACE).set_requires_grad(true);
        let parameters = [parameter(&[5, 4]), parameter(&[7, 4]), parameter(&[7])];
        let [expected, words, biases] = &parameters;
        let weights = Tensor::from_slice(&[0.5, 1.0, 0.25, 2.0, 1.0]);
        let all = Candidates { ids: (0..7).collect(), log_expected: vec![0.0; 7] };
        let found = loss(expected, &pairs, &weights, words, biases, &all).unwrap();
        let logits = expected.linear(words, Some(biases));
        let whole = logits.cross_entropy_loss(&pairs.words, None::<&Tensor>, Reduction::None, -100, 0.0);
        let whole = (whole * weights).sum(Kind::Double);
        assert!((found.loss.double_value(&[]) - whole.double_value(&[])).abs() < 1e-12);
        let gradients = |of: &Tensor| Tensor::run_backward(&[of], &parameters, false, false);
        for (found, expected) in gradients(&found.gradients).iter().zip(gradients(&whole)) {
            assert!((found - expected).abs().max().double_value(&[]) < 1e-12);
        }
    }

    /// If the only candidate is the next word itself, there is no alternative, and the loss of the pair is 0.
    #[test]
    fn one_candidate_is_enough() {
        let pairs = pairs();
        let parameters =
            [Tensor::ones([5, 4], PLACE), Tensor::ones([7, 4], PLACE), Tensor::zeros([7], PLACE)];
        let [expected, words, biases] = parameters.each_ref().map(|tensor| tensor.set_requires_grad(true));
        let weights = Tensor::ones([5], PLACE);
        let one = Candidates { ids: vec![5], log_expected: vec![0.0] };
        let found = loss(&expected, &pairs, &weights, &words, &biases, &one).unwrap();
        // Four pairs have one alternative with the same logit; the fifth has none.
        let loss = found.loss.double_value(&[]);
        assert!((loss - 4.0 * 2f64.ln()).abs() < 1e-12, "{loss}");
        for gradient in Tensor::run_backward(&[&found.gradients], &[&expected, &words, &biases], false, false)
        {
            assert!(gradient.abs().max().double_value(&[]).is_finite());
        }
    }

    /// The expected sum over candidates, each divided by its expected count, equals the sum over all words.
    #[test]
    fn candidates_stand_for_all_words() {
        const IDS: i64 = 500;
        let worth = |id: i64| 1.0 + (id as f64).sin();
        let whole: f64 = (1..IDS).map(worth).sum();
        let n_draws = 2_000;
        let mut sum = 0.0;
        for seed in 0..n_draws {
            let Candidates { ids, log_expected } = Candidates::draw(IDS, 60, [seed, 0, 0]);
            assert!(ids.windows(2).all(|pair| pair[0] < pair[1]) && ids[0] >= 1 && ids[ids.len() - 1] < IDS);
            sum += ids.iter().zip(log_expected).map(|(&id, log)| worth(id) / log.exp()).sum::<f64>();
        }
        let found = sum / n_draws as f64;
        assert!((found / whole - 1.0).abs() < 0.02, "{found}, of all words {whole}");
    }
}
