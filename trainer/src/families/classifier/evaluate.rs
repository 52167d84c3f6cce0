//! Evaluates a model on all rows of a split, or on texts with labels. The metrics are exact, so they do not depend on the
//! number of ranks.

mod texts;

use batches::{Dealing, Loader, Loading, Part, Rows};
use runs::recipe::{Objective, Recipe};
use scoring::{
    Counted, Decision, Intervals, Metrics, ProbabilityQuality, RowTexts, Scores, class_intervals, intervals,
    metrics_of, scores_of,
};
use tch::{Device, Tensor};

pub use self::texts::{EvaluatedTexts, Truth, evaluate_texts};
use super::loss::row_losses;
use super::{Answers, Classifier};
use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::inputs::{Inputs, Targets, token_rows};
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
    /// The key of the text of each row; `None` if rows have distinct texts.
    pub keys: Option<Vec<u64>>,
}

impl EvaluatedRows {
    /// The 95 % confidence intervals of the metrics.
    pub fn intervals(&self, decision: Decision) -> Intervals {
        let texts = self.keys.as_deref().map_or(RowTexts::Distinct, RowTexts::Keys);
        match &self.scores {
            Scores::Label(scores) => intervals(decision, scores, &self.losses, texts),
            Scores::Classes(scores) => class_intervals(decision.calibrator(), scores, &self.losses, texts),
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
    evaluate_here(model, rows, ranks, compute, evaluation)?.of_all(ranks, evaluation.decision)
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

impl Evaluating {
    fn new(decision: Decision) -> Self {
        Self { counted: Counted::new(decision), places: Vec::new(), losses: Vec::new() }
    }

    /// Adds rows: their outputs, `[B, O]`, and labels.
    fn add(
        &mut self,
        outputs: &Tensor,
        targets: &Targets,
        labels: &[u8],
        objective: Objective,
    ) -> Result<()> {
        let losses = row_losses(objective, outputs, targets)?;
        let outputs: Vec<Vec<f64>> = Vec::try_from(&on_cpu(outputs)?)?;
        let losses: Vec<f64> = Vec::try_from(&on_cpu(&losses)?)?;
        for ((outputs, loss), label) in outputs.iter().zip(losses).zip(labels) {
            self.counted.add(outputs, *label, loss);
            self.losses.push(loss.to_bits() as i64);
        }
        Ok(())
    }

    /// The results of all ranks.
    fn of_all(self, ranks: &Ranks, decision: Decision) -> Result<EvaluatedRows> {
        let (sums, ranked) = together(&self.counted, ranks)?;
        let places = ranks.gather_i64(&self.places)?;
        let losses = ranks.gather_i64(&self.losses)?;
        let scoring = decision.scoring();
        // A row without a finite result is not counted and is an error here.
        let metrics = metrics_of(scoring, &sums, &mut ranked.clone())?;
        let mut by_row: Vec<(i64, i64)> = places.iter().copied().zip(losses).collect();
        by_row.sort_unstable();
        let losses = by_row.into_iter().map(|(_, loss)| f64::from_bits(loss as u64)).collect();
        Ok(EvaluatedRows { metrics, scores: scores_of(scoring, &places, &ranked), losses, keys: None })
    }
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
    let mut here = Evaluating::new(evaluation.decision);
    let mut answers = Answers::of(model, compute);
    let inputs = Inputs::copied(compute.device());
    for batch in Loader::start(rows, loading)? {
        let batch = batch?;
        ranks.check()?;
        if !batch.rows.is_empty() {
            let outputs = answers.outputs(token_rows(&batch, &batch.tokens))?;
            here.add(&outputs, &inputs.targets(&batch)?, &batch.labels, answers.objective())?;
        }
        here.places.extend(batch.rows.iter().map(|&row| i64::from(row)));
    }
    Ok(here)
}

fn on_cpu(tensor: &Tensor) -> Result<Tensor> {
    Ok(tensor.f_to_kind(tch::Kind::Double)?.f_to_device(Device::Cpu)?)
}
