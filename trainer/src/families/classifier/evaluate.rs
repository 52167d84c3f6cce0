//! Evaluates a model on all rows of a split. The metrics are exact, so they do not depend on the number of
//! ranks.

use batches::{Batch, Dealing, Loader, Loading, Part, Rows};
use runs::recipe::Recipe;
use scoring::{
    Counted, Decision, Intervals, Metrics, ProbabilityQuality, RowTexts, Scores, class_intervals, intervals,
    metrics_of, scores_of,
};
use tch::{Device, Tensor};

use super::loss::row_losses;
use super::{Answers, Classifier};
use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::inputs::{Inputs, token_rows};
use crate::ranks::Ranks;

/// Options of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation {
    /// The split.
    pub part: Part,
    /// Rows per batch.
    pub batch_rows: usize,
    /// How scores become probabilities and labels.
    pub decision: Decision,
    /// Number of threads that make batches.
    pub loaders: usize,
}

/// Metrics of a split, and the rows from which they were computed.
#[derive(Clone, Debug)]
pub struct EvaluatedRows {
    /// The metrics.
    pub metrics: Metrics,
    /// The result of each row, by index.
    pub scores: Scores,
    /// The loss of each row, in the same order.
    pub losses: Vec<f64>,
}

impl EvaluatedRows {
    /// The 95 % confidence intervals of the metrics.
    pub fn intervals(&self, decision: Decision) -> Intervals {
        match &self.scores {
            Scores::Label(scores) => intervals(decision, scores, &self.losses, RowTexts::Distinct),
            Scores::Classes(scores) => {
                class_intervals(decision.calibrator(), scores, &self.losses, RowTexts::Distinct)
            }
        }
    }

    /// The quality of probabilities; `None` if scores have none.
    pub fn probabilities(&self, decision: Decision) -> Option<ProbabilityQuality> {
        match &self.scores {
            Scores::Label(scores) => ProbabilityQuality::of(decision, scores),
            Scores::Classes(scores) => Some(ProbabilityQuality::of_classes(decision.calibrator(), scores)),
        }
    }
}

impl Evaluation {
    /// Options for a split of the dataset that a recipe trains on.
    pub fn of(recipe: &Recipe, part: Part, rows: &Rows, loaders: usize) -> Result<Self> {
        let scoring = recipe.family.scoring(&rows.settings().rows.labels);
        let scoring = scoring.ok_or_else(|| Error::internal(&"the objective has no score for the labels"))?;
        Ok(Self { part, batch_rows: recipe.batch_rows, decision: scoring.into(), loaders })
    }
}

/// The metrics of a split. Rank r takes the batches r, r + world_size, …; all ranks get the same values.
pub fn evaluate(
    model: &Classifier,
    rows: &Rows,
    ranks: &Ranks,
    compute: &Compute,
    evaluation: &Evaluation,
) -> Result<Metrics> {
    let Evaluating { counted, .. } = evaluate_here(model, rows, ranks, compute, evaluation)?;
    let (sums, mut ranked) = together(&counted, ranks)?;
    Ok(metrics_of(evaluation.decision.scoring(), &sums, &mut ranked)?)
}

/// The metrics, and the result and the loss of each row by index. Every rank gets those of all rows.
pub fn evaluate_rows(
    model: &Classifier,
    rows: &Rows,
    ranks: &Ranks,
    compute: &Compute,
    evaluation: &Evaluation,
) -> Result<EvaluatedRows> {
    let Evaluating { counted, places, losses } = evaluate_here(model, rows, ranks, compute, evaluation)?;
    let (sums, ranked) = together(&counted, ranks)?;
    let places = ranks.gather_i64(&places)?;
    let losses = ranks.gather_i64(&losses)?;
    let scoring = evaluation.decision.scoring();
    // A row without a finite result is not counted and is an error here.
    let metrics = metrics_of(scoring, &sums, &mut ranked.clone())?;
    let mut by_row: Vec<(i64, i64)> = places.iter().copied().zip(losses).collect();
    by_row.sort_unstable();
    let losses = by_row.into_iter().map(|(_, loss)| f64::from_bits(loss as u64)).collect();
    Ok(EvaluatedRows { metrics, scores: scores_of(scoring, &places, &ranked), losses })
}

/// The sums of all ranks and their rows, in rank order.
fn together(counted: &Counted, ranks: &Ranks) -> Result<(Vec<i64>, Vec<i64>)> {
    let mut sums = counted.sums();
    ranks.sum_i64(&mut sums)?;
    Ok((sums, ranks.gather_i64(counted.ranked())?))
}

/// The rows of this rank.
struct Evaluating {
    counted: Counted,
    /// The index of each row.
    places: Vec<i64>,
    /// The bits of each row's loss, a 64-bit float.
    losses: Vec<i64>,
}

fn evaluate_here(
    model: &Classifier,
    rows: &Rows,
    ranks: &Ranks,
    compute: &Compute,
    evaluation: &Evaluation,
) -> Result<Evaluating> {
    rows.check_rows(evaluation.part)?;
    let loading = Loading {
        dealing: Dealing::Whole { rank: ranks.rank(), world_size: ranks.world_size() },
        loaders: evaluation.loaders,
        ..Loading::of_evaluation(evaluation.part, evaluation.batch_rows)
    };
    let counted = Counted::new(evaluation.decision);
    let mut here = Evaluating { counted, places: Vec::new(), losses: Vec::new() };
    let mut answers = Answers::of(model, compute);
    let inputs = Inputs::copied(compute.device());
    for batch in Loader::start(rows, loading)? {
        let batch = batch?;
        ranks.check()?;
        count(&mut answers, &inputs, &batch, &mut here)?;
        here.places.extend(batch.rows.iter().map(|&row| i64::from(row)));
    }
    Ok(here)
}

fn count(answers: &mut Answers<'_>, inputs: &Inputs<'_>, batch: &Batch, here: &mut Evaluating) -> Result<()> {
    if batch.rows.is_empty() {
        return Ok(());
    }
    let outputs = answers.outputs(token_rows(batch, &batch.tokens))?;
    let losses = row_losses(answers.objective(), &outputs, &inputs.targets(batch))?;
    let outputs: Vec<Vec<f64>> = Vec::try_from(&on_cpu(&outputs))?;
    let losses: Vec<f64> = Vec::try_from(&on_cpu(&losses))?;
    for ((outputs, loss), label) in outputs.iter().zip(losses).zip(&batch.labels) {
        here.counted.add(outputs, *label, loss);
        here.losses.push(loss.to_bits() as i64);
    }
    Ok(())
}

fn on_cpu(tensor: &Tensor) -> Tensor {
    tensor.to_kind(tch::Kind::Double).to_device(Device::Cpu)
}
