//! Dropout. Each mask value is a function of seed, row, layer and index. The forward and the backward pass therefore
//! use the same mask, and the thread that computes a pass does not affect it.

use program::random::mix;

use crate::tile_row::TileRow;

/// Dropout probabilities and the seed of the masks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dropout {
    /// Between LSTM layers.
    pub layers: Share,
    /// Before the output layer.
    pub head: Share,
    /// Seed of the masks, together with the row's index in the whole batch.
    pub seed: u64,
    /// Index of this process's first row in the whole batch.
    pub first_row: usize,
}

/// Dropout probability, in units of 1/65,536. Kept values are scaled up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share(u16);

impl Share {
    /// The nearest probability to `share`, which is at least 0 and less than 1.
    pub fn of(share: f64) -> Self {
        Self((share * 65_536.0).round().clamp(0.0, 65_535.0) as u16)
    }

    pub(crate) fn is_some(self) -> bool {
        self.0 > 0
    }

    /// The factor of a value: 0 if it is dropped.
    #[inline(always)]
    fn factor(self, drawn: u16) -> f32 {
        if drawn < self.0 { 0.0 } else { 65_536.0 / (65_536.0 - f32::from(self.0)) }
    }
}

/// Number of the head, where the mask of an LSTM layer has the layer's number. LSTM layers have lower
/// numbers.
const HEAD: usize = 255;

impl Dropout {
    /// No dropout.
    pub fn none() -> Self {
        Self::default()
    }

    /// Multiplies the values in a tile's slots, `[S, H]`, by the masks after `layer`.
    pub(crate) fn mask_layer(&self, rows: &[TileRow], hidden: usize, layer: usize, numbers: &mut [f32]) {
        for row in rows {
            let of_row = &mut numbers[row.slot * hidden..][..row.length * hidden];
            self.mask(self.layers, row.row, layer, of_row);
        }
    }

    /// Multiplies the input of the output layer by its mask.
    pub(crate) fn mask_head(&self, row: usize, numbers: &mut [f32]) {
        if self.head.is_some() {
            self.mask(self.head, row, HEAD, numbers);
        }
    }

    fn mask(&self, share: Share, row: usize, layer: usize, numbers: &mut [f32]) {
        let stream = mix(self.seed ^ mix(((self.first_row + row) as u64) << 8 | layer as u64));
        for (at, four) in numbers.chunks_mut(4).enumerate() {
            let mut bits = mix(stream.wrapping_add(at as u64));
            for number in four {
                *number *= share.factor(bits as u16);
                bits >>= 16;
            }
        }
    }
}
