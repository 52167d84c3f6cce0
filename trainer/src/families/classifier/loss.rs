//! Losses of the classifier, one per row. Their weighted sum is divided by the number of rows in the whole
//! batch.
//!
//! B: rows of a share; O: outputs.

use runs::recipe::Objective;
use scoring::CLASSES_MAX;
use tch::{Kind, Reduction, Tensor};

use crate::error::Result;
use crate::inputs::{Targets, on_device};

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

/// The loss of one row with a probability of each class in place of its label, and its gradients with respect to the
/// outputs: the mean over all labels, weighted by their probabilities. With two classes, the probability of label 1
/// decides. Probabilities of 0 and 1 give the bits of [`row_loss`]. Objectives of ratings have no soft labels.
pub fn soft_row_loss(
    objective: Objective,
    outputs: &[f32],
    probabilities: &[f32],
    gradients: &mut [f32],
) -> f64 {
    let mut sums = [0.0; CLASSES_MAX];
    let mut of_label = [0.0; CLASSES_MAX];
    let mut lost = 0.0;
    for (label, &probability) in (0..).zip(probabilities) {
        let probability = match objective {
            Objective::Label { .. } if label == 0 => 1.0 - f64::from(probabilities[1]),
            _ => f64::from(probability),
        };
        // Omitted, because 0 × ∞ is not a number.
        if probability > 0.0 {
            lost += probability * row_loss(objective, outputs, label, 1, &mut of_label);
            sums.iter_mut().zip(of_label).for_each(|(sum, one)| *sum += probability * f64::from(one));
        }
    }
    gradients.iter_mut().zip(sums).for_each(|(gradient, sum)| *gradient = sum as f32);
    lost
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
            let labels = match &targets.soft {
                Some(soft) => soft.f_select(1, 1)?.f_to_kind(kind)?,
                None => targets.labels.f_to_kind(kind)?,
            };
            let pos_weight = Tensor::f_full([1], pos_weight, (kind, outputs.device()))?;
            outputs.f_squeeze_dim(1)?.f_binary_cross_entropy_with_logits(
                &labels,
                None::<&Tensor>,
                Some(&pos_weight),
                Reduction::None,
            )?
        }
        Objective::Rating => {
            let ratings = targets.ratings.f_to_kind(kind)?;
            outputs.f_squeeze_dim(1)?.f_sub(&ratings)?.f_square()?
        }
        Objective::FiveRatings => {
            let classes = targets.ratings.f_sub_scalar(1)?.f_to_kind(Kind::Int64)?;
            outputs.f_cross_entropy_loss(&classes, None::<&Tensor>, Reduction::None, -100, 0.0)?
        }
        Objective::Classes { class_weights } => {
            let classes = match &targets.soft {
                Some(soft) => soft.f_to_kind(kind)?,
                None => targets.labels.f_to_kind(Kind::Int64)?,
            };
            let weights = on_device(class_weights.all(), kind, outputs.device())?;
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
                        soft: None,
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
    fn the_soft_loss_of_one_row_is_that_of_a_batch_and_its_gradients_are_differences() {
        let weights = ClassWeights::of(&[0.5, 2.0, 1.0]).unwrap();
        let two: &[&[f32]] = &[&[0.25, 0.75], &[0.9, 0.1], &[0.0, 1.0], &[1.0, 0.0]];
        let three: &[&[f32]] = &[&[0.25, 0.5, 0.25], &[0.9, 0.1, 0.0], &[0.0, 0.0, 1.0]];
        for (objective, rows) in [
            (Objective::Label { pos_weight: 1.0 }, two),
            (Objective::Label { pos_weight: 0.2 }, two),
            (Objective::Classes { class_weights: ClassWeights::equal(3) }, three),
            (Objective::Classes { class_weights: weights }, three),
        ] {
            for (probabilities, scale) in
                rows.iter().flat_map(|row| [0.0f32, 0.5, 9.0, 60.0].map(|by| (row, by)))
            {
                let n_outputs = objective.n_outputs();
                let outputs = &[1.0, -0.25, 0.5].map(|number| number * scale)[..n_outputs];
                let loss = |outputs: &[f32], gradients: &mut [f32]| {
                    soft_row_loss(objective, outputs, probabilities, gradients)
                };
                let mut gradients = vec![0.0; n_outputs];
                let found = loss(outputs, &mut gradients);

                let tensor = Tensor::from_slice(outputs).to_kind(Kind::Double).view([1, -1]);
                let tensor = tensor.set_requires_grad(true);
                let targets = Targets {
                    soft: Some(Tensor::from_slice(probabilities).view([1, -1])),
                    labels: Tensor::from_slice(&[0]),
                    ratings: Tensor::from_slice(&[1i64]),
                };
                let expected = row_losses(objective, &tensor, &targets).unwrap();
                expected.sum(Kind::Double).backward();
                let expected = expected.double_value(&[0]);
                assert!((found - expected).abs() <= 1e-7 * expected.max(1.0), "{found} {expected}");
                for (at, &found) in gradients.iter().enumerate() {
                    let expected = tensor.grad().double_value(&[0, at as i64]);
                    assert!((f64::from(found) - expected).abs() <= 2e-7, "{found} {expected}");
                    // Outputs of 32 bits limit the step.
                    let [mut above, mut below] = [outputs.to_vec(), outputs.to_vec()];
                    above[at] += 0.0625;
                    below[at] -= 0.0625;
                    let step = f64::from(above[at]) - f64::from(below[at]);
                    let ignored = &mut [0.0; 3][..n_outputs];
                    let slope = (loss(&above, ignored) - loss(&below, ignored)) / step;
                    assert!((f64::from(found) - slope).abs() < 2e-3, "{found} {slope}");
                }
            }
        }
    }

    #[test]
    fn probabilities_of_zero_and_one_give_the_bits_of_labels() {
        let weights = ClassWeights::of(&[0.3, 2.0, 1.7]).unwrap();
        for objective in [
            Objective::Label { pos_weight: 0.3 },
            Objective::Classes { class_weights: ClassWeights::equal(3) },
            Objective::Classes { class_weights: weights },
        ] {
            let n_classes = objective.n_outputs().max(2);
            for (label, scale) in (0..n_classes).flat_map(|label| [0.1f32, 7.0, 90.0].map(|by| (label, by))) {
                let outputs = &[0.7, -1.25, 0.3].map(|number| number * scale)[..objective.n_outputs()];
                let mut probabilities = vec![0.0f32; n_classes];
                probabilities[label] = 1.0;
                let [mut soft, mut hard] = [[0.0f32; 3]; 2];
                let of_soft = soft_row_loss(objective, outputs, &probabilities, &mut soft);
                let of_hard = row_loss(objective, outputs, label as u8, 1, &mut hard);
                let bits = |loss: f64, gradients: [f32; 3]| (loss.to_bits(), gradients.map(f32::to_bits));
                assert_eq!(bits(of_soft, soft), bits(of_hard, hard), "{objective:?} {label} {scale}");

                let gradients = |soft: Option<Tensor>| {
                    let outputs = Tensor::from_slice(outputs).view([1, -1]).set_requires_grad(true);
                    let labels = Tensor::from_slice(&[label as u8]);
                    let targets = Targets { soft, labels, ratings: Tensor::from_slice(&[1i64]) };
                    let losses = row_losses(objective, &outputs, &targets).unwrap();
                    losses.sum(Kind::Float).backward();
                    (losses, outputs.grad())
                };
                let soft = gradients(Some(Tensor::from_slice(&probabilities).view([1, -1])));
                let hard = gradients(None);
                assert!(soft.0 == hard.0 && soft.1 == hard.1, "{objective:?} {label} {scale}");
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
