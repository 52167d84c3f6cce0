//! A model's weights in the layout of the kernels.

use crate::packing;
use crate::{Parameters, Pool, Sizes};

/// One LSTM layer.
#[derive(Default)]
pub(crate) struct Layer {
    /// Input size; 0 in the first layer, whose inputs are projected beforehand.
    pub(crate) inputs: usize,
    /// Layout of [`packing::forward`].
    pub(crate) forward: Vec<f32>,
    /// Layout of [`packing::backward`].
    pub(crate) backward: Vec<f32>,
    /// Interleaved.
    pub(crate) biases: Vec<f32>,
}

/// All weights except the embedding.
pub(crate) struct Model {
    pub(crate) hidden: usize,
    pub(crate) embedding: usize,
    pub(crate) pool: Pool,
    pooled: usize,
    pub(crate) layers: Vec<Layer>,
    /// Input weights of the first layer.
    pub(crate) projection: Layer,
    /// `[D, P]`
    pub(crate) linear: Vec<f32>,
    /// `[P, D]`
    pub(crate) linear_columns: Vec<f32>,
    pub(crate) linear_bias: Vec<f32>,
    /// `[O, D]`
    pub(crate) output: Vec<f32>,
    pub(crate) output_bias: Vec<f32>,
}

impl Model {
    pub(crate) fn new(sizes: &Sizes) -> Self {
        Self {
            hidden: sizes.hidden,
            embedding: sizes.embedding,
            pool: sizes.pool,
            pooled: sizes.pooled(),
            layers: (0..sizes.layers).map(|_| Layer::default()).collect(),
            projection: Layer::default(),
            linear: Vec::new(),
            linear_columns: Vec::new(),
            linear_bias: Vec::new(),
            output: Vec::new(),
            output_bias: Vec::new(),
        }
    }

    /// P, the size of a row's pooled vector.
    pub(crate) fn pooled(&self) -> usize {
        self.pooled
    }

    /// Copies changed weights into the kernels' layout.
    pub(crate) fn read(&mut self, weights: &Parameters<&[f32]>, lanes: usize) {
        let hidden = self.hidden;
        for (number, (layer, [of_inputs, of_states, one, other])) in
            self.layers.iter_mut().zip(&weights.layers).enumerate()
        {
            packing::biases(&mut layer.biases, one, other, lanes);
            let of_inputs: &[f32] = if number == 0 { &[] } else { of_inputs };
            layer.inputs = if number == 0 { 0 } else { hidden };
            packing::forward(&mut layer.forward, of_inputs, of_states, hidden, lanes);
            packing::backward(&mut layer.backward, of_states, of_inputs, hidden, lanes);
        }
        let [of_inputs, _, one, other] = &weights.layers[0];
        self.projection.inputs = self.embedding;
        packing::biases(&mut self.projection.biases, one, other, lanes);
        packing::forward(&mut self.projection.forward, of_inputs, &[], hidden, lanes);
        packing::backward(&mut self.projection.backward, &[], of_inputs, hidden, lanes);

        let [linear, linear_bias] = weights.linear;
        let [output, output_bias] = weights.output;
        let pooled = self.pooled();
        packing::transpose(&mut self.linear_columns, linear, pooled);
        for (to, from) in [
            (&mut self.linear, linear),
            (&mut self.linear_bias, linear_bias),
            (&mut self.output, output),
            (&mut self.output_bias, output_bias),
        ] {
            to.clear();
            to.extend_from_slice(from);
        }
    }
}
