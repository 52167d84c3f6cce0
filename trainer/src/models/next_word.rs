//! Which word comes next: a softmax over the vocabulary, of which a step computes the words that come and some others
//! that are drawn, the candidates.
//!
//! N pairs of a state and the word that comes after it, K candidates, E numbers of an embedding.
//!
//! Candidates are drawn by their rank in the vocabulary, r from 0, with a probability of ln((r+2)/(r+1)) / ln(R+1), R
//! the number of words: that of words in natural text, about. A candidate's logit is reduced by the logarithm of how
//! often it can be expected among them (Jean et al. 2015, "On using very large target vocabulary"), so that the sum
//! over candidates is expected to be that over all words.

use tch::{Kind, Tensor};

use crate::error::Result;
use crate::random::{Purpose, Random};

/// Words from which next ones are told, each once, and the logarithm of how often each was to be expected.
#[derive(Debug)]
pub struct Candidates {
    ids: Vec<i64>,
    log_expected: Vec<f64>,
}

impl Candidates {
    /// As many draws of ids, of which 0, padding, is never one. Id 1, the unknown word, is the first in rank.
    pub fn draw(ids: i64, draws: u32, key: [u64; 3]) -> Self {
        let words = (ids - 1) as f64;
        let mut random = Random::of(Purpose::Candidates, &key);
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
            // That it is among the draws: 1 - (1 - p)^draws.
            (-(f64::from(draws) * (-probability).ln_1p()).exp_m1()).ln()
        };
        let log_expected = drawn.iter().map(expected).collect();
        Self { ids: drawn, log_expected }
    }
}

/// A batch's words that come after others.
pub(super) struct Pairs {
    /// Where each one's state is among B·T, `[N]`.
    places: Tensor,
    /// Its row, `[N]`.
    rows: Tensor,
    /// The word that comes, `[N]`.
    words: Tensor,
    /// How many a row has, at least 1, `[B]`.
    per_row: Tensor,
}

impl Pairs {
    /// Those of tokens, `[B, T]`, of which each row has so many, `[B]`.
    pub(super) fn of(tokens: &Tensor, lengths: &Tensor) -> Result<Self> {
        let (n_rows, longest) = tokens.size2()?;
        let device = tokens.device();
        let positions = Tensor::f_arange(longest, (Kind::Int64, device))?.f_unsqueeze(0)?; // [1, T]
        let has_next = positions.f_lt_tensor(&(lengths - 1).f_unsqueeze(1)?)?; // [B, T]
        let places = has_next.f_view([n_rows * longest])?.f_nonzero()?.f_squeeze_dim(1)?; // [N]
        let words = tokens.f_reshape([n_rows * longest])?.f_index_select(0, &(&places + 1))?;
        let rows = places.f_floor_divide_scalar(longest)?;
        Ok(Self { places, rows, words, per_row: (lengths - 1).f_clamp_min(1)? })
    }

    /// Their states, `[N, D]`, of all, `[B, T, D]`.
    pub(super) fn befores(&self, states: &Tensor) -> Result<Tensor> {
        let size = states.size();
        Ok(states.f_reshape([size[0] * size[1], size[2]])?.f_index_select(0, &self.places)?)
    }

    /// The mean of each row's losses, `[B]`, of all, `[N]`.
    pub(super) fn means(&self, losses: &Tensor) -> Result<Tensor> {
        let sums = Tensor::f_zeros(self.per_row.size(), (losses.kind(), losses.device()))?;
        Ok(sums.f_index_add(0, &self.rows, losses)? / self.per_row.to_kind(losses.kind()))
    }
}

/// The loss of each pair, `[N]`, of the embeddings that are expected, `[N, E]`. `words` are all embeddings, `biases` a
/// number for each.
pub(super) fn losses(
    expected: &Tensor,
    pairs: &Pairs,
    words: &Tensor,
    biases: &Tensor,
    candidates: &Candidates,
) -> Result<Tensor> {
    let (kind, device) = (expected.kind(), expected.device());
    let own = (expected * words.f_index_select(0, &pairs.words)?.f_to_kind(kind)?)
        .f_sum_dim_intlist(1, false, None)?
        + biases.f_index_select(0, &pairs.words)?; // [N]
    let ids = Tensor::from_slice(&candidates.ids).to_device(device); // [K]
    let log_expected = Tensor::from_slice(&candidates.log_expected).to_kind(biases.kind()).to_device(device);
    let of_candidates = biases.f_index_select(0, &ids)? - log_expected;
    let others = words.f_index_select(0, &ids)?; // [K, E]
    let others = expected.f_linear(&others, Some(&of_candidates))?; // [N, K]
    // The word that comes counts once, by itself.
    let is_own = pairs.words.f_unsqueeze(1)?.f_eq_tensor(&ids.f_unsqueeze(0)?)?;
    let others = others.f_masked_fill(&is_own, f64::NEG_INFINITY)?.f_to_kind(own.kind())?;
    let all = Tensor::f_cat(&[own.f_unsqueeze(1)?, others], 1)?; // [N, 1 + K]
    Ok(all.f_logsumexp(1, false)? - own)
}

#[cfg(test)]
mod tests {
    use tch::Device;

    use super::*;

    const PLACE: (Kind, Device) = (Kind::Double, Device::Cpu);

    fn pairs() -> Pairs {
        let tokens = Tensor::from_slice(&[3i64, 5, 4, 0, 2, 1, 6, 3, 4, 0, 0, 0]).view([3, 4]);
        Pairs::of(&tokens, &Tensor::from_slice(&[3i64, 4, 1])).unwrap()
    }

    #[test]
    fn pairs_are_words_and_those_before_them() {
        let pairs = pairs();
        let numbers = |tensor: &Tensor| Vec::<i64>::try_from(tensor).unwrap();
        assert_eq!(numbers(&pairs.words), [5, 4, 1, 6, 3]);
        assert_eq!(numbers(&pairs.rows), [0, 0, 1, 1, 1]);
        let states = Tensor::arange(12, PLACE).view([3, 4, 1]);
        assert_eq!(numbers(&pairs.befores(&states).unwrap().view(-1).to_kind(Kind::Int64)), [0, 1, 4, 5, 6]);
        let means = pairs.means(&Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0, 8.0])).unwrap();
        assert_eq!(Vec::<f64>::try_from(&means).unwrap(), [1.5, 5.0, 0.0]);
    }

    #[test]
    fn with_all_words_as_candidates_the_loss_is_that_of_the_whole_softmax() {
        tch::manual_seed(1);
        let pairs = pairs();
        let (expected, words, biases) =
            (Tensor::randn([5, 4], PLACE), Tensor::randn([7, 4], PLACE), Tensor::randn([7], PLACE));
        let all = Candidates { ids: (0..7).collect(), log_expected: vec![0.0; 7] };
        let found = losses(&expected, &pairs, &words, &biases, &all).unwrap();
        let logits = expected.linear(&words, Some(&biases));
        let whole = logits.cross_entropy_loss(&pairs.words, None::<&Tensor>, tch::Reduction::None, -100, 0.0);
        assert!((found - whole).abs().max().double_value(&[]) < 1e-12);
    }

    /// What is drawn stands for all words: the expectation of their sum, each divided by how often it was to be
    /// expected, is the sum over all.
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
