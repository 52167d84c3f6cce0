//! The gradients of a step: the sum over its batches and over all ranks, by kernels or by PyTorch.

mod sums;

use c10d::{Reducer, ReducerOptions};
use dataset::vocabulary::UNKNOWN;
use kernels::{Engine, Share};
use tch::Tensor;

use sums::Sums;

use crate::compute::{Compute, Tokens};
use crate::error::Result;
use crate::inputs::Inputs;
use crate::loss::{Objective, Task};
use crate::models::{Dropout, Lstm};
use crate::ranks::Ranks;
use crate::times::Stopwatch;
use crate::train::{InStep, Recipe, share_loss};
use batches::Batch;
use batches::random::{Purpose, Random};

/// Adds up gradients.
pub(crate) struct Gradients<'r> {
    ranks: &'r Ranks,
    way: Way<'r>,
}

enum Way<'r> {
    Kernels {
        engine: Box<Engine>,
        objective: Objective,
        sums: Sums,
    },
    /// They are the tensors' own. With several ranks, these are summed while they are computed.
    PyTorch {
        reducer: Option<Reducer<'r>>,
    },
}

impl<'r> Gradients<'r> {
    pub(crate) fn new(recipe: &Recipe, model: &Lstm, compute: &Compute, ranks: &'r Ranks) -> Result<Self> {
        let parameters = model.parameters().tensors();
        let engine = compute.engine(model, recipe.dropout);
        let way = match (engine, recipe.task) {
            (Some(engine), Task::Sentiment(objective)) => {
                let sums = Sums::new(parameters, model.embedding())?;
                Way::Kernels { engine: Box::new(engine), objective, sums }
            }
            _ => {
                let reducer =
                    ranks.group().map(|group| Reducer::new(group, parameters, ReducerOptions::default()));
                Way::PyTorch { reducer: reducer.transpose()? }
            }
        };
        Ok(Self { ranks, way })
    }

    /// Adds those of a batch; the weighted sum of this rank's losses. With the step's last one PyTorch's become those of
    /// all ranks.
    pub(crate) fn add(
        &mut self,
        recipe: &Recipe,
        model: &Lstm,
        inputs: &Inputs<'_>,
        batch: &Batch,
        step: InStep,
        stopwatch: &mut Stopwatch,
    ) -> Result<f64> {
        match &mut self.way {
            Way::Kernels { engine, objective, sums } => {
                if batch.rows.is_empty() {
                    return Ok(0.0);
                }
                let loss = add_by_kernels(engine, *objective, &mut sums.each, recipe, model, batch, step)?;
                if self.ranks.group().is_some() {
                    sums.touch(engine.distinct_ids());
                }
                Ok(loss)
            }
            Way::PyTorch { reducer } => {
                let loss = share_loss(recipe, model, inputs, batch, step)?;
                match reducer {
                    Some(reducer) if step.is_last_batch => stopwatch.backward(reducer, &loss.of_step)?,
                    _ => loss.of_step.f_backward()?,
                }
                Ok(loss.sum)
            }
        }
    }

    /// For how many words kernels have added gradients of embeddings since [`Gradients::over_ranks`]; 0 for a rank alone.
    pub(crate) fn n_touched(&self) -> usize {
        match &self.way {
            Way::Kernels { sums, .. } => sums.n_touched(),
            Way::PyTorch { .. } => 0,
        }
    }

    /// After a step's last batch: makes them those of all ranks, where they are not yet. Each rank's
    /// [`Gradients::n_touched`] is known to all.
    pub(crate) fn over_ranks(&mut self, n_touched: &[usize], stopwatch: &mut Stopwatch) -> Result<()> {
        match (&mut self.way, self.ranks.group()) {
            (Way::Kernels { sums, .. }, Some(group)) => sums.over_ranks(group, n_touched, stopwatch),
            _ => Ok(()),
        }
    }

    /// Those of each of the model's parameters, undefined where there is none.
    pub(crate) fn tensors(&self, model: &Lstm) -> Vec<Tensor> {
        match &self.way {
            Way::Kernels { sums, .. } => sums.each.iter().map(Tensor::shallow_clone).collect(),
            Way::PyTorch { .. } => model.parameters().gradients(),
        }
    }
}

fn add_by_kernels(
    engine: &mut Engine,
    objective: Objective,
    gradients: &mut [Tensor],
    recipe: &Recipe,
    model: &Lstm,
    batch: &Batch,
    step: InStep,
) -> Result<f64> {
    let left = drop_words(batch, recipe.dropout.words, step.masks);
    let tokens = left.as_deref().unwrap_or(&batch.tokens);
    let tokens = Tokens { tokens, longest: batch.longest, lengths: &batch.lengths };
    let loss = |row: usize, outputs: &[f32], gradients: &mut [f32]| {
        let weight = batch.weights[row];
        let loss = objective.row_loss(outputs, batch.labels[row], batch.ratings[row], gradients);
        let by = weight / step.rows as f64;
        gradients.iter_mut().for_each(|gradient| *gradient = (f64::from(*gradient) * by) as f32);
        loss * weight
    };
    let dropout = masks_of(recipe.dropout, step.masks, batch.first_row);
    let weights = model.weights()?;
    let mut gradients = model.numbers_of(gradients)?;
    Ok(engine.train(&weights, tokens.rows(), &dropout, &loss, &mut gradients))
}

fn masks_of(dropout: Dropout, seed: u64, first_row: usize) -> kernels::Dropout {
    kernels::Dropout { layers: Share::of(dropout.layers), head: Share::of(dropout.head), seed, first_row }
}

/// The tokens with some of them unknown, the same ones whichever rank has the row; padding may be too, which nobody
/// reads.
fn drop_words(batch: &Batch, share: f64, masks: u64) -> Option<Vec<i64>> {
    if share == 0.0 {
        return None;
    }
    let below = (share * (1u64 << 32) as f64) as u64;
    let mut left = batch.tokens.clone();
    for (row, tokens) in left.chunks_exact_mut(batch.longest.max(1)).enumerate() {
        let mut random = Random::of(Purpose::Words, &[masks, (batch.first_row + row) as u64]);
        for token in tokens.iter_mut().filter(|_| random.bits() >> 32 < below) {
            *token = i64::from(UNKNOWN);
        }
    }
    Some(left)
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::compute::Answers;
    use crate::models::{Head, LstmSettings, Pool};
    use crate::optim::Rule;
    use crate::schedule::{Decay, Schedule};
    use crate::train::Precision;
    use batches::RowWeight;

    fn recipe(model: LstmSettings, objective: Objective, precision: Precision) -> Recipe {
        Recipe {
            dataset: String::new(),
            plan: None,
            test_fraction: 0.0,
            validation_fraction: 0.0,
            tokens_max: 100,
            model,
            task: Task::Sentiment(objective),
            row_weight: RowWeight::One,
            batch_rows: 100,
            accumulate: 2,
            epochs: 1,
            rule: Rule::Adam,
            weight_decay: 0.0,
            schedule: Schedule {
                base_rate: 0.1,
                base_batch_rows: 1,
                batch_rows: 1,
                warm_up_steps: 0,
                decay: Decay::Constant,
            },
            clip: None,
            dropout: Dropout::default(),
            precision,
            seed: 1,
            patience: None,
            stop_loss: None,
        }
    }

    fn batch(n_rows: usize, longest: usize, ids: u64, seed: u64) -> Batch {
        let mut random = Random::of(Purpose::Order, &[seed]);
        let mut batch = Batch { n_rows_global: n_rows, longest, ..Batch::default() };
        for row in 0..n_rows {
            let length = if row == 0 { longest } else { 1 + random.below(longest as u64) as usize };
            batch.rows.push(row as u32);
            batch.lengths.push(length as i64);
            batch
                .tokens
                .extend((0..length).map(|_| 1 + random.below(ids - 1).min(random.below(ids - 1)) as i64));
            batch.tokens.resize((row + 1) * longest, 0);
            let rating = 1 + random.below(5) as u8;
            batch.ratings.push(rating);
            batch.labels.push(u8::from(rating > 3));
            batch.weights.push(1.0 + random.below(3) as f64);
        }
        batch
    }

    /// The kernels in 32 bits against PyTorch in 64, with the same weights.
    #[test]
    fn gradients_are_those_of_pytorch() {
        let default = LstmSettings {
            ids: 500,
            embedding: 100,
            hidden: 32,
            layers: 2,
            bidirectional: false,
            head: Head::Classifier { pool: Pool::Last, linear: 32, outputs: 1 },
        };
        let other = LstmSettings {
            embedding: 31,
            hidden: 48,
            layers: 1,
            head: Head::Classifier { pool: Pool::MeanMax, linear: 32, outputs: 1 },
            ..default.clone()
        };
        let five = LstmSettings {
            hidden: 16,
            layers: 3,
            head: Head::Classifier { pool: Pool::Last, linear: 32, outputs: 5 },
            ..default.clone()
        };
        for (settings, objective) in [
            (default.clone(), Objective::Label { pos_weight: 1.0 }),
            (default, Objective::Label { pos_weight: 0.2 }),
            (other, Objective::Rating),
            (five, Objective::FiveRatings),
        ] {
            let model = Lstm::new(settings.clone(), 3, Kind::Float, Device::Cpu);
            let mut exact = Lstm::new(settings.clone(), 0, Kind::Double, Device::Cpu);
            exact.parameters_mut().put(model.parameters().tensors()).unwrap();
            let recipe = |precision| recipe(settings.clone(), objective, precision);
            let batches = [batch(100, 100, 500, 1), batch(37, 9, 500, 2)];
            let found = sums(&recipe(Precision::F32), &model, &Compute::kernels().unwrap(), &batches);
            let expected = sums(&recipe(Precision::F64), &exact, &Compute::pytorch(Device::Cpu), &batches);
            assert!((found.0 - expected.0).abs() < 1e-5 * expected.0);
            for ((name, found), expected) in model.parameters().names().iter().zip(found.1).zip(expected.1) {
                let largest = expected.abs().max().double_value(&[]);
                let difference = (found - expected).abs().max().double_value(&[]);
                assert!(difference <= 1e-5 * largest, "{settings:?} {name}: {difference:e} of {largest:e}");
            }

            let answers = |model: &Lstm, compute: Compute| {
                Answers::of(model, &compute).outputs(Tokens::of(&batches[0])).unwrap()
            };
            let found = answers(&model, Compute::kernels().unwrap());
            let difference = found - answers(&exact, Compute::pytorch(Device::Cpu));
            assert!(difference.abs().max().double_value(&[]) < 1e-5);
        }
    }

    /// The losses and gradients of a step of these batches.
    fn sums(recipe: &Recipe, model: &Lstm, compute: &Compute, batches: &[Batch]) -> (f64, Vec<Tensor>) {
        let ranks = Ranks::Alone;
        let mut gradients = Gradients::new(recipe, model, compute, &ranks).unwrap();
        assert_eq!(matches!(gradients.way, Way::Kernels { .. }), compute.team().is_some());
        let inputs = Inputs::copied(Device::Cpu);
        let mut stopwatch = Stopwatch::start(Device::Cpu);
        let mut loss = 0.0;
        for (at, batch) in batches.iter().enumerate() {
            let is_last_batch = at + 1 == batches.len();
            let step = InStep { rows: 137, is_last_batch, masks: 0, generator: 0, candidates: [0; 3] };
            loss += gradients.add(recipe, model, &inputs, batch, step, &mut stopwatch).unwrap();
        }
        (loss, gradients.tensors(model))
    }

    #[test]
    fn the_share_of_words_that_are_left_out_is_the_one_asked_for() {
        let batch = Batch { tokens: (2..10_002).collect(), longest: 100, ..Batch::default() };
        assert_eq!(drop_words(&batch, 0.0, 1), None);
        let left = drop_words(&batch, 0.3, 1).unwrap();
        let n_unknown = left.iter().filter(|&&token| token == i64::from(UNKNOWN)).count();
        // Five standard deviations of 46.
        assert!(n_unknown.abs_diff(3_000) < 230, "{n_unknown}");
        assert!(
            left.iter().zip(&batch.tokens).all(|(left, token)| left == token || *left == i64::from(UNKNOWN))
        );
        assert_ne!(drop_words(&batch, 0.3, 2).unwrap(), left);
    }
}
