//! The gradients of a step, summed over its batches and over all ranks, computed by kernels or by PyTorch.

mod parts;
mod sums;

use std::time::Instant;

use batches::Batch;
use c10d::{Reducer, ReducerOptions};
use kernels::Engine;
use runs::recipe::Recipe;
use tch::{Kind, Tensor};

use self::parts::{Memory, add, loss_with, padded};
use self::sums::Sums;
use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::exchange::Exchange;
use crate::families::classifier::kernels::{add_gradients, engine};
use crate::families::{Lstm, Model, Weighed};
use crate::inputs::Inputs;
use crate::ranks::Ranks;
use crate::train::step::InStep;
use crate::train::times::{Phase, Stopwatch};

/// Accumulates gradients.
pub(crate) struct Gradients<'r> {
    ranks: &'r Ranks,
    way: Way<'r>,
}

enum Way<'r> {
    Kernels {
        engine: Box<Engine>,
        sums: Sums<'r>,
    },
    /// The gradients are stored in the weight tensors. With several ranks, they are reduced during the
    /// backward pass.
    PyTorch {
        reducer: Option<Reducer<'r>>,
        memory: Memory,
    },
}

impl<'r> Gradients<'r> {
    pub(crate) fn new(recipe: &Recipe, model: &Model, compute: &Compute, ranks: &'r Ranks) -> Result<Self> {
        let parameters = model.parameters().tensors();
        let engine = model.classifier().and_then(|classifier| engine(classifier, compute, recipe.dropout));
        let way = match engine {
            Some(engine) => {
                // In rounds, changes of weights are exchanged.
                let exchanged = ranks.group().filter(|_| recipe.sync_every == 1);
                let exchange = exchanged.map(|group| Exchange::new(group, recipe.wire));
                let sums = Sums::new(parameters, Lstm::EMBEDDING, exchange)?;
                Way::Kernels { engine: Box::new(engine), sums }
            }
            None => {
                // The large batches of a pretraining gain from all threads.
                if let Some(classifier) = model.classifier() {
                    compute.begin_pytorch(classifier.lstm().settings());
                }
                let reducer =
                    ranks.group().map(|group| Reducer::new(group, parameters, ReducerOptions::default()));
                Way::PyTorch { reducer: reducer.transpose()?, memory: Memory::default() }
            }
        };
        Ok(Self { ranks, way })
    }

    /// Whether kernels compute the gradients.
    pub(crate) fn are_of_kernels(&self) -> bool {
        matches!(self.way, Way::Kernels { .. })
    }

    /// What the compute time of a share grows with: its tokens, or with PyTorch its tokens and padding.
    pub(crate) fn work(&self, batch: &Batch) -> u64 {
        match self.way {
            Way::Kernels { .. } => batch.lengths.iter().sum::<i64>() as u64,
            Way::PyTorch { .. } => padded(batch),
        }
    }

    /// Adds the gradients of a batch and returns the weighted sum of this rank's losses, a 64-bit number on the device. With PyTorch, the last batch
    /// of a step also reduces the gradients over all ranks.
    pub(crate) fn add(
        &mut self,
        recipe: &Recipe,
        model: &Model,
        inputs: &Inputs<'_>,
        batch: &Batch,
        step: InStep,
        stopwatch: &mut Stopwatch,
    ) -> Result<Tensor> {
        match &mut self.way {
            Way::Kernels { engine, sums } => {
                let classifier = model.classifier().ok_or_else(no_kernels)?;
                if batch.rows.is_empty() {
                    return Ok(Tensor::from(0.0));
                }
                let begin = Instant::now();
                let (soft, sum) = (inputs.soft(batch), &mut sums.table.each);
                let loss =
                    add_gradients(engine, sum, recipe.dropout, classifier, batch, soft.as_deref(), step)?;
                let (took, passes) = (begin.elapsed(), engine.passes());
                let forward = took.saturating_sub(passes.backward);
                stopwatch.note(Phase::Forward, begin, forward);
                stopwatch.note(Phase::Backward, begin + forward, took - forward);
                sums.touch(engine.distinct_ids());
                Ok(Tensor::from(loss))
            }
            Way::PyTorch { reducer, memory } => {
                let parameters = model.parameters().tensors();
                let exchanged = reducer.as_ref().filter(|_| step.is_last_batch && step.is_exchanged);
                let world_size = self.ranks.world_size();
                let sent = || in_ring(parameters.iter().map(bytes_of).sum::<usize>() as u64, world_size);
                // While gradients are exchanged during the backward pass, the share cannot be computed again in parts.
                if let Some(reducer) = exchanged
                    && (batch.rows.is_empty() || memory.is_sufficient_for(batch))
                {
                    let share = || share_loss(recipe, model, inputs, batch, step);
                    match stopwatch.measure(Phase::Forward, share) {
                        Ok(loss) => {
                            stopwatch.backward(reducer, &loss.of_step)?;
                            stopwatch.count_sent(sent());
                            return Ok(loss.sum);
                        }
                        Err(error) if error.is_out_of_memory() && !batch.rows.is_empty() => {}
                        Err(error) => return Err(error),
                    }
                }
                let mut sum = zero(model)?;
                let gradients = memory.gradients(batch, |part, number| {
                    let step = InStep { generator: step.generator.wrapping_add(number), ..step };
                    let share = || share_loss(recipe, model, inputs, part, step);
                    let loss = stopwatch.measure(Phase::Forward, share)?;
                    let backward = || Ok(Tensor::f_run_backward(&[&loss.of_step], parameters, false, false)?);
                    let gradients = stopwatch.compute(Phase::Backward, backward)?;
                    let _ = sum.f_add_(&loss.sum)?;
                    Ok(gradients)
                })?;
                match exchanged {
                    Some(reducer) => {
                        stopwatch.backward(reducer, &loss_with(parameters, &gradients)?)?;
                        stopwatch.count_sent(sent());
                    }
                    None if batch.rows.is_empty() => {}
                    None => stopwatch.compute(Phase::Backward, || accumulate(parameters, gradients))?,
                }
                Ok(sum)
            }
        }
    }

    /// Work of the smallest share that did not fit into memory since the last call.
    pub(crate) fn take_failed(&mut self) -> Option<u64> {
        match &mut self.way {
            Way::Kernels { .. } => None,
            Way::PyTorch { memory, .. } => memory.take_failed(),
        }
    }

    /// What this rank tells the others before [`Gradients::over_ranks`].
    pub(crate) fn announcement(&mut self) -> Vec<u8> {
        match &mut self.way {
            Way::Kernels { sums, .. } => sums.announcement(),
            Way::PyTorch { .. } => Vec::new(),
        }
    }

    /// Reduces the gradients over all ranks, if this has not happened yet. Call it after the last batch of a step.
    pub(crate) fn over_ranks(&mut self, announced: &[Vec<u8>], stopwatch: &mut Stopwatch) -> Result<()> {
        if let Way::Kernels { sums, .. } = &mut self.way
            && self.ranks.group().is_some()
        {
            let sent = stopwatch.measure(Phase::Reduction, || sums.over_ranks(announced))?;
            stopwatch.count_sent(sent);
        }
        Ok(())
    }

    /// The gradient of each parameter; undefined if there is none.
    pub(crate) fn tensors(&self, model: &Model) -> Vec<Tensor> {
        match &self.way {
            Way::Kernels { sums, .. } => sums.table.each.iter().map(Tensor::shallow_clone).collect(),
            Way::PyTorch { .. } => model.parameters().gradients(),
        }
    }
}

/// The size of a tensor's elements in bytes.
fn bytes_of(tensor: &Tensor) -> usize {
    tensor.numel() * tensor.kind().elt_size_in_bytes()
}

/// Bytes that a rank sends in a ring reduction.
fn in_ring(bytes: u64, world_size: usize) -> u64 {
    2 * bytes * (world_size as u64 - 1) / world_size as u64
}

/// Refuses gradients of each step in fewer bits, if PyTorch computes and exchanges them.
pub(crate) fn check_wire(recipe: &Recipe, model: &Model, compute: &Compute, n_ranks: usize) -> Result<()> {
    let engine = model.classifier().and_then(|classifier| engine(classifier, compute, recipe.dropout));
    if n_ranks == 1 || recipe.sync_every > 1 || recipe.wire.is_full() || engine.is_some() {
        return Ok(());
    }
    Err(training::Error::setting(
        "--wire",
        "bf16 for the gradients of PyTorch",
        "full, rounds (--sync-every with more than 1 step), or a model that the kernels compute",
    )
    .into())
}

/// Adds gradients to those of the parameters.
fn accumulate(parameters: &[Tensor], gradients: Vec<Tensor>) -> Result<()> {
    let mut sums: Vec<Tensor> = parameters.iter().map(Tensor::grad).collect();
    if sums.iter().all(Tensor::defined) {
        return add(&mut sums, gradients);
    }
    // Before the first step.
    Ok(loss_with(parameters, &gradients)?.f_backward()?)
}

fn no_kernels() -> Error {
    Error::internal(&"the kernels support only classifiers")
}

/// Losses of a share.
#[derive(Debug)]
pub struct ShareLoss {
    /// A tensor whose gradients are those of the weighted sum divided by the number of rows in the step. Their sum
    /// over all ranks is the gradient of the step.
    pub of_step: Tensor,
    /// Their weighted sum, a 64-bit number on the device.
    pub sum: Tensor,
}

/// Computes the losses of a share with PyTorch.
pub fn share_loss(
    recipe: &Recipe,
    model: &Model,
    inputs: &Inputs<'_>,
    batch: &Batch,
    step: InStep,
) -> Result<ShareLoss> {
    let Weighed { gradients, loss } = if batch.rows.is_empty() {
        Weighed { gradients: nothing(model)?, loss: zero(model)? }
    } else {
        model.loss(recipe, inputs, batch, step)?
    };
    Ok(ShareLoss { of_step: gradients.f_div_scalar(step.rows as f64)?, sum: loss })
}

/// A loss of 0 on the model's device.
fn zero(model: &Model) -> Result<Tensor> {
    Ok(Tensor::f_zeros([], (Kind::Double, model.lstm().embedding().device()))?)
}

/// A loss of 0 with gradients of 0, with which a rank without rows joins the reduction.
fn nothing(model: &Model) -> Result<Tensor> {
    let parameters = model.parameters().tensors();
    let zeros =
        parameters.iter().map(|parameter| Ok(parameter.f_sum(parameter.kind())?.f_mul_scalar(0.0)?));
    let zeros = zeros.collect::<Result<Vec<_>>>()?;
    Ok(Tensor::f_stack(&zeros, 0)?.f_sum(zeros[0].kind())?)
}

#[cfg(test)]
pub(crate) mod tests {
    use tch::Device;

    use super::*;
    use crate::families::classifier::Answers;
    use crate::inputs::token_rows;
    use batches::RowWeight;
    use batches::random::Purpose;
    use runs::recipe::{
        ClassWeights, ClassifierSettings, Decay, Dropout, Family, LstmSettings, Objective, Pool, Precision,
        Rule, Schedule, Wire,
    };

    pub(crate) fn recipe(
        model: LstmSettings,
        settings: ClassifierSettings,
        precision: Precision,
        seed: u64,
    ) -> Recipe {
        Recipe {
            dataset: String::new(),
            plan: None,
            test_fraction: 0.0,
            validation_fraction: 0.0,
            validation: None,
            sample: None,
            fold: None,
            tokens_max: 100,
            model,
            embedding_std: 1.0,
            family: Family::Classifier(settings),
            row_weight: RowWeight::One,
            batch_rows: 100,
            accumulate: 2,
            sync_every: 1,
            wire: Wire::Full,
            balance: None,
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
            seed,
            patience: None,
            stop_loss: None,
            soft_labels: None,
            unlabelled: None,
            with_ngrams: false,
            threshold: None,
            calibration: None,
        }
    }

    fn batch(n_rows: usize, longest: usize, ids: u64, seed: u64) -> Batch {
        let mut random = Purpose::Order.stream(&[seed]);
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

    /// Compares the kernels in 32 bits with PyTorch in 64 bits, with the same weights.
    #[test]
    fn gradients_are_those_of_pytorch() {
        let default = LstmSettings { ids: 500, embedding: 100, hidden: 32, layers: 2, bidirectional: false };
        let other = LstmSettings { embedding: 31, hidden: 48, layers: 1, ..default.clone() };
        let deep = LstmSettings { hidden: 16, layers: 3, ..default.clone() };
        let of = |objective, pool| ClassifierSettings { objective, pool, linear: 32 };
        let class_weights = ClassWeights::of(&[1.0, 0.5, 2.0, 1.0, 3.0]).unwrap();
        for (sizes, settings) in [
            (default.clone(), of(Objective::Label { pos_weight: 1.0 }, Pool::Last)),
            (default, of(Objective::Label { pos_weight: 0.2 }, Pool::Last)),
            (other, of(Objective::Rating, Pool::MeanMax)),
            (deep.clone(), of(Objective::FiveRatings, Pool::Last)),
            (deep, of(Objective::Classes { class_weights }, Pool::MeanMax)),
        ] {
            let recipe = |precision, seed| recipe(sizes.clone(), settings, precision, seed);
            let model = Model::new(&recipe(Precision::F32, 3), Device::Cpu).unwrap();
            let mut exact = Model::new(&recipe(Precision::F64, 0), Device::Cpu).unwrap();
            exact.parameters_mut().put(model.parameters().tensors()).unwrap();
            let recipe = |precision| recipe(precision, 1);
            let mut batches = [batch(100, 100, 500, 1), batch(37, 9, 500, 2)];
            if let Objective::Classes { .. } = settings.objective {
                // One class per rating.
                let labels = |batch: &Batch| batch.ratings.iter().map(|rating| rating - 1).collect();
                batches.iter_mut().for_each(|batch| batch.labels = labels(batch));
            }
            let found = sums(&recipe(Precision::F32), &model, &Compute::kernels(), &batches);
            let expected = sums(&recipe(Precision::F64), &exact, &Compute::pytorch(Device::Cpu), &batches);
            assert!((found.0 - expected.0).abs() < 1e-5 * expected.0);
            for ((name, found), expected) in model.parameters().names().iter().zip(found.1).zip(expected.1) {
                let largest = expected.abs().max().double_value(&[]);
                let difference = (found - expected).abs().max().double_value(&[]);
                assert!(difference <= 1e-5 * largest, "{sizes:?} {name}: {difference:e} of {largest:e}");
            }

            let answers = |model: &Model, compute: Compute| {
                let Model::Classifier(model) = model else { panic!("another family") };
                Answers::of(model, &compute).outputs(token_rows(&batches[0], &batches[0].tokens)).unwrap()
            };
            let found = answers(&model, Compute::kernels());
            let difference = found - answers(&exact, Compute::pytorch(Device::Cpu));
            assert!(difference.abs().max().double_value(&[]) < 1e-5);
        }
    }

    /// The losses and gradients of a step with these batches.
    fn sums(recipe: &Recipe, model: &Model, compute: &Compute, batches: &[Batch]) -> (f64, Vec<Tensor>) {
        let ranks = Ranks::Alone;
        let mut gradients = Gradients::new(recipe, model, compute, &ranks).unwrap();
        assert_eq!(matches!(gradients.way, Way::Kernels { .. }), compute.team().is_some());
        let inputs = Inputs::copied(Device::Cpu);
        let mut stopwatch = Stopwatch::alone(Device::Cpu);
        let mut loss = 0.0;
        for (at, batch) in batches.iter().enumerate() {
            let is_last_batch = at + 1 == batches.len();
            let step = InStep {
                rows: 137,
                is_last_batch,
                is_exchanged: true,
                masks: 0,
                generator: 0,
                candidates: [0; 3],
            };
            let added = gradients.add(recipe, model, &inputs, batch, step, &mut stopwatch).unwrap();
            loss += added.double_value(&[]);
        }
        (loss, gradients.tensors(model))
    }
}
