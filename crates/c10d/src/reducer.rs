//! PyTorch's gradient reducer, the engine of DistributedDataParallel: buckets of gradients are summed over the ranks
//! while backward still computes the rest.

use std::time::Duration;

use tch::Tensor;

use crate::error::{Error, Result};
use crate::ffi;
use crate::group::ProcessGroup;
use crate::shape::Shape;

const MAKING: &str = "making a reducer";

/// How gradients are put together.
///
/// ```
/// let options = c10d::ReducerOptions { find_unused: true, ..Default::default() };
/// assert_eq!(options.bucket_bytes, 25 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReducerOptions {
    /// What ranks' gradients become.
    pub reduction: GradientReduction,
    /// The size of the first bucket to be ready: small, so that communication begins early.
    pub first_bucket_bytes: usize,
    /// The size of the other buckets.
    pub bucket_bytes: usize,
    /// Whether some ranks may leave parameters unused in some steps. It costs a walk over the graph and one more
    /// small all-reduce a step; without it such a step is an error.
    pub find_unused: bool,
}

impl Default for ReducerOptions {
    /// PyTorch's sizes; gradients are summed, so that each rank divides its loss by what the whole batch counts.
    fn default() -> Self {
        Self {
            reduction: GradientReduction::Sum,
            first_bucket_bytes: 1 << 20,
            bucket_bytes: 25 << 20,
            find_unused: false,
        }
    }
}

/// What the gradients of the ranks become.
///
/// ```
/// # use c10d::{Backend, GradientReduction, Launch, Options, ProcessGroup, Reducer, ReducerOptions};
/// # use tch::{Kind, Tensor};
/// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
/// let weight = Tensor::from_slice(&[2.0f64, 3.0]).set_requires_grad(true);
/// let options = ReducerOptions { reduction: GradientReduction::Mean, ..Default::default() };
/// let reducer = Reducer::new(&group, &[weight.shallow_clone()], options)?;
/// reducer.backward(&weight.sum(Kind::Double))?;
/// assert_eq!(weight.grad(), Tensor::from_slice(&[1.0f64, 1.0]));
/// # Ok::<(), c10d::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientReduction {
    /// Their sum: right for any split of a batch when each rank's loss is its own sum over the global count.
    Sum,
    /// Their mean, as DistributedDataParallel: right only where every rank has the same number of rows.
    Mean,
}

/// When a bucket of gradients was ready and when it was reduced, from the start of backward.
///
/// ```
/// use std::time::Duration;
/// let (ready, reduced) = (Duration::from_millis(3), Some(Duration::from_millis(5)));
/// let bucket = c10d::BucketTimes { bytes: 1 << 20, ready, reduced };
/// assert!(bucket.reduced.is_some_and(|reduced| reduced > bucket.ready));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketTimes {
    /// Its size.
    pub bytes: u64,
    /// Its last gradient was there, and its reduction began.
    pub ready: Duration,
    /// Its reduction ended. None on a GPU, whose work the processor does not see.
    pub reduced: Option<Duration>,
}

/// Reduces the gradients of one model's parameters, which every rank has alike and in the same order. Buckets are filled
/// from the last parameter to the first and never change, so that a training that goes on in another process sums in
/// the same order, bit for bit.
///
/// After [`backward`](Self::backward) each parameter's gradient is that of all ranks, with what each held before: a
/// gradient that has been reduced is to be set to zero before the next step. A parameter that no rank used keeps its
/// gradient as it was. A backward that does not go through this value only adds to the gradients of this rank: so
/// gradients are accumulated over several batches and then reduced once.
///
/// ```
/// use c10d::{Backend, Launch, Options, ProcessGroup, Reducer, ReducerOptions};
/// use tch::{Kind, Tensor};
///
/// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
/// let weight = Tensor::from_slice(&[2.0f64, 3.0]).set_requires_grad(true);
/// let reducer = Reducer::new(&group, &[weight.shallow_clone()], ReducerOptions::default())?;
///
/// let loss = (&weight * &weight).sum(Kind::Double);
/// reducer.backward(&loss)?;
/// assert_eq!(weight.grad(), Tensor::from_slice(&[4.0f64, 6.0]));
/// # Ok::<(), c10d::Error>(())
/// ```
pub struct Reducer<'g> {
    // Before the group, which it uses until it is freed.
    inner: ffi::Reducer,
    group: &'g ProcessGroup,
}

impl std::fmt::Debug for Reducer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reducer({:?})", self.group)
    }
}

impl<'g> Reducer<'g> {
    /// Takes over the gradients of `parameters`. All ranks call it, with parameters alike in number, kind and shape;
    /// where they are not, that is every rank's error, which names the first that differs.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, Reducer, ReducerOptions};
    /// # use tch::Tensor;
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let weight = Tensor::from_slice(&[2.0f64, 3.0]).set_requires_grad(true);
    /// let frozen = Tensor::from_slice(&[1.0f64]);
    /// let refused = Reducer::new(&group, &[weight, frozen], ReducerOptions::default()).unwrap_err();
    /// assert_eq!(refused.to_string(), "making a reducer: parameter 1 takes no gradient of its own");
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn new(group: &'g ProcessGroup, parameters: &[Tensor], options: ReducerOptions) -> Result<Self> {
        check_parameters(group, parameters)?;
        check_alike(group, parameters)?;
        ffi::Reducer::new(
            group.raw(),
            parameters,
            options.first_bucket_bytes,
            options.bucket_bytes,
            options.find_unused,
            options.reduction == GradientReduction::Mean,
        )
        .map(|inner| Self { inner, group })
        .map_err(|failure| group.explain(MAKING, failure))
    }

    /// Computes the gradients of `loss` and reduces them. Every rank calls it, one with an empty share of the batch
    /// too: its loss is then a sum over no rows, which still depends on the parameters. Errors: also a loss that does
    /// not depend on every parameter, or, with `find_unused`, on none; the other ranks wait for this one's share then,
    /// so it is the end of the group.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, Reducer, ReducerOptions};
    /// # use tch::{Kind, Tensor};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let weight = Tensor::from_slice(&[2.0f64, 3.0]).set_requires_grad(true);
    /// let bias = Tensor::from_slice(&[1.0f64]).set_requires_grad(true);
    /// let parameters = [weight.shallow_clone(), bias.shallow_clone()];
    /// let reducer = Reducer::new(&group, &parameters, ReducerOptions::default())?;
    ///
    /// reducer.backward(&((&weight * &weight).sum(Kind::Double) + bias.sum(Kind::Double)))?;
    /// assert_eq!(weight.grad(), Tensor::from_slice(&[4.0f64, 6.0]));
    ///
    /// let refused = reducer.backward(&weight.sum(Kind::Double)).unwrap_err();
    /// assert!(refused.to_string().contains("did not use every parameter"));
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn backward(&self, loss: &Tensor) -> Result<()> {
        self.group.agree("backward", String::new)?;
        self.inner.prepare(&[loss]).map_err(|failure| self.group.explain("backward", failure))?;
        loss.f_backward().map_err(|error| self.group.explain_torch("backward", &error))?;
        self.inner.finish().map_err(|failure| self.group.explain("backward", failure))
    }

    /// When each bucket of the last backward was ready and reduced, in the order in which they were ready.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, Reducer, ReducerOptions};
    /// # use tch::{Kind, Tensor};
    /// # let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// # let weight = Tensor::from_slice(&[2.0f64, 3.0]).set_requires_grad(true);
    /// # let reducer = Reducer::new(&group, &[weight.shallow_clone()], ReducerOptions::default())?;
    /// reducer.backward(&weight.sum(Kind::Double))?;
    /// let [bucket] = reducer.timeline()[..] else { panic!("one bucket") };
    /// assert_eq!(bucket.bytes, 16);
    /// assert!(bucket.reduced >= Some(bucket.ready));
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn timeline(&self) -> Vec<BucketTimes> {
        let time = |ns: i64| u64::try_from(ns).ok().map(Duration::from_nanos);
        self.inner
            .timeline()
            .into_iter()
            .map(|times| BucketTimes {
                bytes: times.bytes,
                ready: time(times.ready_ns).unwrap_or_default(),
                reduced: time(times.reduced_ns),
            })
            .collect()
    }
}

/// What PyTorch's engine takes for granted.
fn check_parameters(group: &ProcessGroup, parameters: &[Tensor]) -> Result<()> {
    let invalid = |detail: String| Err(Error::Invalid { call: MAKING.to_owned(), detail });
    if parameters.is_empty() {
        return invalid("there are no parameters".to_owned());
    }
    for (at, parameter) in parameters.iter().enumerate() {
        if !parameter.requires_grad() || !parameter.is_leaf() {
            return invalid(format!("parameter {at} takes no gradient of its own"));
        }
        if parameter.device() != group.device() {
            let (found, expected) = (parameter.device(), group.device());
            return invalid(format!("parameter {at} is on {found:?}, and the group's are on {expected:?}"));
        }
    }
    Ok(())
}

/// Compares the shapes of all ranks' parameters: ranks that do not agree would sum what does not belong together.
fn check_alike(group: &ProcessGroup, parameters: &[Tensor]) -> Result<()> {
    group.agree(MAKING, String::new)?;
    let invalid = |detail: String| Error::Invalid { call: MAKING.to_owned(), detail };
    let own = parameters.iter().map(Shape::of).collect::<Option<Vec<_>>>().ok_or_else(|| {
        invalid("a parameter is of a kind or a number of dimensions that is not known".to_owned())
    })?;
    for (rank, others) in group.all_gather_shapes(MAKING, &own)?.iter().enumerate() {
        if own.len() != others.len() {
            let (own_rank, n_own, n_others) = (group.rank(), own.len(), others.len());
            return Err(invalid(format!(
                "rank {own_rank} has {n_own} parameters and rank {rank} has {n_others}"
            )));
        }
        if let Some((at, (mine, other))) =
            own.iter().zip(others).enumerate().find(|(_, (mine, other))| mine != other)
        {
            return Err(invalid(format!(
                "parameter {at} is of {mine} on rank {} and of {other} on rank {rank}",
                group.rank()
            )));
        }
    }
    Ok(())
}
