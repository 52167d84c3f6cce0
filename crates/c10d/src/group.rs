//! Process groups and their collectives.

mod all_to_all;
mod check;
mod gather;
mod join;
mod transfer;
mod work;

use std::cell::Cell;
use std::time::Duration;

use launch::Launch;
use tch::{Device, Tensor};

use crate::cuda;
use crate::error::{Cause, Error, Result};
use crate::ffi::{self, Failure, Status};
use crate::options::{Backend, Options};
use crate::reduce_op::ReduceOp;
use crate::store::TcpStore;
use crate::watch::Watch;
use gather::FrameBytes;
use join::{check_place, explain_absence, join, present_key};

pub(crate) use join::invalid_joining;
pub use work::Work;
use work::{CopyBack, Started};

// Maximum wait for the watch to name the lost rank after a connection has failed. The watch's connection to the
// lost rank closes at the same time.
const VERDICT_LIMIT: Duration = Duration::from_secs(2);
// Maximum time that a finished rank waits for the others, which may still be receiving its last data.
const FAREWELL_LIMIT: Duration = Duration::from_secs(5);

/// A group of ranks that make the same calls in the same order.
///
/// Every call returns: with its result, or with an [`Error`] that names the lost rank or reports a timeout. After
/// such an error, the group is unusable on every rank; restart all ranks.
///
/// Tensors are passed without a copy if they are contiguous.
///
/// ```
/// use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
/// use tch::Tensor;
///
/// let launch = Launch::from_env().unwrap_or_else(|_| Launch::alone());
/// let group = ProcessGroup::from_launch(&launch, Backend::Gloo, &Options::default())?;
/// let mut sum = Tensor::from_slice(&[1.0f32, 2.0]);
/// group.all_reduce(&mut sum, ReduceOp::Sum)?;
/// assert_eq!(sum, Tensor::from_slice(&[1.0f32, 2.0]) * group.world_size() as f64);
/// # Ok::<(), c10d::Error>(())
/// ```
pub struct ProcessGroup {
    inner: ffi::Group,
    watch: Watch,
    /// Kept, because the server must live as long as the group.
    _store: TcpStore,
    rank: usize,
    world_size: usize,
    backend: Backend,
    timeout: Duration,
    checked: bool,
    /// Of the next exchange of bytes.
    frame: FrameBytes,
    /// Whether a call failed after it was sent.
    has_failed: Cell<bool>,
}

impl std::fmt::Debug for ProcessGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ProcessGroup({:?}, rank {} of {})", self.backend, self.rank, self.world_size)
    }
}

impl ProcessGroup {
    /// Joins the group of a launch, with its store.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// assert_eq!(format!("{group:?}"), "ProcessGroup(Gloo, rank 0 of 1)");
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn from_launch(launch: &Launch, backend: Backend, options: &Options) -> Result<Self> {
        if let Backend::Nccl { .. } = backend {
            // Before the store, whose check of libtorch's version makes PyTorch remember that there is no CUDA.
            cuda::load_cuda()?;
        }
        let store = TcpStore::from_launch(launch, options.timeout)?;
        Self::new(&store, launch.rank, launch.world_size, backend, options)
    }

    /// Joins the group that meets in `store`. Returns when all ranks have joined. With NCCL, makes the group's GPU the
    /// current one of the calling thread, which should be the thread that computes.
    ///
    /// ```
    /// use c10d::{Backend, Options, ProcessGroup, TcpStore};
    /// use std::time::Duration;
    ///
    /// let store = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(10))?;
    /// let options = Options { timeout: Duration::from_secs(1), ..Options::default() };
    /// let missing = ProcessGroup::new(&store, 0, 2, Backend::Gloo, &options).unwrap_err();
    /// assert_eq!(
    ///     missing.to_string(),
    ///     "rank 1 of 2 did not join the group within 1 s; check that it is running and can reach this machine"
    /// );
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn new(
        store: &TcpStore,
        rank: usize,
        world_size: usize,
        backend: Backend,
        options: &Options,
    ) -> Result<Self> {
        check_place(rank, world_size, options)?;
        if let Backend::Nccl { device } = backend {
            cuda::use_device(device)?;
        }
        if store.add(&present_key(&options.name, rank), 1)? > 1 {
            return Err(invalid_joining(format!(
                "rank {rank} of group {:?} has already joined at this store: two processes have the same rank, or two groups the same name",
                options.name
            )));
        }
        if options.checked {
            check::request(store, &options.name, rank)?;
        }
        let watch = Watch::start(store, rank, world_size, options)?;
        let inner = join(store, rank, world_size, backend, options, &watch)
            .map_err(|failure| explain_absence(store, rank, world_size, options, &watch, failure))?;
        watch.guard(inner.guard());
        let checked = options.checked && check::requested_by_all(store, &options.name, world_size)?;
        let timeout = options.timeout;
        let (store, frame, has_failed) = (store.clone(), FrameBytes::new(), Cell::new(false));
        Ok(Self {
            inner,
            watch,
            _store: store,
            rank,
            world_size,
            backend,
            timeout,
            checked,
            frame,
            has_failed,
        })
    }

    /// This process's rank, from 0.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// assert_eq!(group.rank(), 0);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// assert_eq!(group.world_size(), 1);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn world_size(&self) -> usize {
        self.world_size
    }

    /// The backend that transfers tensors.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// assert_eq!(group.backend(), Backend::Gloo);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The device that this group's tensors must be on.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// assert_eq!(group.device(), tch::Device::Cpu);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn device(&self) -> Device {
        match self.backend {
            Backend::Gloo => Device::Cpu,
            Backend::Nccl { device } => Device::Cuda(device),
        }
    }

    /// Replaces the tensor with the reduction over all ranks. Shape and kind must be equal on all ranks. Every
    /// rank gets identical bits.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
    /// # use tch::{Kind, Tensor};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let mut counts = Tensor::from_slice(&[3i64, 1]);
    /// group.all_reduce(&mut counts, ReduceOp::Sum)?;
    /// assert_eq!(counts, Tensor::from_slice(&[3i64, 1]));
    ///
    /// let mut truth = Tensor::from_slice(&[true]);
    /// let refused = group.all_reduce(&mut truth, ReduceOp::Sum).unwrap_err();
    /// assert_eq!(refused.to_string(), "all_reduce: Sum does not take elements of kind Bool");
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn all_reduce(&self, tensor: &mut Tensor, op: ReduceOp) -> Result<()> {
        self.start_all_reduce(tensor, op)?.wait()
    }

    /// Starts [`all_reduce`](Self::all_reduce). Do not use the tensor before waiting for the returned work.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
    /// # use tch::Tensor;
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let mut sum = Tensor::from_slice(&[1.0f32]);
    /// let work = group.start_all_reduce(&mut sum, ReduceOp::Sum)?;
    /// // ... something else ...
    /// work.wait()?;
    /// assert_eq!(sum, Tensor::from_slice(&[1.0f32]));
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn start_all_reduce(&self, tensor: &mut Tensor, op: ReduceOp) -> Result<Work<'_>> {
        const CALL: &str = "all_reduce";
        self.check_device(CALL, tensor)?;
        check_reduction(CALL, tensor, op)?;
        self.agree(CALL, || format!(" by {op:?}, {}", shown(tensor)))?;
        let (dense, copy_back) = in_place(CALL, tensor)?;
        self.begin(CALL, self.inner.all_reduce(&dense, op), copy_back)
    }

    /// Replaces the tensor on every rank with the tensor of rank `root`. Takes every kind; shape and kind must be
    /// equal on all ranks.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// # use tch::Tensor;
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let mut weights = Tensor::from_slice(&[1i16, 2]);
    /// group.broadcast(&mut weights, 0)?;
    /// assert_eq!(weights, Tensor::from_slice(&[1i16, 2]));
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn broadcast(&self, tensor: &mut Tensor, root: usize) -> Result<()> {
        const CALL: &str = "broadcast";
        self.check_device(CALL, tensor)?;
        self.check_rank(CALL, root)?;
        self.agree(CALL, || format!(" from rank {root}, {}", shown(tensor)))?;
        let (dense, copy_back) = in_place(CALL, tensor)?;
        self.begin(CALL, self.inner.broadcast(&dense, root), copy_back)?.wait()
    }

    /// Returns this rank's share of the reduction over all ranks: rows `rank * n` to `(rank + 1) * n`, where the
    /// first dimension is `n` times the number of ranks. With Gloo, the whole tensor is reduced first.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
    /// # use tch::Tensor;
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let share = group.reduce_scatter(&Tensor::from_slice(&[1.0f64, 2.0]), ReduceOp::Max)?;
    /// assert_eq!(share, Tensor::from_slice(&[1.0f64, 2.0]));
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn reduce_scatter(&self, tensor: &Tensor, op: ReduceOp) -> Result<Tensor> {
        const CALL: &str = "reduce_scatter";
        self.check_device(CALL, tensor)?;
        check_reduction(CALL, tensor, op)?;
        let mut shape = tensor.size();
        let world_size = self.world_size as i64;
        match shape.first_mut() {
            Some(rows) if *rows % world_size == 0 => *rows /= world_size,
            _ => {
                return Err(Error::Invalid {
                    call: CALL.to_owned(),
                    detail: format!(
                        "shape {shape:?}, expected a first dimension that {world_size} ranks divide"
                    ),
                });
            }
        }
        self.agree(CALL, || format!(" by {op:?}, {}", shown(tensor)))?;
        let dense = contiguous(CALL, tensor)?;
        let output = Tensor::f_empty(&shape, (dense.kind(), dense.device()))
            .map_err(|error| Error::torch(CALL, &error))?;
        self.begin(CALL, self.inner.reduce_scatter(&output, &dense, op), None)?.wait()?;
        Ok(output)
    }

    /// Returns when all ranks have called it.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// group.barrier()?;
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn barrier(&self) -> Result<()> {
        const CALL: &str = "barrier";
        self.agree(CALL, String::new)?;
        self.begin(CALL, self.inner.barrier(), None)?.wait()
    }

    /// Checks that all watched ranks are alive and that no earlier call failed, without communication. On a GPU, calls
    /// return before their communication ends. Synchronize the GPU, then call this, then use the results.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// group.check()?;
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn check(&self) -> Result<()> {
        self.check_ranks("check")
    }

    /// The results of a call on the host. Refuses those of a call that was aborted: on a GPU, it leaves arbitrary
    /// results; on the CPU, it fails itself.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let mut sums = tch::Tensor::from_slice(&[1i64, 2]).to_device(group.device());
    /// group.all_reduce(&mut sums, ReduceOp::Sum)?;
    /// assert_eq!(group.to_host("all_reduce", &sums)?.int64_value(&[1]), 2);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn to_host(&self, call: &str, results: &Tensor) -> Result<Tensor> {
        let there = results.f_to_device(Device::Cpu).map_err(|error| self.explain_torch(call, &error))?;
        if self.device() != Device::Cpu {
            self.check_ranks(call)?;
        }
        Ok(there)
    }

    fn check_ranks(&self, call: &str) -> Result<()> {
        // A rank that left normally is an error only in a call that needs it.
        match self.watch.loss_within(Duration::ZERO).filter(|loss| loss.cause != Cause::Left) {
            Some(loss) => Err(Error::PeerLost { call: call.to_owned(), loss }),
            // NCCL's calls return before they fail.
            None => self.inner.check().map_err(|failure| self.explain(call, failure)),
        }
    }

    pub(crate) fn raw(&self) -> &ffi::Group {
        &self.inner
    }

    /// Converts a failed call of the shim into this group's error.
    pub(crate) fn explain(&self, call: &str, failure: Failure) -> Error {
        let Failure { status, text } = failure;
        if status == Status::Invalid && !self.inner.is_broken() {
            return Error::Invalid { call: call.to_owned(), detail: text };
        }
        self.has_failed.set(true);
        let limit = if status == Status::TimedOut { Duration::ZERO } else { VERDICT_LIMIT };
        if let Some(loss) = self.watch.loss_within(limit) {
            return Error::PeerLost { call: call.to_owned(), loss };
        }
        if status == Status::TimedOut {
            return Error::TimedOut { call: call.to_owned(), limit_s: self.timeout.as_secs(), detail: text };
        }
        match self.watch.unwatched()[..] {
            [rank] => Error::PeerLost { call: call.to_owned(), loss: self.watch.accuse(rank) },
            _ => Error::Communication { call: call.to_owned(), detail: text },
        }
    }

    /// Converts an error of tch in a call in which the group also communicated.
    pub(crate) fn explain_torch(&self, call: &str, error: &tch::TchError) -> Error {
        self.has_failed.set(true);
        match Error::torch(call, error) {
            Error::Torch { call, detail } if self.inner.is_broken() => {
                let status = if detail.contains("Timed out") { Status::TimedOut } else { Status::Failed };
                self.explain(&call, Failure { status, text: detail })
            }
            other => other,
        }
    }

    fn begin(
        &self,
        call: &'static str,
        started: ffi::Result<ffi::WorkHandle>,
        copy_back: Option<CopyBack>,
    ) -> Result<Work<'_>> {
        match started {
            Ok(work) => {
                Ok(Work { group: self, call, inner: Started::Work(work), copy_back, announcement: None })
            }
            Err(failure) => Err(self.explain(call, failure)),
        }
    }

    fn check_device(&self, call: &str, tensor: &Tensor) -> Result<()> {
        if tensor.device() == self.device() {
            return Ok(());
        }
        Err(Error::Invalid {
            call: call.to_owned(),
            detail: format!("the tensor is on {:?}, expected {:?}", tensor.device(), self.device()),
        })
    }

    fn check_rank(&self, call: &str, rank: usize) -> Result<()> {
        if rank < self.world_size {
            return Ok(());
        }
        Err(Error::Invalid {
            call: call.to_owned(),
            detail: format!("rank {rank} is out of range; the world size is {}", self.world_size),
        })
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // Closing a connection discards data that the other side has not read. This rank therefore leaves together
        // with all others. If they do not leave in time, its connections stay open until the process exits; a process
        // exit does not discard data.
        if self.inner.is_broken() {
            self.watch.give_up();
        } else if !self.watch.leave(FAREWELL_LIMIT) {
            if let Backend::Nccl { .. } = self.backend {
                // The exit of this process does not end kernels that wait for it.
                self.watch.give_up();
            }
            self.inner.stay_connected();
            self.watch.stay();
        } else if !self.has_failed.get() && !std::thread::panicking() {
            self.inner.complete();
        }
    }
}

/// The tensor to pass to the engine in place of `tensor`.
fn in_place(call: &str, tensor: &mut Tensor) -> Result<(Tensor, Option<CopyBack>)> {
    let to = tensor.shallow_clone();
    if to.is_contiguous() {
        return Ok((to, None));
    }
    let dense = contiguous(call, &to)?;
    Ok((dense.shallow_clone(), Some(CopyBack { from: dense, to })))
}

fn contiguous(call: &str, tensor: &Tensor) -> Result<Tensor> {
    tensor.detach().f_contiguous().map_err(|error| Error::torch(call, &error))
}

fn check_reduction(call: &str, tensor: &Tensor, op: ReduceOp) -> Result<()> {
    if op.takes(tensor.kind()) {
        return Ok(());
    }
    Err(Error::Invalid {
        call: call.to_owned(),
        detail: format!("{op:?} does not take elements of kind {:?}", tensor.kind()),
    })
}

fn invalid(call: &str, detail: String) -> Error {
    Error::Invalid { call: call.to_owned(), detail }
}

/// A tensor as text, for comparison between ranks.
fn shown(tensor: &Tensor) -> String {
    format!("shape {:?} and kind {:?}", tensor.size(), tensor.kind())
}
