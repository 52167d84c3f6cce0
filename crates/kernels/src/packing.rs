//! Converts weights between PyTorch's layout and the kernels' layout.
//!
//! H: hidden size; I: input size; L: lanes. PyTorch concatenates the four gates of a layer, `[4H]`: i, f, g, o. The
//! kernels' layout is *interleaved*, `[H / L, 4, L]`: the four gates of L units are adjacent. The gates of one unit
//! are then in the same lane of four vectors.

use crate::simd::activation;

/// PyTorch's index of each interleaved gate.
pub(crate) fn interleaved(hidden: usize, lanes: usize) -> impl Iterator<Item = usize> {
    let blocks = hidden / lanes;
    (0..blocks).flat_map(move |block| {
        (0..4).flat_map(move |gate| (0..lanes).map(move |lane| gate * hidden + block * lanes + lane))
    })
}

/// The factor of a gate's weights for the forward pass. It saves a multiplication in the gate's activation.
fn scale(gate: usize, hidden: usize) -> f32 {
    const TANH_GATE: usize = 2;
    if gate / hidden == TANH_GATE { activation::TANH } else { activation::LOGISTIC }
}

/// Interleaved biases, `[4H]`: the sum of input and state biases, scaled.
pub(crate) fn biases(out: &mut Vec<f32>, of_inputs: &[f32], of_states: &[f32], lanes: usize) {
    let hidden = of_inputs.len() / 4;
    out.clear();
    out.extend(
        interleaved(hidden, lanes).map(|gate| scale(gate, hidden) * (of_inputs[gate] + of_states[gate])),
    );
}

/// Scaled weights for the forward pass, `[H / L, I + H, 4 L]`: per block of units first the input weights, then the
/// state weights. Without input weights, `[H / L, H, 4 L]`.
pub(crate) fn forward(out: &mut Vec<f32>, of_inputs: &[f32], of_states: &[f32], hidden: usize, lanes: usize) {
    out.clear();
    let gates: Vec<usize> = interleaved(hidden, lanes).collect();
    for block in gates.chunks_exact(4 * lanes) {
        for weights in [of_inputs, of_states] {
            let columns = weights.len() / (4 * hidden);
            for column in 0..columns {
                out.extend(block.iter().map(|&gate| scale(gate, hidden) * weights[gate * columns + column]));
            }
        }
    }
}

/// Adds gradients in the layout of [`forward`] to gradients in PyTorch's layout.
pub(crate) fn add_back(
    packed: &[f32],
    of_inputs: &mut [f32],
    of_states: &mut [f32],
    hidden: usize,
    lanes: usize,
) {
    let gates: Vec<usize> = interleaved(hidden, lanes).collect();
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

/// Adds the gradients of interleaved biases to those of PyTorch's input and state biases.
pub(crate) fn add_biases_back(
    interleaved_biases: &[f32],
    of_inputs: &mut [f32],
    of_states: &mut [f32],
    lanes: usize,
) {
    for (gate, gradient) in interleaved(of_inputs.len() / 4, lanes).zip(interleaved_biases) {
        of_inputs[gate] += gradient;
        of_states[gate] += gradient;
    }
}

/// Vectors per panel, which are in registers together.
pub(crate) const PANEL: usize = 4;

/// Weights for the backward pass, with interleaved gates: state columns, then input columns, padded with zeros to
/// whole vectors. They are split into panels of [`PANEL`] vectors, the last of which may be narrower: `[panels, 4H,
/// vectors · L]`.
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
        for gate in interleaved(hidden, lanes) {
            out.extend(panel.clone().map(|column| match column.checked_sub(states) {
                None => of_states[gate * states + column],
                Some(column) if column < inputs => of_inputs[gate * inputs + column],
                Some(_) => 0.0,
            }));
        }
    }
}

/// Any weights `[K, columns]` in such panels: `[panels, K, vectors · L]`.
pub(crate) fn panels(
    out: &mut Vec<f32>,
    [n_rows, columns]: [usize; 2],
    lanes: usize,
    weight: impl Fn(usize, usize) -> f32,
) {
    out.clear();
    let padded = columns.next_multiple_of(lanes);
    for first in (0..padded).step_by(PANEL * lanes) {
        let panel = first..padded.min(first + PANEL * lanes);
        for row in 0..n_rows {
            out.extend(panel.clone().map(|column| if column < columns { weight(row, column) } else { 0.0 }));
        }
    }
}

/// Transposes `[rows, columns]` into `[columns, rows]`.
pub(crate) fn transpose(out: &mut Vec<f32>, matrix: &[f32], columns: usize) {
    out.clear();
    out.extend((0..columns).flat_map(|column| matrix.iter().skip(column).step_by(columns)));
}
