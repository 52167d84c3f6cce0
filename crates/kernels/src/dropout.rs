//! What is left out at random in training. Each number that is asked about is a function of the seed, the row, the layer
//! and the place, so that the same is left out on the way forward and back, whichever thread does it.

use crate::tile_row::TileRow;

/// Shares that are left out, and what decides which.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dropout {
    /// Of the states between layers.
    pub layers: Share,
    /// Of the numbers before the output.
    pub head: Share,
    /// Decides which, with the row's place in the whole batch.
    pub seed: u64,
    /// The place in the whole batch of the first row that this process has.
    pub first_row: usize,
}

/// A share that is left out, in 65,536ths; what is kept is scaled up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share(u16);

impl Share {
    /// The nearest to a number of 0 or more and less than 1.
    pub fn of(share: f64) -> Self {
        Self((share * 65_536.0).round().clamp(0.0, 65_535.0) as u16)
    }

    pub(crate) fn is_some(self) -> bool {
        self.0 > 0
    }

    /// What a number is multiplied by that has this drawn for it.
    #[inline(always)]
    fn factor(self, drawn: u16) -> f32 {
        if drawn < self.0 { 0.0 } else { 65_536.0 / (65_536.0 - f32::from(self.0)) }
    }
}

/// The head comes behind all layers.
const HEAD: usize = 255;

impl Dropout {
    /// Nothing is left out.
    pub fn none() -> Self {
        Self::default()
    }

    /// Multiplies what lies in the slots of a tile, `[S, H]`, by the masks behind a layer.
    pub(crate) fn mask_layer(&self, rows: &[TileRow], hidden: usize, layer: usize, numbers: &mut [f32]) {
        for row in rows {
            let of_row = &mut numbers[row.slot * hidden..][..row.length * hidden];
            self.mask(self.layers, row.row, layer, of_row);
        }
    }

    /// Multiplies what goes into the output by its mask.
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

/// A step of SplitMix64 (Steele, Lea & Flood 2014): neighbouring numbers become unrelated ones.
fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}
