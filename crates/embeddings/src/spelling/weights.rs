//! The weights of a generator.

use std::ops::Range;

use kernels::{Parameters, Pool};
use program::random::Random;
use serde::{Deserialize, Serialize};

/// Purpose of random numbers.
const WEIGHTS: u64 = 0x7370_656c_0001;

/// The sizes of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// C, the number of character ids.
    pub ids: usize,
    /// E, the dimension of a character's embedding.
    pub char_dim: usize,
    /// H, the hidden size: a multiple of [`kernels::Sizes::HIDDEN_MULTIPLE`].
    pub hidden: usize,
    /// D, the dimension of a vector.
    pub dim: usize,
}

impl Sizes {
    /// The kernels' sizes: one layer, whose last state is the result.
    pub(crate) fn of_lstm(&self) -> kernels::Sizes {
        let &Self { ids, char_dim, hidden, .. } = self;
        kernels::Sizes {
            ids,
            embedding: char_dim,
            hidden,
            layers: 1,
            linear: 0,
            outputs: 0,
            pool: Pool::Last,
        }
    }

    /// PyTorch's names and the shapes of the weights, in the order of [`Weights::all`].
    pub fn shapes(&self) -> [(&'static str, Vec<usize>); 7] {
        let &Self { ids, char_dim, hidden, dim } = self;
        [
            ("embedding.weight", vec![ids, char_dim]),
            ("lstm.weight_ih_l0", vec![4 * hidden, char_dim]),
            ("lstm.weight_hh_l0", vec![4 * hidden, hidden]),
            ("lstm.bias_ih_l0", vec![4 * hidden]),
            ("lstm.bias_hh_l0", vec![4 * hidden]),
            ("linear.weight", vec![dim, hidden]),
            ("linear.bias", vec![dim]),
        ]
    }
}

/// The weights, or values of the same shapes: gradients or the optimizer's moments.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    sizes: Sizes,
    all: [Vec<f32>; 7],
}

impl Weights {
    /// Zeros.
    pub fn zeros(sizes: Sizes) -> Self {
        Self { sizes, all: sizes.shapes().map(|(_, shape)| vec![0.0; shape.iter().product()]) }
    }

    /// Weights in the order of [`Sizes::shapes`].
    ///
    /// # Panics
    /// If a length is not that of the shape.
    pub fn of(sizes: Sizes, all: [Vec<f32>; 7]) -> Self {
        for ((name, shape), values) in sizes.shapes().iter().zip(&all) {
            assert_eq!(values.len(), shape.iter().product::<usize>(), "{name}");
        }
        Self { sizes, all }
    }

    /// Random weights. Matrices are uniform with the variance of Glorot and Bengio 2010, embeddings uniform with the
    /// variance 1. Biases are 0, except those of forget gates, which are 1 (Jozefowicz et al. 2015).
    pub fn draw(sizes: Sizes, seed: u64, generator: u64) -> Self {
        let mut weights = Self::zeros(sizes);
        for (number, ((name, shape), values)) in (0..).zip(sizes.shapes().iter().zip(&mut weights.all)) {
            let mut random = Random::of(&[WEIGHTS, seed, generator, number]);
            let limit = match (*name, &shape[..]) {
                ("embedding.weight", _) => 3f32.sqrt(),
                // The four gates are four matrices.
                ("lstm.weight_ih_l0" | "lstm.weight_hh_l0", &[gates, inputs]) => glorot(gates / 4, inputs),
                (_, &[outputs, inputs]) => glorot(outputs, inputs),
                _ => 0.0,
            };
            values.iter_mut().for_each(|value| *value = limit * (2.0 * random.uniform() - 1.0));
            if *name == "lstm.bias_ih_l0" {
                values[sizes.hidden..2 * sizes.hidden].fill(1.0);
            }
        }
        weights
    }

    /// The sizes.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The values of each weight, in the order of [`Sizes::shapes`].
    pub fn all(&self) -> &[Vec<f32>; 7] {
        &self.all
    }

    /// Where the values from `begin` to `end` are, if those of all weights are one after another: weights and parts of them.
    pub(crate) fn stretches(
        &self,
        begin: usize,
        end: usize,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let mut first = 0;
        self.all.each_ref().map(Vec::len).into_iter().enumerate().filter_map(move |(number, n)| {
            let (from, to) = (begin.max(first), end.min(first + n));
            let of_weight = from.saturating_sub(first)..to.saturating_sub(first);
            first += n;
            (from < to).then_some((number, of_weight))
        })
    }

    /// These weights with embeddings of the first `n_ids` characters only.
    pub(crate) fn of_first(mut self, n_ids: usize) -> Self {
        self.sizes.ids = n_ids;
        self.all[0].truncate(n_ids * self.sizes.char_dim);
        self
    }

    pub(crate) fn all_mut(&mut self) -> &mut [Vec<f32>; 7] {
        &mut self.all
    }

    pub(crate) fn lstm(&self) -> Parameters<&[f32]> {
        let [embedding, inputs, states, one, other, ..] = self.all.each_ref().map(|values| &values[..]);
        Parameters {
            embedding,
            layers: vec![[inputs, states, one, other]],
            linear: [&[], &[]],
            output: [&[], &[]],
        }
    }

    pub(crate) fn linear(&self) -> [&[f32]; 2] {
        [&self.all[5], &self.all[6]]
    }

    /// The LSTM, and the linear layer.
    pub(crate) fn parts_mut(&mut self) -> (Parameters<&mut [f32]>, [&mut [f32]; 2]) {
        let [embedding, inputs, states, one, other, weights, biases] =
            self.all.each_mut().map(|values| &mut values[..]);
        let layers = vec![[inputs, states, one, other]];
        let none = || [&mut [][..], &mut [][..]];
        (Parameters { embedding, layers, linear: none(), output: none() }, [weights, biases])
    }
}

fn glorot(outputs: usize, inputs: usize) -> f32 {
    (6.0 / (outputs + inputs) as f32).sqrt()
}
