//! Evaluates a model on all rows of a split. The metrics are exact, so they do not depend on the number of
//! ranks.

use tch::{Device, Tensor};

use super::loss::row_losses;
use super::{Answers, Classifier};
use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::inputs::{Inputs, token_rows};
use crate::ranks::Ranks;
use batches::{Arrangement, Batch, Dealing, Loader, Loading, Part, RowWeight, Rows};
use runs::recipe::Recipe;
use scoring::{Counted, Metrics, Scores, Scoring, metrics_of, scores_of};

/// Options of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation {
    /// The split.
    pub part: Part,
    /// Rows per batch.
    pub batch_rows: usize,
    /// The meaning of a row's outputs.
    pub scoring: Scoring,
    /// Number of threads that make batches.
    pub loaders: usize,
}

impl Evaluation {
    /// Options for a split of the dataset that a recipe trains on.
    pub fn of(recipe: &Recipe, part: Part, rows: &Rows, loaders: usize) -> Result<Self> {
        let scoring = recipe.family.scoring(&rows.settings().rows.labels);
        let scoring = scoring.ok_or_else(|| Error::internal(&"the objective has no score for the labels"))?;
        Ok(Self { part, batch_rows: recipe.batch_rows, scoring, loaders })
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
    let (counted, _) = counted(model, rows, ranks, compute, evaluation)?;
    let (sums, mut ranked) = together(&counted, ranks)?;
    Ok(metrics_of(evaluation.scoring, &sums, &mut ranked)?)
}

/// The metrics, and the results of all rows by index. Every rank gets the results of all rows.
pub fn evaluate_rows(
    model: &Classifier,
    rows: &Rows,
    ranks: &Ranks,
    compute: &Compute,
    evaluation: &Evaluation,
) -> Result<(Metrics, Scores)> {
    let (counted, places) = counted(model, rows, ranks, compute, evaluation)?;
    let (sums, ranked) = together(&counted, ranks)?;
    let places = ranks.gather_i64(&places)?;
    // A row without a finite result is not counted and is an error here.
    let metrics = metrics_of(evaluation.scoring, &sums, &mut ranked.clone())?;
    Ok((metrics, scores_of(evaluation.scoring, &places, &ranked)))
}

/// The sums of all ranks and their rows, in rank order.
fn together(counted: &Counted, ranks: &Ranks) -> Result<(Vec<i64>, Vec<i64>)> {
    let mut sums = counted.sums();
    ranks.sum_i64(&mut sums)?;
    Ok((sums, ranks.gather_i64(counted.ranked())?))
}

/// The rows of this rank, and their indices.
fn counted(
    model: &Classifier,
    rows: &Rows,
    ranks: &Ranks,
    compute: &Compute,
    evaluation: &Evaluation,
) -> Result<(Counted, Vec<i64>)> {
    rows.check_rows(evaluation.part)?;
    let loading = Loading {
        part: evaluation.part,
        arrangement: Arrangement::Fixed,
        batch_rows: evaluation.batch_rows,
        from_step: 0,
        dealing: Dealing::Whole { rank: ranks.rank(), world_size: ranks.world_size() },
        row_weight: RowWeight::One,
        loaders: evaluation.loaders,
    };
    let mut counted = Counted::new(evaluation.scoring);
    let mut places = Vec::new();
    let mut answers = Answers::of(model, compute);
    let inputs = Inputs::copied(compute.device());
    for batch in Loader::start(rows, loading)? {
        let batch = batch?;
        count(&mut answers, &inputs, &batch, &mut counted)?;
        places.extend(batch.rows.iter().map(|&row| i64::from(row)));
    }
    Ok((counted, places))
}

fn count(answers: &mut Answers<'_>, inputs: &Inputs<'_>, batch: &Batch, counted: &mut Counted) -> Result<()> {
    if batch.rows.is_empty() {
        return Ok(());
    }
    let outputs = answers.outputs(token_rows(batch, &batch.tokens))?;
    let losses = row_losses(answers.objective(), &outputs, &inputs.targets(batch))?;
    let outputs: Vec<Vec<f64>> = Vec::try_from(&on_cpu(&outputs))?;
    let losses: Vec<f64> = Vec::try_from(&on_cpu(&losses))?;
    for ((outputs, loss), label) in outputs.iter().zip(losses).zip(&batch.labels) {
        counted.add(outputs, *label, loss);
    }
    Ok(())
}

fn on_cpu(tensor: &Tensor) -> Tensor {
    tensor.to_kind(tch::Kind::Double).to_device(Device::Cpu)
}
