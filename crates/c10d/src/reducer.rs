//! PyTorch's gradient reducer, the engine of DistributedDataParallel. It sums buckets of gradients over the ranks
//! while backward computes the remaining gradients.

use std::time::Duration;

use tch::Tensor;

use crate::error::{Error, Result};
use crate::ffi;
use crate::group::ProcessGroup;
use crate::shape::Shape;

const MAKING: &str = "making a reducer";

/// How gradients are reduced.
///
/// ```
/// let options = c10d::ReducerOptions { find_unused: true, ..Default::default() };
/// assert_eq!(options.bucket_bytes, 25 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReducerOptions {
    /// Sum or mean.
    pub reduction: GradientReduction,
    /// Size of the first bucket that is ready. A small first bucket starts communication early.
    pub first_bucket_bytes: usize,
    /// Size of the other buckets.
    pub bucket_bytes: usize,
    /// Whether parameters may be unused on a rank in a step. This costs a traversal of the graph and one
    /// additional small all-reduce per step. If it is false, an unused parameter is an error.
    pub find_unused: bool,
}

impl Default for ReducerOptions {
    /// PyTorch's bucket sizes. Gradients are summed, so each rank must divide its loss by the number of rows in
    /// the whole batch.
    fn default() -> Self {
        Self {
            reduction: GradientReduction::Sum,
            first_bucket_bytes: 1 << 20,
            bucket_bytes: 25 << 20,
            find_unused: false,
        }
    }
}

/// Reduction of the ranks' gradients.
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
    /// Their sum. Correct for any division of a batch if each rank divides its sum of losses by the global count.
    Sum,
    /// Their mean, as in DistributedDataParallel. Correct only if every rank has the same number of rows.
    Mean,
}

/// Times at which a bucket of gradients was ready and reduced, since the start of backward.
///
/// ```
/// use std::time::Duration;
/// let (ready, reduced) = (Duration::from_millis(3), Some(Duration::from_millis(5)));
/// let bucket = c10d::BucketTimes { bytes: 1 << 20, ready, reduced };
/// assert!(bucket.reduced.is_some_and(|reduced| reduced > bucket.ready));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketTimes {
    /// Size of the bucket.
    pub bytes: u64,
    /// When the bucket's last gradient was computed and its reduction started. On a GPU, by events of its stream.
    pub ready: Duration,
    /// When its reduction ended. None on a GPU, because GPUs compute asynchronously.
    pub reduced: Option<Duration>,
}

/// Reduces the gradients of one model's parameters, which must be the same and in the same order on every rank.
/// Buckets are filled from the last parameter to the first and never change. A training that resumes in another
/// process therefore sums in the same order, with identical bits.
///
/// [`backward`](Self::backward) adds the reduced gradient of all ranks to each parameter's gradient. Set gradients to
/// zero before the next step. A parameter that no rank used keeps its gradient. A backward pass that does not use
/// this type adds only to this rank's gradients. Gradients can therefore be accumulated over several batches and
/// reduced once.
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
    // Declared before `group`, because it uses the group until it is freed.
    inner: ffi::ReducerHandle,
    group: &'g ProcessGroup,
}

impl std::fmt::Debug for Reducer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reducer({:?})", self.group)
    }
}

impl<'g> Reducer<'g> {
    /// Takes over the gradients of `parameters`. All ranks must call it, with the same number of parameters and the
    /// same kinds and shapes. Otherwise every rank gets an error that names the first difference.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, Reducer, ReducerOptions};
    /// # use tch::Tensor;
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let weight = Tensor::from_slice(&[2.0f64, 3.0]).set_requires_grad(true);
    /// let frozen = Tensor::from_slice(&[1.0f64]);
    /// let refused = Reducer::new(&group, &[weight, frozen], ReducerOptions::default()).unwrap_err();
    /// assert_eq!(refused.to_string(), "making a reducer: parameter 1 is not a leaf tensor that requires a gradient");
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn new(group: &'g ProcessGroup, parameters: &[Tensor], options: ReducerOptions) -> Result<Self> {
        check_parameters(group, parameters)?;
        check_alike(group, parameters)?;
        ffi::ReducerHandle::new(
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

    /// Computes the gradients of `loss` and reduces them. Every rank must call this method, even if its share of the
    /// batch is empty. The loss of such a rank is a sum over no rows, which must still depend on the parameters. A
    /// loss that does not depend on every parameter is an error; with `find_unused`, a loss that depends on no
    /// parameter is an error. After such an error the other ranks wait for this rank's gradients, so the group is
    /// unusable.
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

    /// When each bucket of the last backward was ready and reduced, in the order of readiness. On a GPU, this waits until
    /// the gradients are computed. Errors: the GPU failed.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, Reducer, ReducerOptions};
    /// # use tch::{Kind, Tensor};
    /// # let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// # let weight = Tensor::from_slice(&[2.0f64, 3.0]).set_requires_grad(true);
    /// # let reducer = Reducer::new(&group, &[weight.shallow_clone()], ReducerOptions::default())?;
    /// reducer.backward(&weight.sum(Kind::Double))?;
    /// let [bucket] = reducer.timeline()?[..] else { panic!("one bucket") };
    /// assert_eq!(bucket.bytes, 16);
    /// assert!(bucket.reduced >= Some(bucket.ready));
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn timeline(&self) -> Result<Vec<BucketTimes>> {
        const CALL: &str = "timeline";
        let time = |ns: i64| u64::try_from(ns).ok().map(Duration::from_nanos);
        let failed = |failure: ffi::Failure| Error::Torch { call: CALL.to_owned(), detail: failure.text };
        let times = self.inner.timeline().map_err(failed)?;
        let times = times
            .into_iter()
            .map(|times| BucketTimes {
                bytes: times.bytes,
                ready: time(times.ready_ns).unwrap_or_default(),
                reduced: time(times.reduced_ns),
            })
            .collect();
        Ok(times)
    }
}

/// Checks the requirements of PyTorch's engine.
fn check_parameters(group: &ProcessGroup, parameters: &[Tensor]) -> Result<()> {
    let invalid = |detail: String| Err(Error::Invalid { call: MAKING.to_owned(), detail });
    if parameters.is_empty() {
        return invalid("no parameters".to_owned());
    }
    for (at, parameter) in parameters.iter().enumerate() {
        if !parameter.requires_grad() || !parameter.is_leaf() {
            return invalid(format!("parameter {at} is not a leaf tensor that requires a gradient"));
        }
        if parameter.device() != group.device() {
            let (found, expected) = (parameter.device(), group.device());
            return invalid(format!("parameter {at} is on {found:?}, expected {expected:?}"));
        }
    }
    Ok(())
}

/// Compares the shapes of all ranks' parameters, because the engine does not.
fn check_alike(group: &ProcessGroup, parameters: &[Tensor]) -> Result<()> {
    group.agree(MAKING, String::new)?;
    let invalid = |detail: String| Error::Invalid { call: MAKING.to_owned(), detail };
    let own =
        parameters.iter().map(Shape::of).collect::<Option<Vec<_>>>().ok_or_else(|| {
            invalid("a parameter has an unsupported kind or too many dimensions".to_owned())
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
                "parameter {at} has {mine} on rank {} and {other} on rank {rank}",
                group.rank()
            )));
        }
    }
    Ok(())
}
