//! The streams of random numbers of a training. A training resumed within an epoch needs no saved generator state.

pub use program::random::Random;

/// Purpose of a stream. Streams of different purposes are independent even if their keys are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// The order of rows and batches. Key: seed, epoch, window.
    Order = 1,
    /// The order of blocks. Key: seed, epoch.
    Blocks = 2,
    /// PyTorch's dropout. Key: seed, step, batch, rank.
    Dropout = 3,
    /// Token dropout in the kernels. Key: a number drawn from `Masks`, and the row's index in the batch.
    Words = 4,
    /// Candidates for next-word prediction. Key: seed, step, batch.
    Candidates = 5,
    /// Dropout in the kernels. Key: seed, step, batch.
    Masks = 6,
    /// Settings of a trial. Key: seed, trial.
    Trial = 7,
}

impl Purpose {
    /// The stream for this purpose and a key. All keys of a purpose have the same length.
    pub fn stream(self, key: &[u64]) -> Random {
        Random::of(&[&[self as u64], key].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_different_purposes_are_independent() {
        let mut order = Purpose::Order.stream(&[7, 1, 0]);
        assert_eq!(order.clone().bits(), Purpose::Order.stream(&[7, 1, 0]).bits());
        assert_ne!(order.bits(), Purpose::Blocks.stream(&[7, 1, 0]).bits());
    }
}
