//! Chooses the threshold and the calibration of a model on the validation split, after the last epoch.

use batches::Part;
use runs::recipe::Recipe;
use scoring::{Choice, Scores};
use training::outcome::NOT_CALIBRATED;
use training::tell::tell;

use super::{Classifier, EvaluatedRows, Evaluation, evaluate_rows};
use crate::compute::Compute;
use crate::error::Result;
use crate::ranks::Ranks;
use crate::train::splits::Splits;

/// Chooses what the recipe requires, which has a validation split. The result is the same on all ranks.
pub fn choose(
    recipe: &Recipe,
    model: &Classifier,
    splits: Splits<'_>,
    ranks: &Ranks,
    compute: &Compute,
    loaders: usize,
) -> Result<Choice> {
    let rows = splits.rows_of(Part::Validation).unwrap_or(splits.rows);
    let evaluation = Evaluation::of(recipe, Part::Validation, rows, loaders)?;
    let scores = match recipe.fits_decision() {
        false => Scores::Label(Vec::new()),
        true => {
            let EvaluatedRows { scores, .. } = evaluate_rows(model, rows, ranks, compute, &evaluation)?;
            scores
        }
    };
    // The machines of other ranks may round otherwise, so all use the numbers of rank 0.
    ranks.of_rank_0(|| {
        let choice = Choice::of(recipe.calibration, recipe.threshold, evaluation.decision.scoring(), &scores);
        if recipe.calibration.is_some() && choice.calibration.is_none() {
            tell(NOT_CALIBRATED);
        }
        Ok(choice)
    })
}
