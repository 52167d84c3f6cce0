//! The loop: fetch, forward, backward, reduce, clip, step, log, save.
//!
//! What comes out is a function of the recipe, the dataset, the number of ranks, and in its last bits of that of threads
//! and the kind of processor: nothing depends on a clock, on how fast anybody is, or on how often the training was
//! interrupted.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::evaluate::{Evaluation, evaluate};
use crate::gradients::Gradients;
use crate::inputs::Inputs;
use crate::loss::Task;
use crate::models::{Candidates, Dropout, Lstm, LstmSettings, Weighed};
use crate::optim::{Optimizer, Rule, clip};
use crate::ranks::Ranks;
use crate::schedule::Schedule;
use crate::times::Stopwatch;
use batches::random::{Purpose, Random};
use batches::{Arrangement, Batch, Dealing, Loader, Loading, Part, Plan, RowWeight, Rows};
use launch::interrupt::Asked;
use runs::training::RankTimes;
use scoring::Metrics;

/// Everything that decides the weights that come out, but for the number of ranks. A training that goes on has the
/// same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The digest of the dataset's rows.
    pub dataset: String,
    /// How it is read in blocks, where it does not fit into memory.
    pub plan: Option<Plan>,
    /// The share of the dataset that is for testing.
    pub test_fraction: f64,
    /// The share that is for validation.
    pub validation_fraction: f64,
    /// The tokens of a row that are read.
    pub tokens_max: u32,
    /// The model.
    pub model: LstmSettings,
    /// What it is for.
    pub task: Task,
    /// What each row weighs.
    pub row_weight: RowWeight,
    /// Rows of a batch, on all ranks together.
    pub batch_rows: usize,
    /// Batches whose gradients make one step.
    pub accumulate: usize,
    /// Times that every row is seen.
    pub epochs: u32,
    /// How gradients change weights.
    pub rule: Rule,
    /// What the rule takes off large weights.
    pub weight_decay: f64,
    /// How fast.
    pub schedule: Schedule,
    /// The most that a step's gradients may have as their norm.
    pub clip: Option<f64>,
    /// What is left out at random.
    pub dropout: Dropout,
    /// How numbers are held.
    pub precision: Precision,
    /// Decides the first weights, the order of rows and what is dropped.
    pub seed: u64,
    /// Epochs without a better validation loss after which it ends.
    pub patience: Option<u32>,
    /// The loss of an epoch's training rows at which it ends.
    pub stop_loss: Option<f64>,
}

impl Recipe {
    /// Refuses a position at which no training of this recipe on so many rows is saved: its name, what it is, and what it
    /// may be.
    pub fn check(
        &self,
        position: &Position,
        n_rows: u64,
    ) -> std::result::Result<(), (&'static str, String, String)> {
        let Position { epoch, batch, steps, epoch_loss, best, has_ended } = *position;
        let (n_batches, accumulate) = (n_rows.div_ceil(self.batch_rows as u64), self.accumulate as u64);
        if epoch >= self.epochs {
            return Err(("epoch", epoch.to_string(), format!("less than {}", self.epochs)));
        }
        if batch > n_batches || !(batch.is_multiple_of(accumulate) || batch == n_batches) {
            return Err((
                "batch",
                batch.to_string(),
                format!("0 to {n_batches}, as steps of {accumulate} end"),
            ));
        }
        let expected = u64::from(epoch) * n_batches.div_ceil(accumulate) + batch.div_ceil(accumulate);
        if steps != expected {
            return Err(("steps", steps.to_string(), format!("{expected}, those of its epochs and batches")));
        }
        if !epoch_loss.is_finite() {
            return Err(("epoch_loss", epoch_loss.to_string(), "a finite sum of losses".to_owned()));
        }
        let is_best = match best {
            Some((loss, of)) => {
                self.validation_fraction > 0.0 && loss.is_finite() && (1..=epoch).contains(&of)
            }
            None => self.validation_fraction == 0.0 || epoch == 0,
        };
        if !is_best {
            return Err((
                "best",
                format!("{best:?}"),
                "the loss and the number of an epoch that is over".to_owned(),
            ));
        }
        match has_ended {
            true => Err(("has_ended", "true".to_owned(), "false: a training that goes on".to_owned())),
            false => Ok(()),
        }
    }

    /// How a part of these rows is evaluated; `None` where the task says nothing of a row.
    pub fn evaluation(&self, part: Part, rows: &Rows, loaders: usize) -> Option<Evaluation> {
        let Task::Sentiment(objective) = self.task else { return None };
        Some(Evaluation {
            part,
            batch_rows: self.batch_rows,
            objective,
            positive_from: rows.settings().rows.positive_from,
            loaders,
        })
    }
}

/// How numbers are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits.
    #[default]
    F32,
    /// 64 bits: slow, to compare with.
    F64,
    /// 32 bits, and 16 (bfloat16) where PyTorch's autocast finds them enough; on GPUs.
    Bf16,
}

impl Precision {
    /// What weights are held in.
    pub fn kind(self) -> Kind {
        match self {
            Self::F32 | Self::Bf16 => Kind::Float,
            Self::F64 => Kind::Double,
        }
    }
}

/// How far a training has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Whole epochs.
    pub epoch: u32,
    /// Batches of the epoch that goes on.
    pub batch: u64,
    /// Steps of the optimizer.
    pub steps: u64,
    /// The sum of this epoch's losses so far, weighted, of all ranks.
    pub epoch_loss: f64,
    /// The least validation loss so far and the epoch it was found after.
    pub best: Option<(f64, u32)>,
    /// Whether it has ended, before its last epoch perhaps.
    pub has_ended: bool,
}

/// A training that goes on: what a checkpoint holds.
#[derive(Debug)]
pub struct Training {
    /// The model.
    pub model: Lstm,
    /// What the optimizer remembers.
    pub optimizer: Optimizer,
    /// How far it is.
    pub position: Position,
    /// The weights with the least validation loss, where there are validation rows.
    pub best: Option<Vec<Tensor>>,
}

impl Training {
    /// One that has not begun.
    pub fn new(recipe: &Recipe, device: Device) -> Self {
        let model = Lstm::new(recipe.model.clone(), recipe.seed, recipe.precision.kind(), device);
        let optimizer = Optimizer::new(recipe.rule, recipe.weight_decay, model.parameters().tensors());
        Self { model, optimizer, position: Position::default(), best: None }
    }
}

/// What has just happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A step of the optimizer.
    Step {
        /// The training after it.
        position: &'a Position,
        /// The batch's mean loss.
        loss: f64,
        /// The learning rate.
        rate: f64,
        /// The norm of the gradients, where they are clipped.
        norm: Option<f64>,
        /// Rows of the batch.
        rows: u64,
        /// What it took.
        took: Duration,
        /// Of that, what was spent waiting for the loaders.
        waited: Duration,
    },
    /// An epoch is over.
    Epoch {
        /// The training after it.
        position: &'a Position,
        /// The mean loss of its rows, while the weights changed.
        loss: f64,
        /// What the validation rows say.
        validation: Option<&'a Metrics>,
        /// What each rank did in this process's part of it.
        ranks: &'a [RankTimes],
    },
}

/// What the loop does beside training.
pub struct Hooks<'a> {
    /// Told of all that happens, on every rank.
    pub on_event: &'a mut dyn FnMut(&Event<'_>),
    /// Asked after every step whether somebody wants a checkpoint; the ranks agree on the answer.
    pub asked: &'a mut dyn FnMut(&Position) -> Option<Asked>,
    /// Saves the training, on every rank.
    pub save: &'a mut dyn FnMut(&Training) -> Result<()>,
}

/// How a call of [`train`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The training is complete.
    Complete,
    /// Somebody asked it to stop; a checkpoint was saved.
    Stopped,
}

/// What has no part in what comes out.
#[derive(Clone, Debug)]
pub struct Options {
    /// What computes.
    pub compute: Compute,
    /// What the tokens of the training rows may take on a GPU; where they take more, batches are copied to it.
    pub device_bytes: u64,
    /// Threads that make batches.
    pub loaders: usize,
}

fn inputs_of(rows: &Rows, device: Device, device_bytes: u64) -> Inputs<'_> {
    match rows.table(Part::Training) {
        Some(table) if device != Device::Cpu && Inputs::resident_bytes(table) <= device_bytes => {
            Inputs::resident(device, table)
        }
        _ => Inputs::copied(device),
    }
}

/// Goes on with a training until it is complete or is asked to stop.
pub fn train(
    recipe: &Recipe,
    rows: &Rows,
    ranks: &Ranks,
    options: &Options,
    training: &mut Training,
    hooks: &mut Hooks<'_>,
) -> Result<End> {
    let Options { compute, loaders, .. } = options;
    let mut gradients = Gradients::new(recipe, &training.model, compute, ranks)?;
    let n_rows = rows.census(Part::Training).rows;
    let inputs = inputs_of(rows, compute.device(), options.device_bytes);
    while !training.position.has_ended {
        let loading = Loading {
            part: Part::Training,
            arrangement: Arrangement::Shuffled {
                seed: recipe.seed,
                epoch: u64::from(training.position.epoch),
            },
            batch_rows: recipe.batch_rows,
            from_step: training.position.batch,
            dealing: Dealing::equal(recipe.batch_rows, ranks.rank(), ranks.world_size()),
            row_weight: recipe.row_weight,
            loaders: *loaders,
        };
        let mut loader = Loader::start(rows, loading)?;
        let mut began = Instant::now();
        let mut waited_s = 0.0;
        let mut own_loss = 0.0;
        let mut stopwatch = Stopwatch::start(compute.device());
        while let Some(batch) = loader.next() {
            let batch = batch?;
            stopwatch.count(batch.rows.len());
            let step = InStep::of(recipe, n_rows, &training.position, batch.step, ranks);
            own_loss += gradients.add(recipe, &training.model, &inputs, &batch, step, &mut stopwatch)?;
            training.position.batch += 1;
            if !step.is_last_batch {
                continue;
            }

            let asked = (hooks.asked)(&training.position);
            let n_touched = gradients.n_touched();
            let agreed = stopwatch.wait(|| agree(ranks, own_loss, n_touched, asked))?;
            own_loss = 0.0;
            if !agreed.loss.is_finite() {
                return Err(Error::Diverged { step: training.position.steps });
            }
            gradients.over_ranks(&agreed.n_touched, &mut stopwatch)?;
            let mut tensors = gradients.tensors(&training.model);
            let norm = recipe.clip.map(|most| clip(&mut tensors, most)).transpose()?;
            let rate = recipe.schedule.rate(training.position.steps);
            let parameters = training.model.parameters().tensors();
            training.optimizer.step(parameters, &mut tensors, rate, compute.team())?;
            training.position.steps += 1;
            training.position.epoch_loss += agreed.loss;

            let waited = loader.waited_s() - waited_s;
            waited_s = loader.waited_s();
            (hooks.on_event)(&Event::Step {
                position: &training.position,
                loss: agreed.loss / step.rows as f64,
                rate,
                norm,
                rows: step.rows,
                took: began.elapsed(),
                waited: Duration::from_secs_f64(waited),
            });
            began = Instant::now();
            match agreed.asked {
                None => {}
                Some(Asked::Checkpoint) => (hooks.save)(training)?,
                Some(Asked::Stop) => {
                    (hooks.save)(training)?;
                    return Ok(End::Stopped);
                }
            }
        }
        let times = stopwatch.stop(ranks, loader.waited_s())?;
        drop(loader);
        end_epoch(recipe, rows, ranks, options, training, &times, hooks)?;
    }
    Ok(End::Complete)
}

/// A batch's place in its step, and what it draws.
#[derive(Clone, Copy, Debug)]
pub struct InStep {
    /// Rows of the step's batches, on all ranks.
    pub rows: u64,
    /// Whether this batch is the last of them.
    pub is_last_batch: bool,
    /// Decides with a row's place in the batch what the kernels' dropout leaves out of it: on all ranks the same.
    pub masks: u64,
    /// Seed of PyTorch's generator, from which its dropout draws; a different one on each rank.
    pub generator: u64,
    /// Decides from which words next ones are told, on all ranks the same.
    pub candidates: [u64; 3],
}

impl InStep {
    fn of(recipe: &Recipe, n_rows: u64, position: &Position, batch: u64, ranks: &Ranks) -> Self {
        let (batch_rows, accumulate) = (recipe.batch_rows as u64, recipe.accumulate as u64);
        let n_batches = n_rows.div_ceil(batch_rows);
        let first = position.batch / accumulate * accumulate;
        let end = (first + accumulate).min(n_batches);
        let [seed, steps, rank] = [recipe.seed, position.steps, ranks.rank() as u64];
        Self {
            rows: (end * batch_rows).min(n_rows) - first * batch_rows,
            is_last_batch: position.batch + 1 == end,
            masks: Random::of(Purpose::Masks, &[seed, steps, batch]).bits(),
            generator: Random::of(Purpose::Dropout, &[seed, steps, batch, rank]).bits(),
            candidates: [seed, steps, batch],
        }
    }
}

/// A share's losses.
#[derive(Debug)]
pub struct ShareLoss {
    /// What has the gradients of their weighted sum divided by the rows of the whole step: those of all ranks add up to
    /// the step's.
    pub of_step: Tensor,
    /// Their weighted sum.
    pub sum: f64,
}

/// Computes a share's losses.
pub fn share_loss(
    recipe: &Recipe,
    model: &Lstm,
    inputs: &Inputs<'_>,
    batch: &Batch,
    step: InStep,
) -> Result<ShareLoss> {
    let Weighed { gradients, loss } = if batch.rows.is_empty() {
        Weighed { gradients: nothing(model)?, loss: 0.0 }
    } else {
        if !recipe.dropout.is_none() {
            tch::manual_seed(step.generator as i64);
        }
        weighed_loss(recipe, model, inputs, batch, step.candidates)?
    };
    Ok(ShareLoss { of_step: gradients / step.rows as f64, sum: loss })
}

fn weighed_loss(
    recipe: &Recipe,
    model: &Lstm,
    inputs: &Inputs<'_>,
    batch: &Batch,
    candidates_key: [u64; 3],
) -> Result<Weighed> {
    let kind = recipe.precision.kind();
    let (tokens, lengths) = inputs.tokens_and_lengths(batch)?;
    let weights = inputs.weights(batch, kind);
    match recipe.task {
        Task::Sentiment(objective) => {
            let forward = || model.forward(&tokens, &lengths, recipe.dropout);
            let outputs = in_precision(recipe.precision, forward)?.to_kind(kind);
            let losses = objective.row_losses(&outputs, &inputs.targets(batch))?; // [B]
            let sum = (losses * weights).f_sum(kind)?;
            Ok(Weighed { loss: sum.f_double_value(&[])?, gradients: sum })
        }
        Task::NextWord { candidates } => {
            let candidates = Candidates::draw(model.settings().ids, candidates, candidates_key);
            let loss = || model.next_word_loss(&tokens, &lengths, &weights, recipe.dropout, &candidates);
            in_precision(recipe.precision, loss)
        }
    }
}

/// The loss of no rows: 0, with gradients of 0, so that a rank without rows joins the reduction as the others do.
fn nothing(model: &Lstm) -> Result<Tensor> {
    let parameters = model.parameters().tensors();
    let zeros = parameters.iter().map(|parameter| Ok((parameter * 0.0).f_sum(parameter.kind())?));
    let zeros = zeros.collect::<Result<Vec<_>>>()?;
    Ok(Tensor::f_stack(&zeros, 0)?.f_sum(zeros[0].kind())?)
}

fn in_precision<T>(precision: Precision, compute: impl FnOnce() -> T) -> T {
    match precision {
        Precision::Bf16 => tch::autocast(true, compute),
        Precision::F32 | Precision::F64 => compute(),
    }
}

/// What all ranks know after a step.
struct Agreed {
    /// The weighted sum of the step's losses.
    loss: f64,
    asked: Option<Asked>,
    /// The words that each rank has gradients for.
    n_touched: Vec<usize>,
}

/// One small exchange among the ranks: the losses, the words that have gradients, and what any rank was asked for.
fn agree(ranks: &Ranks, own_loss: f64, n_touched: usize, asked: Option<Asked>) -> Result<Agreed> {
    let asked_for = |what| f64::from(u8::from(asked == Some(what)));
    let own = [own_loss, n_touched as f64, asked_for(Asked::Stop), asked_for(Asked::Checkpoint)];
    let mut agreed = Agreed { loss: 0.0, asked: None, n_touched: Vec::new() };
    // In the order of the ranks, so that all have the same sum.
    for [loss, n_touched, stop, checkpoint] in ranks.gather_f64(own)? {
        agreed.loss += loss;
        agreed.n_touched.push(n_touched as usize);
        if stop > 0.0 {
            agreed.asked = Some(Asked::Stop);
        } else if checkpoint > 0.0 {
            agreed.asked = agreed.asked.or(Some(Asked::Checkpoint));
        }
    }
    Ok(agreed)
}

fn end_epoch(
    recipe: &Recipe,
    rows: &Rows,
    ranks: &Ranks,
    options: &Options,
    training: &mut Training,
    times: &[RankTimes],
    hooks: &mut Hooks<'_>,
) -> Result<()> {
    let loss = training.position.epoch_loss / rows.census(Part::Training).rows as f64;
    let position = &mut training.position;
    position.epoch += 1;
    position.batch = 0;
    position.epoch_loss = 0.0;
    position.has_ended = position.epoch >= recipe.epochs || recipe.stop_loss.is_some_and(|stop| loss <= stop);

    let mut validation = None;
    let evaluation = recipe.evaluation(Part::Validation, rows, options.loaders);
    if let Some(evaluation) = evaluation.filter(|_| recipe.validation_fraction > 0.0) {
        let metrics = evaluate(&training.model, rows, ranks, &options.compute, &evaluation)?;
        if training.position.best.is_none_or(|(best, _)| metrics.loss < best) {
            training.position.best = Some((metrics.loss, training.position.epoch));
            training.best = Some(training.model.parameters().copies());
        }
        let since_best = training.position.best.map_or(0, |(_, epoch)| training.position.epoch - epoch);
        training.position.has_ended |= recipe.patience.is_some_and(|patience| since_best >= patience);
        validation = Some(metrics);
    }
    (hooks.on_event)(&Event::Epoch {
        position: &training.position,
        loss,
        validation: validation.as_ref(),
        ranks: times,
    });
    Ok(())
}
