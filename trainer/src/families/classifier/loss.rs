//! Losses of the classifier, one per row. Their weighted sum is divided by the number of rows in the whole
//! batch.
//!
//! B: rows of a share; O: outputs.

use runs::recipe::Objective;
use tch::{Kind, Reduction, Tensor};

use crate::error::Result;
use crate::inputs::Targets;

/// The loss of one row with this label and rating, and its gradients with respect to the outputs.
pub fn row_loss(objective: Objective, outputs: &[f32], label: u8, rating: u8, gradients: &mut [f32]) -> f64 {
    match objective {
        Objective::Label { pos_weight } => {
            // ln(1 + e^-x) for a positive row, ln(1 + e^x) for a negative one, in a form that does not overflow.
            let x = f64::from(outputs[0]);
            let (x, sign, weight) = if label == 1 { (-x, -1.0, pos_weight) } else { (x, 1.0, 1.0) };
            gradients[0] = (weight * sign / (1.0 + (-x).exp())) as f32;
            weight * (x.max(0.0) + (-x.abs()).exp().ln_1p())
        }
        Objective::Rating => {
            let difference = f64::from(outputs[0]) - f64::from(rating);
            gradients[0] = (2.0 * difference) as f32;
            difference * difference
        }
        Objective::FiveRatings => cross_entropy(outputs, usize::from(rating) - 1, 1.0, gradients),
        Objective::Classes { class_weights } => {
            let class = usize::from(label);
            cross_entropy(outputs, class, class_weights.all()[class], gradients)
        }
    }
}

/// The softmax cross-entropy of a row with this class, multiplied by a weight.
fn cross_entropy(logits: &[f32], class: usize, weight: f64, gradients: &mut [f32]) -> f64 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let above = |logit: f32| f64::from(logit) - f64::from(largest);
    let sum: f64 = logits.iter().map(|&logit| above(logit).exp()).sum();
    for (at, (&logit, gradient)) in logits.iter().zip(gradients).enumerate() {
        let is_own = if at == class { 1.0 } else { 0.0 };
        *gradient = (weight * (above(logit).exp() / sum - is_own)) as f32;
    }
    weight * (sum.ln() - above(logits[class]))
}

/// The loss of each row, `[B]`, from outputs `[B, O]`.
pub fn row_losses(objective: Objective, outputs: &Tensor, targets: &Targets) -> Result<Tensor> {
    let kind = outputs.kind();
    Ok(match objective {
        Objective::Label { pos_weight } => {
            let labels = targets.labels.f_to_kind(kind)?;
            let pos_weight = Tensor::from(pos_weight).to_kind(kind).to_device(outputs.device());
            outputs.f_squeeze_dim(1)?.f_binary_cross_entropy_with_logits(
                &labels,
                None::<&Tensor>,
                Some(&pos_weight),
                Reduction::None,
            )?
        }
        Objective::Rating => {
            let ratings = targets.ratings.f_to_kind(kind)?;
            (outputs.f_squeeze_dim(1)? - ratings).f_square()?
        }
        Objective::FiveRatings => {
            let classes = (&targets.ratings - 1).f_to_kind(Kind::Int64)?;
            outputs.f_cross_entropy_loss(&classes, None::<&Tensor>, Reduction::None, -100, 0.0)?
        }
        Objective::Classes { class_weights } => {
            let classes = targets.labels.f_to_kind(Kind::Int64)?;
            let weights = Tensor::from_slice(class_weights.all()).to_kind(kind).to_device(outputs.device());
            outputs.f_cross_entropy_loss(&classes, Some(&weights), Reduction::None, -100, 0.0)?
        }
    })
}

#[cfg(test)]
mod tests {
    use runs::recipe::ClassWeights;

    use super::*;

    #[test]
    fn the_loss_of_one_row_is_that_of_a_batch() {
        let objectives = [
            Objective::Label { pos_weight: 1.0 },
            Objective::Label { pos_weight: 0.2 },
            Objective::Rating,
            Objective::FiveRatings,
            Objective::Classes { class_weights: ClassWeights::equal(3) },
            Objective::Classes { class_weights: ClassWeights::of(&[0.5, 2.0, 1.0, 7.0]).unwrap() },
        ];
        for objective in objectives {
            for (label, rating) in [(0, 1), (1, 5), (1, 4), (0, 3), (2, 3)] {
                if label > 1 && !matches!(objective, Objective::Classes { .. }) {
                    continue;
                }
                for scale in [0.0f32, 0.5, 9.0, 60.0] {
                    let n_outputs = objective.n_outputs();
                    let outputs = &[1.0, -0.25, 0.5, -1.0, 0.125].map(|number| number * scale)[..n_outputs];
                    let tensor = Tensor::from_slice(outputs).to_kind(Kind::Double).view([1, -1]);
                    let tensor = tensor.set_requires_grad(true);
                    let targets = Targets {
                        labels: Tensor::from_slice(&[label]),
                        ratings: Tensor::from_slice(&[i64::from(rating)]),
                    };
                    let expected = row_losses(objective, &tensor, &targets).unwrap();
                    expected.sum(Kind::Double).backward();
                    let mut gradients = vec![0.0; n_outputs];
                    let found = row_loss(objective, outputs, label, rating, &mut gradients);
                    let expected = expected.double_value(&[0]);
                    assert!((found - expected).abs() <= 1e-12 * expected.max(1.0), "{found} {expected}");
                    for (at, found) in gradients.iter().enumerate() {
                        let expected = tensor.grad().double_value(&[0, at as i64]);
                        assert!((f64::from(*found) - expected).abs() <= 1e-6 * expected.abs().max(1e-3));
                    }
                }
            }
        }
    }

    #[test]
    fn an_output_that_is_no_number_is_a_loss_that_is_none() {
        let classes = Objective::Classes { class_weights: ClassWeights::equal(5) };
        for objective in
            [Objective::Label { pos_weight: 1.0 }, Objective::Rating, Objective::FiveRatings, classes]
        {
            let outputs = &[f32::NAN, 0.0, 0.0, 0.0, 0.0][..objective.n_outputs()];
            assert!(row_loss(objective, outputs, 1, 5, &mut [0.0; 5]).is_nan());
        }
    }
}
