//! Token dropout. The dropped tokens of a row do not depend on the rank or the backend.

use std::borrow::Cow;

use batches::Batch;
use batches::random::Purpose;
use dataset::vocabulary::UNKNOWN;
use tch::{Kind, Tensor};

use crate::error::Result;
use crate::inputs::on_device;

/// A batch's tokens, some of which are replaced by the unknown word. Padding may be replaced too, but is never read.
pub(crate) fn drop_words(batch: &Batch, share: f64, masks: u64) -> Cow<'_, [i64]> {
    if share == 0.0 {
        return Cow::Borrowed(&batch.tokens);
    }
    let mut left = batch.tokens.clone();
    each_dropped(batch, share, masks, |place| left[place] = i64::from(UNKNOWN));
    Cow::Owned(left)
}

/// A batch's tokens as a tensor, `[B, T]`, some of which are replaced by the unknown word.
pub(crate) fn drop_words_of(tokens: &Tensor, batch: &Batch, share: f64, masks: u64) -> Result<Tensor> {
    let mut places = Vec::new();
    each_dropped(batch, share, masks, |place| places.push(place as i64));
    if places.is_empty() {
        return Ok(tokens.shallow_clone());
    }
    let (size, places) = (tokens.size(), on_device(&places, Kind::Int64, tokens.device())?);
    Ok(tokens.f_reshape([-1])?.f_index_fill(0, &places, i64::from(UNKNOWN))?.f_view(&size[..])?)
}

/// Calls `drop` with the index of each dropped token. Each row has its own random stream.
fn each_dropped(batch: &Batch, share: f64, masks: u64, mut drop: impl FnMut(usize)) {
    if share == 0.0 {
        return;
    }
    let below = (share * (1u64 << 32) as f64) as u64;
    let longest = batch.longest.max(1);
    for row in 0..batch.tokens.len() / longest {
        let mut random = Purpose::Words.stream(&[masks, (batch.first_row + row) as u64]);
        for place in (row * longest..).take(longest).filter(|_| random.bits() >> 32 < below) {
            drop(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_words_that_are_left_out_is_the_one_asked_for() {
        let batch = Batch { tokens: (2..10_002).collect(), longest: 100, ..Batch::default() };
        assert_eq!(drop_words(&batch, 0.0, 1), batch.tokens);
        let left = drop_words(&batch, 0.3, 1);
        let n_unknown = left.iter().filter(|&&token| token == i64::from(UNKNOWN)).count();
        // Five standard deviations of 46.
        assert!(n_unknown.abs_diff(3_000) < 230, "{n_unknown}");
        assert!(
            left.iter().zip(&batch.tokens).all(|(left, token)| left == token || *left == i64::from(UNKNOWN))
        );
        assert_ne!(drop_words(&batch, 0.3, 2), left);
    }

    #[test]
    fn kernels_and_pytorch_drop_the_same_words() {
        let batch = Batch { tokens: (2..1_002).collect(), longest: 50, first_row: 7, ..Batch::default() };
        let tokens = Tensor::from_slice(&batch.tokens).view([20, 50]);
        let left = drop_words_of(&tokens, &batch, 0.2, 3).unwrap();
        assert_eq!(left.size(), [20, 50]);
        assert_eq!(Vec::<i64>::try_from(&left.view(-1)).unwrap(), *drop_words(&batch, 0.2, 3));
    }
}
