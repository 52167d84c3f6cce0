//! The training loop: fetch, forward, backward, reduce, clip, step, log, balance, save. In a round, ranks step alone, and
//! then exchange their changes.
//!
//! The result depends on the recipe, the dataset and the number of ranks. Its last bits also depend on the number
//! of threads, on the CPU and, if ranks are balanced, on their times. It does not depend on the number of interruptions.

mod agreement;
mod balancing;
pub(crate) mod checkpoint;
mod rounds;
pub mod splits;
pub mod step;
pub mod survival;
pub(crate) mod throttle;
pub mod times;
pub mod trace;

use std::time::Duration;

use batches::balance::{Decision, Measured};
use batches::{Arrangement, Loader, Loading, Part};
use launch::interrupt::Requested;
use program::exit::{Exit, Failed};
use runs::recipe::{Position, Recipe};
use runs::training::RankTimes;
use scoring::Metrics;
use tch::{Device, Kind, Tensor};
use training::tell::tell;

use crate::compute::Compute;
use crate::error::Result;
use crate::families::Model;
use crate::families::classifier::{Evaluation, evaluate};
use crate::gradients::Gradients;
use crate::inputs::Inputs;
use crate::optim::{Optimizer, clip};
use crate::ranks::Ranks;
use crate::train::agreement::{Own, agree, later};
use crate::train::balancing::Balancing;
use crate::train::rounds::Rounds;
use crate::train::splits::Splits;
use crate::train::step::InStep;
use crate::train::survival::Completed;
use crate::train::throttle::Throttle;
use crate::train::times::{Phase, Stopwatch};
use crate::train::trace::Trace;

/// A training in progress. A checkpoint has the same content.
#[derive(Debug)]
pub struct Training {
    /// The model.
    pub model: Model,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// The progress.
    pub position: Position,
    /// The weights with the lowest validation loss, if there is a validation split.
    pub best: Option<Vec<Tensor>>,
    /// What this rank has not sent of its changes in rounds, by row of all weights, if they are sent in fewer bits.
    pub unsent: Option<Tensor>,
    /// Number of batches after the position that this rank began before another one was lost. Not a part of checkpoints.
    pub n_undone: u64,
}

impl Training {
    /// A training before its first step.
    pub fn new(recipe: &Recipe, device: Device) -> Result<Self> {
        let model = Model::new(recipe, device)?;
        let optimizer = Optimizer::new(recipe.rule, recipe.weight_decay, model.parameters().tensors())?;
        Ok(Self { model, optimizer, position: Position::default(), best: None, unsent: None, n_undone: 0 })
    }
}

/// An event of the training loop.
#[derive(Debug)]
pub enum Event<'a> {
    /// An optimizer step, or the steps of a round.
    Step {
        /// The position after the step.
        position: &'a Position,
        /// Mean loss of the step.
        loss: f64,
        /// The learning rate.
        rate: f64,
        /// The gradient norm, if gradients are clipped and exchanged. Reading it waits for the GPU.
        norm: Option<&'a Tensor>,
        /// How far the change of this rank in a round is from the mean of all, relative to the length of the mean.
        drift: Option<f64>,
        /// Number of rows in the step.
        rows: u64,
        /// Number of batches in the step.
        batches: u64,
        /// Time that was spent waiting for the loaders.
        waited: Duration,
        /// The mean share of a batch of the step, by rank.
        shares: &'a [Measured],
    },
    /// A resumed training continues with the decisions of its checkpoint.
    Restored {
        /// The position of the checkpoint.
        position: &'a Position,
        /// The decisions, at least one.
        decisions: &'a [Decision],
    },
    /// Batches are divided differently from a later batch on.
    Shares {
        /// The position when this was decided.
        position: &'a Position,
        /// The shares.
        decision: &'a Decision,
    },
    /// An epoch has ended.
    Epoch {
        /// The position after the epoch.
        position: &'a Position,
        /// Mean training loss of the epoch, measured while the weights changed.
        loss: f64,
        /// Metrics of the validation split.
        validation: Option<&'a Metrics>,
        /// Metrics of the test split, with [`TrainOptions::test_every`].
        test: Option<&'a Metrics>,
        /// Times of each rank in this process's part of the epoch.
        ranks: &'a [RankTimes],
    },
}

/// Callbacks of the training loop.
pub struct Hooks<'a> {
    /// Receives all events, on every rank.
    pub on_event: &'a mut dyn FnMut(&Event<'_>),
    /// Called after every step. Returns a requested checkpoint or stop, if any. The ranks then agree on the
    /// action.
    pub asked: &'a mut dyn FnMut(&Position) -> Option<Requested>,
    /// Called with it. Returns whether ranks wait to join.
    pub has_arrivals: &'a mut dyn FnMut() -> bool,
    /// Saves a checkpoint, on every rank.
    pub save: &'a mut dyn FnMut(&Training) -> Result<()>,
    /// Collects the phases of some steps, on every rank.
    pub trace: Option<&'a mut Trace>,
}

/// How [`train`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The training is complete.
    Complete,
    /// The training was stopped on request, after a checkpoint.
    Stopped,
    /// Ranks wait to join. The training is between two steps or rounds.
    Arrivals,
}

/// Options that are not part of the recipe.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    /// The compute backend.
    pub compute: Compute,
    /// Maximum memory of the training tokens on a GPU. If they need more, each batch is copied.
    pub device_bytes: u64,
    /// Number of threads that make batches.
    pub loaders: usize,
    /// Whether the test split is evaluated after every epoch.
    pub test_every: bool,
    /// Computation of each rank relative to that of its gradients, at least 1; empty if all are 1.
    pub throttle: Vec<f64>,
    /// Whether the training can go on without a lost rank.
    pub survives: bool,
}

fn inputs_of<'a>(splits: Splits<'a>, device: Device, device_bytes: u64) -> Result<Inputs<'a>> {
    let inputs = match splits.rows.table(Part::Training) {
        Some(table) if device != Device::Cpu && Inputs::resident_bytes(table) <= device_bytes => {
            match Inputs::resident(device, table) {
                Err(error) if error.is_out_of_memory() => {
                    tell(
                        "the training tokens do not fit into the memory of the GPU; each batch is copied to it",
                    );
                    Inputs::copied(device)
                }
                resident => resident?,
            }
        }
        _ => Inputs::copied(device),
    };
    Ok(inputs.with_soft(splits.soft))
}

/// Continues a training until it is complete or a stop is requested. If it survives an error, it is in the state of its last
/// complete step or round.
pub fn train(
    recipe: &Recipe,
    splits: Splits<'_>,
    ranks: &Ranks,
    options: &TrainOptions,
    training: &mut Training,
    hooks: &mut Hooks<'_>,
) -> Result<End> {
    let mut completed = Completed::new(options.survives, recipe.sync_every > 1);
    completed.keep(training)?;
    let done = train_on(recipe, splits, ranks, options, training, hooks, &mut completed);
    if done.is_err() {
        completed.restore(training)?;
    }
    done
}

fn train_on(
    recipe: &Recipe,
    splits: Splits<'_>,
    ranks: &Ranks,
    options: &TrainOptions,
    training: &mut Training,
    hooks: &mut Hooks<'_>,
    completed: &mut Completed,
) -> Result<End> {
    let rows = splits.rows;
    let TrainOptions { compute, loaders, .. } = options;
    let mut gradients = Gradients::new(recipe, &training.model, compute, ranks)?;
    let n_rows = rows.n_rows(Part::Training);
    let inputs = inputs_of(splits, compute.device(), options.device_bytes)?;
    let alone = Ranks::Alone;
    let factors = &options.throttle;
    let mut throttle = Throttle::new(factors, ranks.rank(), recipe, &training.model, compute, &alone)?;
    let mut rounds = Rounds::of(recipe, n_rows, ranks);
    let balancing = Balancing::begin(recipe, n_rows, &mut training.position, ranks);
    let decisions = Balancing::restored(&training.position);
    if !decisions.is_empty() {
        (hooks.on_event)(&Event::Restored { position: &training.position, decisions });
    }
    while !training.position.has_ended {
        let loading = Loading {
            part: Part::Training,
            arrangement: Arrangement::Shuffled {
                seed: recipe.seed,
                epoch: u64::from(training.position.epoch),
            },
            batch_rows: recipe.batch_rows,
            from_step: training.position.batch,
            dealing: balancing.dealing(&training.position, ranks),
            row_weight: recipe.row_weight,
            loaders: *loaders,
            ahead: Balancing::ahead(&training.position),
        };
        let mut loader = Loader::start(rows, loading)?;
        let mut waited_before = Duration::ZERO;
        // Of the steps since the last exchange.
        let mut own_loss = Tensor::f_zeros([], (Kind::Double, compute.device()))?;
        let (mut rows_of_all, mut n_batches, mut asked) = (0, 0, None);
        let mut own_rows = 0;
        let mut stopwatch = match ranks {
            Ranks::Alone => Stopwatch::alone(compute.device()),
            Ranks::Several(_) => Stopwatch::among_ranks(compute.device()),
        };
        while let Some(batch) = stopwatch.measure(Phase::Loading, || loader.next()) {
            let batch = batch?;
            stopwatch.count(batch.rows.len(), gradients.work(&batch));
            let mut round = rounds.as_mut();
            let is_exchanged = round.is_none();
            if !is_exchanged {
                // Nothing else tells of a lost rank before the end of the round.
                ranks.check()?;
            }
            completed.begin_batch();
            let step = InStep::of(recipe, n_rows, &training.position, batch.step, is_exchanged, ranks);
            if let Some(round) = &mut round {
                round.note(&training.model, &batch)?;
            }
            own_rows += batch.rows.len() as u64;
            let loss = gradients.add(recipe, &training.model, &inputs, &batch, step, &mut stopwatch)?;
            let _ = own_loss.f_add_(&loss)?;
            if let Some(throttle) = &mut throttle {
                let repeat = || throttle.repeat(recipe, &training.model, &inputs, &batch, step);
                stopwatch.measure(Phase::Backward, repeat)?;
            }
            training.position.batch += 1;
            n_batches += 1;
            if !step.is_last_batch {
                continue;
            }

            rows_of_all += step.rows;
            asked = later((hooks.asked)(&training.position), asked);
            let rate = recipe.schedule.rate(training.position.steps);
            let rate = round.as_ref().map_or(rate, |round| round.rate(rate));
            // Alone, a rank makes the step of the mean gradient of its own rows.
            let share = step.rows as f64 / std::mem::take(&mut own_rows).max(1) as f64;
            let change = |training: &mut Training, gradients: &Gradients<'_>, stopwatch: &mut Stopwatch| {
                let Training { model, optimizer, .. } = training;
                stopwatch.compute(Phase::Optimizer, || {
                    let mut tensors = gradients.tensors(model);
                    if !is_exchanged {
                        scale(&mut tensors, share)?;
                    }
                    let norm = recipe.clip.map(|most| clip(&mut tensors, most)).transpose()?;
                    optimizer.step(model.parameters().tensors(), &mut tensors, rate, compute.team())?;
                    Ok(norm)
                })
            };
            if !is_exchanged {
                change(training, &gradients, &mut stopwatch)?;
            }
            if let Some(round) = &round
                && !round.end_at(&training.position)
            {
                training.position.steps += 1;
                continue;
            }
            let own = Own {
                // Waits until a GPU has computed the losses.
                loss: own_loss.f_double_value(&[])?,
                asked,
                measured: stopwatch.lap(),
                failed: gradients.take_failed(),
                has_arrivals: (hooks.has_arrivals)(),
                announcement: match &mut round {
                    Some(round) => round.announcement(),
                    None => gradients.announcement(),
                },
            };
            let agreed = stopwatch.measure(Phase::Waiting, || agree(ranks, &own))?;
            let _ = own_loss.f_zero_()?;
            asked = None;
            let rows_of_step = std::mem::take(&mut rows_of_all);
            if !agreed.loss.is_finite() {
                let message = format!(
                    "step {}: the training diverged: the loss is not a finite number; lower --rate, or limit the \
                     gradients with --clip",
                    training.position.steps + 1
                );
                return Err(Failed::new(Exit::Settings, message).into());
            }
            let (norm, drift) = match round {
                Some(round) => {
                    let exchange = || round.exchange(training, &agreed.announced);
                    let exchanged = stopwatch.measure(Phase::Reduction, exchange)?;
                    stopwatch.count_sent(exchanged.sent);
                    (None, Some(exchanged.drift))
                }
                None => {
                    gradients.over_ranks(&agreed.announced, &mut stopwatch)?;
                    (change(training, &gradients, &mut stopwatch)?, None)
                }
            };
            training.position.steps += 1;
            training.position.epoch_loss += agreed.loss;
            completed.keep(training)?;

            let spans = stopwatch.end_step();
            if let Some(trace) = &mut hooks.trace {
                stopwatch.aside(|| trace.note(training.position.steps, spans, ranks))?;
            }
            let waited = stopwatch.total(Phase::Loading);
            let event = Event::Step {
                position: &training.position,
                loss: agreed.loss / rows_of_step as f64,
                rate,
                norm: norm.as_ref(),
                drift,
                rows: rows_of_step,
                batches: std::mem::take(&mut n_batches),
                waited: waited - waited_before,
                shares: &agreed.measured,
            };
            stopwatch.aside(|| (hooks.on_event)(&event));
            waited_before = waited;
            for decision in
                balancing.note(&mut training.position, agreed.measured, &agreed.failed, &mut loader)?
            {
                (hooks.on_event)(&Event::Shares { position: &training.position, decision: &decision });
            }
            match agreed.asked {
                None => {}
                Some(Requested::Checkpoint) => stopwatch.aside(|| (hooks.save)(training))?,
                Some(Requested::Stop) => {
                    (hooks.save)(training)?;
                    hooks.trace.as_mut().map_or(Ok(()), |trace| trace.write(ranks))?;
                    return Ok(End::Stopped);
                }
            }
            if agreed.has_arrivals {
                hooks.trace.as_mut().map_or(Ok(()), |trace| trace.write(ranks))?;
                return Ok(End::Arrivals);
            }
        }
        let times = stopwatch.stop(ranks)?;
        drop(loader);
        end_epoch(recipe, splits, ranks, options, training, &times, hooks)?;
        completed.keep(training)?;
        if let Some(decision) = balancing.end_epoch(&mut training.position) {
            (hooks.on_event)(&Event::Shares { position: &training.position, decision: &decision });
        }
    }
    hooks.trace.as_mut().map_or(Ok(()), |trace| trace.write(ranks))?;
    Ok(End::Complete)
}

/// Multiplies gradients.
fn scale(gradients: &mut [Tensor], factor: f64) -> Result<()> {
    for gradient in gradients.iter_mut().filter(|gradient| gradient.defined()) {
        let _ = tch::no_grad(|| gradient.f_mul_scalar_(factor))?;
    }
    Ok(())
}

fn end_epoch(
    recipe: &Recipe,
    splits: Splits<'_>,
    ranks: &Ranks,
    options: &TrainOptions,
    training: &mut Training,
    times: &[RankTimes],
    hooks: &mut Hooks<'_>,
) -> Result<()> {
    let loss = training.position.epoch_loss / splits.rows.n_rows(Part::Training) as f64;
    let position = &mut training.position;
    position.epoch += 1;
    position.batch = 0;
    position.epoch_loss = 0.0;
    position.has_ended = position.epoch >= recipe.epochs || recipe.stop_loss.is_some_and(|stop| loss <= stop);

    let model = training.model.classifier();
    let metrics_of = |part| {
        let of = model.zip(splits.rows_of(part));
        of.map(|(model, rows)| {
            let evaluation = Evaluation::of(recipe, part, rows, options.loaders)?;
            evaluate(model, rows, ranks, &options.compute, &evaluation)
        })
        .transpose()
    };
    let validation = if recipe.has_validation() { metrics_of(Part::Validation)? } else { None };
    let test = if options.test_every { metrics_of(Part::Test)? } else { None };
    if let Some(metrics) = &validation {
        if training.position.best.is_none_or(|(best, _)| metrics.loss < best) {
            training.position.best = Some((metrics.loss, training.position.epoch));
            training.best = Some(training.model.parameters().copies()?);
        }
        let since_best = training.position.best.map_or(0, |(_, epoch)| training.position.epoch - epoch);
        training.position.has_ended |= recipe.patience.is_some_and(|patience| since_best >= patience);
    }
    (hooks.on_event)(&Event::Epoch {
        position: &training.position,
        loss,
        validation: validation.as_ref(),
        test: test.as_ref(),
        ranks: times,
    });
    Ok(())
}
