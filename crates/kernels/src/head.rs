//! The layers after pooling: linear → ReLU → linear. They are small compared with the LSTM, so rows are computed one
//! at a time.
//!
//! P: pooled size; D: size of the linear layer; O: outputs.

use crate::Loss;
use crate::dropout::Dropout;
use crate::matrices::zeros;
use crate::model::Model;

/// Gradient sums of the head and work memory for one row, per thread.
#[derive(Default)]
pub(crate) struct HeadSums {
    /// `[D, P]`
    pub(crate) linear: Vec<f32>,
    pub(crate) linear_bias: Vec<f32>,
    /// `[O, D]`
    pub(crate) output: Vec<f32>,
    pub(crate) output_bias: Vec<f32>,
    /// After ReLU and dropout, `[D]`.
    middle: Vec<f32>,
    middle_gradient: Vec<f32>,
    outputs: Vec<f32>,
    outputs_gradient: Vec<f32>,
}

impl HeadSums {
    pub(crate) fn clear(&mut self, model: &Model) {
        let (linear, outputs) = (model.linear_bias.len(), model.output_bias.len());
        for (numbers, length) in [
            (&mut self.linear, linear * model.pooled()),
            (&mut self.linear_bias, linear),
            (&mut self.output, outputs * linear),
            (&mut self.output_bias, outputs),
            (&mut self.outputs_gradient, outputs),
        ] {
            zeros(numbers, length);
        }
    }

    /// The outputs of a row.
    #[inline(always)]
    pub(crate) fn forward(&mut self, model: &Model, pooled: &[f32], row: usize, dropout: &Dropout) -> &[f32] {
        self.middle.clear();
        self.middle.extend_from_slice(&model.linear_bias);
        for (&number, weights) in pooled.iter().zip(model.linear_columns.chunks_exact(self.middle.len())) {
            add_scaled(&mut self.middle, weights, number);
        }
        // NaN passes through, so that it reaches the output.
        self.middle.iter_mut().for_each(|number| *number = if *number <= 0.0 { 0.0 } else { *number });
        dropout.mask_head(row, &mut self.middle);
        self.outputs.clear();
        self.outputs.extend_from_slice(&model.output_bias);
        for (output, weights) in self.outputs.iter_mut().zip(model.output.chunks_exact(self.middle.len())) {
            *output += self.middle.iter().zip(weights).map(|(number, weight)| number * weight).sum::<f32>();
        }
        &self.outputs
    }

    /// Returns a row's loss, adds the gradients of the head to the sums and writes the gradient of `pooled` to
    /// `gradient`.
    #[inline(always)]
    pub(crate) fn train(
        &mut self,
        model: &Model,
        pooled: &[f32],
        row: usize,
        dropout: &Dropout,
        loss: &Loss<'_>,
        gradient: &mut [f32],
    ) -> f64 {
        self.forward(model, pooled, row, dropout);
        let lost = loss(row, &self.outputs, &mut self.outputs_gradient);

        let width = self.middle.len();
        zeros(&mut self.middle_gradient, width);
        for (output, &by) in self.outputs_gradient.iter().enumerate() {
            self.output_bias[output] += by;
            add_scaled(&mut self.output[output * width..][..width], &self.middle, by);
            add_scaled(&mut self.middle_gradient, &model.output[output * width..][..width], by);
        }
        dropout.mask_head(row, &mut self.middle_gradient);
        gradient.fill(0.0);
        for (at, &number) in self.middle.iter().enumerate() {
            // A value set to 0 by ReLU or dropout has no gradient.
            let by = if number == 0.0 { 0.0 } else { self.middle_gradient[at] };
            self.linear_bias[at] += by;
            add_scaled(&mut self.linear[at * pooled.len()..][..pooled.len()], pooled, by);
            add_scaled(gradient, &model.linear[at * pooled.len()..][..pooled.len()], by);
        }
        lost
    }
}

#[inline(always)]
fn add_scaled(to: &mut [f32], numbers: &[f32], by: f32) {
    for (to, number) in to.iter_mut().zip(numbers) {
        *to += by * number;
    }
}
