//! Chooses the threshold and the calibration of a model on the validation split, after the last epoch.

use batches::Part;
use runs::recipe::{Recipe, ThresholdRule};
use scoring::{Calibrator, Criterion, Decision, Scores, Threshold, calibrate, calibrate_classes};
use serde::{Deserialize, Serialize};
use training::tell::tell;

use super::{Classifier, EvaluatedRows, Evaluation, evaluate_rows};
use crate::compute::Compute;
use crate::error::Result;
use crate::ranks::Ranks;
use crate::train::splits::Splits;

/// Calibration and threshold of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The calibration of probabilities, if there is one.
    pub calibration: Option<Calibrator>,
    /// The threshold, if one is chosen.
    pub threshold: Option<Threshold>,
}

impl Choice {
    /// Chooses what the recipe requires, which has a validation split. The result is the same on all ranks.
    pub fn of(
        recipe: &Recipe,
        model: &Classifier,
        splits: Splits<'_>,
        ranks: &Ranks,
        compute: &Compute,
        loaders: usize,
    ) -> Result<Self> {
        let by = match recipe.threshold {
            Some(ThresholdRule::F1) => Some(Criterion::F1),
            Some(ThresholdRule::Accuracy) => Some(Criterion::Accuracy),
            Some(ThresholdRule::Probability(_)) | None => None,
        };
        let rows = splits.rows_of(Part::Validation).unwrap_or(splits.rows);
        let evaluation = Evaluation::of(recipe, Part::Validation, rows, loaders)?;
        let scoring = evaluation.decision.scoring();
        let scores = match (by, recipe.calibration) {
            (None, None) => Scores::Label(Vec::new()),
            _ => {
                let EvaluatedRows { scores, .. } = evaluate_rows(model, rows, ranks, compute, &evaluation)?;
                scores
            }
        };
        // The machines of other ranks may round otherwise, so all use the numbers of rank 0.
        ranks.of_rank_0(|| {
            let calibration = recipe.calibration.and_then(|method| match &scores {
                Scores::Label(scores) => calibrate(method, scoring, scores),
                Scores::Classes(scores) => Some(calibrate_classes(scores)),
            });
            if recipe.calibration.is_some() && calibration.is_none() {
                tell(
                    "warning: --calibrate platt: higher scores do not go with label 1 in the validation split, so \
                     probabilities are not calibrated",
                );
            }
            let calibrated = Decision::new(scoring, calibration, None);
            let threshold = match (by, &scores, recipe.threshold) {
                (Some(by), Scores::Label(scores), _) => Some(Threshold::best(by, calibrated.threshold(), scores)),
                (None, _, Some(ThresholdRule::Probability(probability))) => calibrated
                    .score_at(probability)
                    .map(|score| Threshold { by: Criterion::Probability, score }),
                _ => None,
            };
            Ok(Self { calibration, threshold })
        })
    }

    /// What was chosen, for a message.
    pub fn described(self, decision: Decision) -> Option<String> {
        let calibration = self.calibration.map(|calibration| match calibration {
            Calibrator::Temperature(temperature) => format!("temperature {temperature:.4}"),
            Calibrator::Platt { slope, intercept } => {
                format!("Platt calibration with slope {slope:.4} and intercept {intercept:.4}")
            }
        });
        let threshold = self.threshold.map(|threshold| {
            let by = match threshold.by {
                Criterion::F1 => ", the highest F1 on the validation split",
                Criterion::Accuracy => ", the highest accuracy on the validation split",
                Criterion::Probability => "",
            };
            match decision.probability(threshold.score) {
                Some(probability) => format!("threshold at probability {probability:.4}{by}"),
                None => format!("threshold at score {:.4}{by}", threshold.score),
            }
        });
        let chosen: Vec<String> = [calibration, threshold].into_iter().flatten().collect();
        (!chosen.is_empty()).then(|| chosen.join("; "))
    }
}
