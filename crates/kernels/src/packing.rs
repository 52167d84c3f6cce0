//! The order in which weights lie for the kernels.
//!
//! H units of a layer, I inputs of it, L lanes. PyTorch has the four gates of a layer one behind the other, `[4H]`: i,
//! f, g, o. Here the gates of as many units as there are lanes lie together, so that what a state is made of is in the
//! same lanes of four vectors: `[H / L, 4, L]`, called *woven*.

use crate::activation;

/// Where PyTorch has each of the woven gates.
pub(crate) fn woven(hidden: usize, lanes: usize) -> impl Iterator<Item = usize> {
    let blocks = hidden / lanes;
    (0..blocks).flat_map(move |block| {
        (0..4).flat_map(move |gate| (0..lanes).map(move |lane| gate * hidden + block * lanes + lane))
    })
}

/// What the gates at these places are multiplied by on their way forward, so that functions of them are powers of two.
fn scale(gate: usize, hidden: usize) -> f32 {
    const TANH_GATE: usize = 2;
    if gate / hidden == TANH_GATE { activation::TANH } else { activation::LOGISTIC }
}

/// Woven biases, `[4H]`: the sum of both, scaled.
pub(crate) fn biases(out: &mut Vec<f32>, of_inputs: &[f32], of_states: &[f32], lanes: usize) {
    let hidden = of_inputs.len() / 4;
    out.clear();
    out.extend(woven(hidden, lanes).map(|gate| scale(gate, hidden) * (of_inputs[gate] + of_states[gate])));
}

/// Weights for the way forward, scaled, `[H / L, I + H, 4 L]`: of each block of units what comes from inputs, then from states.
/// With no weights of inputs, `[H / L, H, 4 L]`.
pub(crate) fn forward(out: &mut Vec<f32>, of_inputs: &[f32], of_states: &[f32], hidden: usize, lanes: usize) {
    out.clear();
    let gates: Vec<usize> = woven(hidden, lanes).collect();
    for block in gates.chunks_exact(4 * lanes) {
        for weights in [of_inputs, of_states] {
            let columns = weights.len() / (4 * hidden);
            for column in 0..columns {
                out.extend(block.iter().map(|&gate| scale(gate, hidden) * weights[gate * columns + column]));
            }
        }
    }
}

/// Adds gradients that lie as `forward` puts weights to those that lie as PyTorch's.
pub(crate) fn add_back(
    packed: &[f32],
    of_inputs: &mut [f32],
    of_states: &mut [f32],
    hidden: usize,
    lanes: usize,
) {
    let gates: Vec<usize> = woven(hidden, lanes).collect();
    let mut numbers = packed.chunks_exact(4 * lanes);
    for block in gates.chunks_exact(4 * lanes) {
        for gradients in [&mut *of_inputs, &mut *of_states] {
            let columns = gradients.len() / (4 * hidden);
            for (column, numbers) in (0..columns).zip(&mut numbers) {
                for (&gate, number) in block.iter().zip(numbers) {
                    gradients[gate * columns + column] += number;
                }
            }
        }
    }
}

/// Adds the gradients of woven biases to those of both that PyTorch has.
pub(crate) fn add_biases_back(
    woven_biases: &[f32],
    of_inputs: &mut [f32],
    of_states: &mut [f32],
    lanes: usize,
) {
    for (gate, gradient) in woven(of_inputs.len() / 4, lanes).zip(woven_biases) {
        of_inputs[gate] += gradient;
        of_states[gate] += gradient;
    }
}

/// Vectors of a panel, side by side in registers.
pub(crate) const PANEL: usize = 4;

/// Weights for the way back, of woven gates: columns of states, then of inputs, filled up with zeros to whole vectors,
/// in panels of [`PANEL`] vectors, the last of what is left: `[panels, 4H, vectors · L]`.
pub(crate) fn backward(
    out: &mut Vec<f32>,
    of_states: &[f32],
    of_inputs: &[f32],
    hidden: usize,
    lanes: usize,
) {
    out.clear();
    let (states, inputs) = (of_states.len() / (4 * hidden), of_inputs.len() / (4 * hidden));
    let columns = (states + inputs).next_multiple_of(lanes);
    for first in (0..columns).step_by(PANEL * lanes) {
        let panel = first..columns.min(first + PANEL * lanes);
        for gate in woven(hidden, lanes) {
            out.extend(panel.clone().map(|column| match column.checked_sub(states) {
                None => of_states[gate * states + column],
                Some(column) if column < inputs => of_inputs[gate * inputs + column],
                Some(_) => 0.0,
            }));
        }
    }
}

/// `[columns, rows]` of `[rows, columns]`.
pub(crate) fn transpose(out: &mut Vec<f32>, matrix: &[f32], columns: usize) {
    out.clear();
    out.extend((0..columns).flat_map(|column| matrix.iter().skip(column).step_by(columns)));
}
