//! A model's answers for all rows of a part, counted exactly, whatever the number of ranks.

use tch::{Device, Tensor};

use crate::batches::{Arrangement, Batch, Dealing, Loader, Loading, Part, RowWeight, Rows};
use crate::error::Result;
use crate::inputs::Inputs;
use crate::loss::Objective;
use crate::metrics::{Metrics, Tally, metrics};
use crate::models::{Dropout, Lstm};
use crate::ranks::Ranks;

/// How an evaluation goes.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation {
    /// Which rows.
    pub part: Part,
    /// Rows that are computed at once.
    pub batch_rows: usize,
    /// What the model was trained for.
    pub objective: Objective,
    /// The smallest rating whose label is 1.
    pub positive_from: u8,
    /// Where the model is.
    pub device: Device,
    /// Threads that make batches.
    pub loaders: usize,
}

/// The metrics of a part's rows. Every rank takes every so manieth batch and gets the same numbers.
pub fn evaluate(model: &Lstm, rows: &Rows, ranks: &Ranks, evaluation: &Evaluation) -> Result<Metrics> {
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
    for batch in Loader::start(rows, loading)? {
        count(model, &batch?, evaluation, &mut tally)?;
    }
    let mut sums = tally.sums();
    ranks.sum_i64(&mut sums)?;
    let mut ranked = ranks.gather_i64(tally.ranked())?;
    metrics(&sums, &mut ranked)
}

fn count(model: &Lstm, batch: &Batch, evaluation: &Evaluation, tally: &mut Tally) -> Result<()> {
    if batch.rows.is_empty() {
        return Ok(());
    }
    let scoring = evaluation.objective.scoring(evaluation.positive_from);
    let (outputs, losses) = tch::no_grad(|| -> Result<(Vec<Vec<f64>>, Vec<f64>)> {
        let inputs = Inputs::copied(evaluation.device);
        let (tokens, lengths) = inputs.tokens_and_lengths(batch)?;
        let outputs = model.forward(&tokens, &lengths, Dropout::default())?;
        let losses = evaluation.objective.row_losses(&outputs, &inputs.targets(batch))?;
        Ok((Vec::try_from(&on_cpu(&outputs))?, Vec::try_from(&on_cpu(&losses))?))
    })?;
    for ((outputs, loss), label) in outputs.iter().zip(losses).zip(&batch.labels) {
        tally.add(scoring, scoring.score(outputs), *label, loss);
    }
    Ok(())
}

fn on_cpu(tensor: &Tensor) -> Tensor {
    tensor.to_kind(tch::Kind::Double).to_device(Device::Cpu)
}
