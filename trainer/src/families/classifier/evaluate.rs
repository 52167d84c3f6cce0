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
use scoring::{Metrics, N_SUMS, RowScore, Scoring, Tally, metrics, unranked};

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
    let (tally, _) = tally(model, rows, ranks, compute, evaluation)?;
    let (sums, mut ranked) = together(&tally, ranks)?;
    Ok(metrics(&sums, &mut ranked)?)
}

/// The metrics, and the score of each row by index. Every rank gets the scores of all rows.
pub fn evaluate_rows(
    model: &Classifier,
    rows: &Rows,
    ranks: &Ranks,
    compute: &Compute,
    evaluation: &Evaluation,
) -> Result<(Metrics, Vec<RowScore>)> {
    let (tally, places) = tally(model, rows, ranks, compute, evaluation)?;
    let (sums, mut ranked) = together(&tally, ranks)?;
    let places = ranks.gather_i64(&places)?;
    let of_row = |(&place, &ranked): (&i64, &i64)| {
        let (score, label) = unranked(ranked);
        RowScore { row: place as u32, label, score }
    };
    let mut scores: Vec<RowScore> = places.iter().zip(&ranked).map(of_row).collect();
    // A row without a finite score is not in the tally and is an error here.
    let metrics = metrics(&sums, &mut ranked)?;
    scores.sort_unstable_by_key(|score| score.row);
    Ok((metrics, scores))
}

/// The sums of all ranks and their rows, in rank order.
fn together(tally: &Tally, ranks: &Ranks) -> Result<([i64; N_SUMS], Vec<i64>)> {
    let mut sums = tally.sums();
    ranks.sum_i64(&mut sums)?;
    Ok((sums, ranks.gather_i64(tally.ranked())?))
}

/// The tally of this rank, and the indices of its rows.
fn tally(
    model: &Classifier,
    rows: &Rows,
    ranks: &Ranks,
    compute: &Compute,
    evaluation: &Evaluation,
) -> Result<(Tally, Vec<i64>)> {
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
    let mut tally = Tally::default();
    let mut places = Vec::new();
    let mut answers = Answers::of(model, compute);
    let inputs = Inputs::copied(compute.device());
    for batch in Loader::start(rows, loading)? {
        let batch = batch?;
        count(&mut answers, &inputs, &batch, evaluation, &mut tally)?;
        places.extend(batch.rows.iter().map(|&row| i64::from(row)));
    }
    Ok((tally, places))
}

fn count(
    answers: &mut Answers<'_>,
    inputs: &Inputs<'_>,
    batch: &Batch,
    evaluation: &Evaluation,
    tally: &mut Tally,
) -> Result<()> {
    if batch.rows.is_empty() {
        return Ok(());
    }
    let outputs = answers.outputs(token_rows(batch, &batch.tokens))?;
    let losses = row_losses(answers.objective(), &outputs, &inputs.targets(batch))?;
    let outputs: Vec<Vec<f64>> = Vec::try_from(&on_cpu(&outputs))?;
    let losses: Vec<f64> = Vec::try_from(&on_cpu(&losses))?;
    for ((outputs, loss), label) in outputs.iter().zip(losses).zip(&batch.labels) {
        tally.add(evaluation.scoring, evaluation.scoring.score(outputs), *label, loss);
    }
    Ok(())
}

fn on_cpu(tensor: &Tensor) -> Tensor {
    tensor.to_kind(tch::Kind::Double).to_device(Device::Cpu)
}
