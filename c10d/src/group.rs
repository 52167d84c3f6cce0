//! Process groups and their collectives.

mod check;

use std::time::Duration;

use tch::{Device, Kind, Tensor};

use crate::cuda;
use crate::error::{Cause, Error, Result};
use crate::ffi::{self, Failure, Status};
use crate::launch::Launch;
use crate::shape::{DIMENSIONS_MAX, Shape};
use crate::store::{TcpStore, in_time, millis};
use crate::watch::Watch;
use check::Announced;

// After a connection failed, the time within which the watch names who is gone: its own connection to that rank
// ends at the same moment.
const VERDICT_LIMIT: Duration = Duration::from_secs(2);
// How long a rank that is done waits for the others, whose last data may still be on the way from it.
const FAREWELL_LIMIT: Duration = Duration::from_secs(5);
// Ten beats of 10 ms: a busy machine keeps a thread waiting for longer than shorter ones.
const SILENCE_MIN: Duration = Duration::from_millis(100);
// What making a group may take beyond its own limit before it is given up.
const GRACE: Duration = Duration::from_secs(5);

/// What carries the tensors.
///
/// ```
/// use c10d::Backend;
/// assert_ne!(Backend::Gloo, Backend::Nccl { device: 0 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// TCP between processors, for tensors on the CPU. `GLOO_SOCKET_IFNAME` chooses its interfaces.
    Gloo,
    /// NVIDIA's library, for tensors on this GPU. One rank a GPU.
    Nccl {
        /// The GPU's number on this machine: by custom the local rank.
        device: usize,
    },
}

/// How a group behaves.
///
/// ```
/// use std::time::Duration;
/// let options = c10d::Options { timeout: Duration::from_secs(60), ..Default::default() };
/// assert_eq!(options.silence, Duration::from_secs(5));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The longest that a collective may take, and that ranks wait for each other at the start: what the slowest
    /// healthy rank may be late by.
    pub timeout: Duration,
    /// After this long without a word from its thread a rank counts as lost. At least 0.1 s.
    pub silence: Duration,
    /// The group's name, the same on all its ranks and used once in a store. "0" is where the default group of
    /// `torch.distributed.init_process_group` meets.
    pub name: String,
    /// Whether calls are compared before they are made: one more small collective for each, after which every rank
    /// knows who is about to make another one, or the same with another shape or kind. Without it such calls end at
    /// the time limit, give wrong values, or, where a message is longer than expected, end the process. Calls that
    /// start work then wait until all ranks are in them, and receives of one tag from one rank are to be waited for
    /// in their order. It takes effect where all ranks ask for it, which Python ranks do not.
    ///
    /// Off, but for debug builds and where `TORCH_DISTRIBUTED_DEBUG` is `DETAIL`, as for PyTorch's own groups.
    pub checked: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(600),
            silence: Duration::from_secs(5),
            name: "0".to_owned(),
            checked: check::by_default(),
        }
    }
}

/// How values of several ranks become one.
///
/// ```
/// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
/// # use tch::Tensor;
/// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
/// let mut slowest_s = Tensor::from_slice(&[0.25f64]);
/// group.all_reduce(&mut slowest_s, ReduceOp::Max)?;
/// assert_eq!(slowest_s, Tensor::from_slice(&[0.25f64]));
/// # Ok::<(), c10d::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceOp {
    /// Their sum.
    Sum = 0,
    /// Their sum divided by the number of ranks.
    Mean = 1,
    /// Their product.
    Product = 2,
    /// The least.
    Min = 3,
    /// The greatest.
    Max = 4,
    /// Bits set on every rank.
    BitAnd = 5,
    /// Bits set on some rank.
    BitOr = 6,
    /// Bits set on an odd number of ranks.
    BitXor = 7,
}

impl ReduceOp {
    /// Whether elements of this kind can be reduced so. Gloo knows no 16-bit integers, and truth values have no sum.
    ///
    /// ```
    /// use c10d::ReduceOp;
    /// use tch::Kind;
    /// assert!(ReduceOp::Sum.takes(Kind::BFloat16) && ReduceOp::BitXor.takes(Kind::Int64));
    /// assert!(!ReduceOp::BitXor.takes(Kind::Float) && !ReduceOp::Sum.takes(Kind::Bool));
    /// ```
    pub fn takes(self, kind: Kind) -> bool {
        let integer = matches!(kind, Kind::Uint8 | Kind::Int8 | Kind::Int | Kind::Int64);
        let real = matches!(kind, Kind::Half | Kind::BFloat16 | Kind::Float | Kind::Double);
        let complex = matches!(kind, Kind::ComplexFloat | Kind::ComplexDouble);
        match self {
            Self::Sum => integer || real || complex,
            Self::Mean => real || complex,
            Self::Product | Self::Min | Self::Max => integer || real,
            Self::BitAnd | Self::BitOr | Self::BitXor => integer,
        }
    }
}

/// A group of ranks that make the same calls in the same order.
///
/// Every call ends: with its result, or with an [`Error`] that names the rank that is gone, or that time ran out.
/// After such an error the group is of no more use on any rank; start all ranks again.
///
/// A tensor is passed without a copy, or with one where it is not contiguous.
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
    /// The server, where this rank has it, lives as long as the group.
    _store: TcpStore,
    rank: usize,
    world_size: usize,
    backend: Backend,
    timeout: Duration,
    checked: bool,
}

impl std::fmt::Debug for ProcessGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ProcessGroup({:?}, rank {} of {})", self.backend, self.rank, self.world_size)
    }
}

impl ProcessGroup {
    /// The group of a launch, with its store.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// assert_eq!(format!("{group:?}"), "ProcessGroup(Gloo, rank 0 of 1)");
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn from_launch(launch: &Launch, backend: Backend, options: &Options) -> Result<Self> {
        let store = TcpStore::from_launch(launch, options.timeout)?;
        Self::new(&store, launch.rank, launch.world_size, backend, options)
    }

    /// Joins the group that meets in `store`. Returns when all ranks have joined.
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
    ///     "rank 1 of 2 did not join the group within 1 s: was it started, and does it reach this machine?"
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
            cuda::check_device(device)?;
        }
        if store.add(&present_key(&options.name, rank), 1)? > 1 {
            return Err(invalid_joining(format!(
                "rank {rank} of group {:?} has joined at this store before: two processes have one rank, or two groups one name",
                options.name
            )));
        }
        if options.checked {
            check::ask(store, &options.name, rank)?;
        }
        let watch = Watch::start(store, &options.name, rank, world_size, options.silence)?;
        let inner = join(store, rank, world_size, backend, options)
            .map_err(|failure| explain_absence(store, rank, world_size, options, &watch, failure))?;
        watch.guard(inner.guard());
        let checked = options.checked && check::asked_by_all(store, &options.name, world_size)?;
        let timeout = options.timeout;
        Ok(Self { inner, watch, _store: store.clone(), rank, world_size, backend, timeout, checked })
    }

    /// This process's number, from 0.
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

    /// How many ranks there are.
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

    /// What carries the tensors.
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

    /// Where this group's tensors must be.
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

    /// Replaces the tensor by the reduction of all ranks' tensors, which must be alike in shape and kind. Every rank
    /// gets the same bits.
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

    /// Starts [`all_reduce`](Self::all_reduce); the tensor must be left alone until its work has been waited for.
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

    /// Replaces the tensor on every rank by the one of `root`. Every kind of element; same shape and kind everywhere.
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

    /// Every rank's tensor, by rank. Every kind of element; same shape and kind everywhere.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// # use tch::Tensor;
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let all = group.all_gather(&Tensor::from_slice(&[7i32]))?;
    /// assert_eq!(all, [Tensor::from_slice(&[7i32])]);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn all_gather(&self, tensor: &Tensor) -> Result<Vec<Tensor>> {
        const CALL: &str = "all_gather";
        self.check_device(CALL, tensor)?;
        self.agree(CALL, || format!(", {}", shown(tensor)))?;
        self.gather_equal(CALL, tensor)
    }

    /// Every rank's tensor, by rank, where the number of rows (the first dimension) may differ and may be 0. Two
    /// collectives: the shapes, then the rows, padded to the most that a rank has.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// # use tch::{Kind, Tensor, Device};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let all = group.all_gather_unequal(&Tensor::zeros([0, 3], (Kind::Float, Device::Cpu)))?;
    /// assert_eq!(all[0].size(), [0, 3]);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn all_gather_unequal(&self, tensor: &Tensor) -> Result<Vec<Tensor>> {
        const CALL: &str = "all_gather_unequal";
        self.check_device(CALL, tensor)?;
        let torch = |error: tch::TchError| Error::torch(CALL, &error);
        let own = Shape::of(tensor).filter(|_| tensor.dim() > 0).ok_or_else(|| Error::Invalid {
            call: CALL.to_owned(),
            detail: format!(
                "shape {:?} of kind {:?}, expected 1 to {DIMENSIONS_MAX} dimensions of a plain kind",
                tensor.size(),
                tensor.kind()
            ),
        })?;
        self.agree(CALL, String::new)?;
        let shapes = self.gather_equal(CALL, &own.to_tensor().f_to_device(self.device()).map_err(torch)?)?;
        let shapes =
            shapes.iter().map(|shape| Shape::from_tensor(CALL, shape)).collect::<Result<Vec<_>>>()?;
        if let Some((rank, other)) =
            shapes.iter().enumerate().find(|(_, other)| !own.agrees_but_for_rows(other))
        {
            return Err(Error::Invalid {
                call: CALL.to_owned(),
                detail: format!(
                    "{own} on rank {}, {other} on rank {rank}: only the first dimension may differ",
                    self.rank
                ),
            });
        }
        let most = shapes.iter().map(Shape::rows).max().unwrap_or(0);
        let mut padded_shape = tensor.size();
        padded_shape[0] = most;
        let padded = if own.rows() == most {
            contiguous(CALL, tensor)?
        } else {
            let padded = Tensor::f_zeros(&padded_shape, (tensor.kind(), tensor.device())).map_err(torch)?;
            padded
                .f_narrow(0, 0, own.rows())
                .and_then(|mut head| head.f_copy_(tensor).map(drop))
                .map_err(torch)?;
            padded
        };
        let all = self.gather_equal(CALL, &padded)?;
        Ok(all.iter().zip(&shapes).map(|(rows, shape)| rows.narrow(0, 0, shape.rows())).collect())
    }

    /// This rank's share of the reduction of all ranks' tensors: rows `rank * n` to `(rank + 1) * n`, where the first
    /// dimension is `n` times the number of ranks. Gloo reduces the whole for it.
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

    /// Sends a tensor to another rank, which receives it by the same tag, from 0.
    ///
    /// ```
    /// # use c10d::{Backend, Options, ProcessGroup, TcpStore};
    /// # use std::{thread, time::Duration};
    /// # use tch::Tensor;
    /// # let server = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(10))?;
    /// # let port = server.port();
    /// # let group_of_rank = move |rank| {
    /// #     let store = TcpStore::connect("127.0.0.1", port, Duration::from_secs(10))?;
    /// #     ProcessGroup::new(&store, rank, 2, Backend::Gloo, &Options::default())
    /// # };
    /// // Rank 1, here a thread:
    /// let other = thread::spawn(move || {
    ///     let group = group_of_rank(1)?;
    ///     let mut rows = Tensor::from_slice(&[0i64, 0]);
    ///     group.receive(&mut rows, 0, 7)?;
    ///     c10d::Result::Ok(rows)
    /// });
    /// // Rank 0:
    /// let group = group_of_rank(0)?;
    /// group.send(&Tensor::from_slice(&[4i64, 5]), 1, 7)?;
    /// drop(group);
    /// assert_eq!(other.join().unwrap()?, Tensor::from_slice(&[4i64, 5]));
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn send(&self, tensor: &Tensor, to: usize, tag: u16) -> Result<()> {
        self.start_send(tensor, to, tag)?.wait()
    }

    /// Starts [`send`](Self::send), so that two ranks can exchange tensors.
    ///
    /// ```
    /// # use c10d::{Backend, Options, ProcessGroup, TcpStore};
    /// # use std::{thread, time::Duration};
    /// # use tch::Tensor;
    /// # let server = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(10))?;
    /// # let port = server.port();
    /// # let group_of_rank = move |rank| {
    /// #     let store = TcpStore::connect("127.0.0.1", port, Duration::from_secs(10))?;
    /// #     ProcessGroup::new(&store, rank, 2, Backend::Gloo, &Options::default())
    /// # };
    /// // Rank 1, here a thread:
    /// let other = thread::spawn(move || {
    ///     let group = group_of_rank(1)?;
    ///     let mut received = Tensor::from_slice(&[0i64]);
    ///     let sent = group.start_send(&Tensor::from_slice(&[11i64]), 0, 3)?;
    ///     group.receive(&mut received, 0, 3)?;
    ///     sent.wait()?;
    ///     c10d::Result::Ok(received)
    /// });
    /// // Rank 0:
    /// let group = group_of_rank(0)?;
    /// let mut received = Tensor::from_slice(&[0i64]);
    /// let sent = group.start_send(&Tensor::from_slice(&[10i64]), 1, 3)?;
    /// group.receive(&mut received, 1, 3)?;
    /// sent.wait()?;
    /// drop(group);
    /// assert_eq!(received, Tensor::from_slice(&[11i64]));
    /// assert_eq!(other.join().unwrap()?, Tensor::from_slice(&[10i64]));
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn start_send(&self, tensor: &Tensor, to: usize, tag: u16) -> Result<Work<'_>> {
        const CALL: &str = "send";
        self.check_device(CALL, tensor)?;
        self.check_other(CALL, to)?;
        let dense = contiguous(CALL, tensor)?;
        let announcement = self.announce(CALL, &dense, to, tag)?;
        let mut work = self.begin(CALL, self.inner.send(&dense, to, i32::from(tag)), None)?;
        work.announcement = announcement;
        Ok(work)
    }

    /// Receives into a tensor, of the sent one's shape and kind, from another rank.
    ///
    /// ```
    /// # use c10d::{Backend, Options, ProcessGroup, TcpStore};
    /// # use std::{thread, time::Duration};
    /// # use tch::Tensor;
    /// # let server = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(10))?;
    /// # let port = server.port();
    /// # let group_of_rank = move |rank| {
    /// #     let store = TcpStore::connect("127.0.0.1", port, Duration::from_secs(10))?;
    /// #     ProcessGroup::new(&store, rank, 2, Backend::Gloo, &Options::default())
    /// # };
    /// // Rank 1, here a thread:
    /// let other = thread::spawn(move || {
    ///     let group = group_of_rank(1)?;
    ///     group.send(&Tensor::from_slice(&[6.5f32]), 0, 0)
    /// });
    /// // Rank 0:
    /// let group = group_of_rank(0)?;
    /// let mut number = Tensor::from_slice(&[0.0f32]);
    /// group.receive(&mut number, 1, 0)?;
    /// assert_eq!(number, Tensor::from_slice(&[6.5f32]));
    /// let refused = group.receive(&mut number, 0, 0).unwrap_err();
    /// assert_eq!(refused.to_string(), "receive: rank 0 is this process");
    /// drop(group);
    /// other.join().unwrap()?;
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn receive(&self, tensor: &mut Tensor, from: usize, tag: u16) -> Result<()> {
        self.start_receive(tensor, from, tag)?.wait()
    }

    /// Starts [`receive`](Self::receive); the tensor must be left alone until its work has been waited for.
    ///
    /// ```
    /// # use c10d::{Backend, Options, ProcessGroup, TcpStore};
    /// # use std::{thread, time::Duration};
    /// # use tch::Tensor;
    /// # let server = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(10))?;
    /// # let port = server.port();
    /// # let group_of_rank = move |rank| {
    /// #     let store = TcpStore::connect("127.0.0.1", port, Duration::from_secs(10))?;
    /// #     ProcessGroup::new(&store, rank, 2, Backend::Gloo, &Options::default())
    /// # };
    /// // Rank 1, here a thread:
    /// let other = thread::spawn(move || {
    ///     let group = group_of_rank(1)?;
    ///     let mut received = [Tensor::from_slice(&[0i64]), Tensor::from_slice(&[0i64])];
    ///     let [first, second] = &mut received;
    ///     // What comes last is waited for first.
    ///     let works = [group.start_receive(second, 0, 2)?, group.start_receive(first, 0, 1)?];
    ///     works.into_iter().try_for_each(|work| work.wait())?;
    ///     c10d::Result::Ok(received)
    /// });
    /// // Rank 0:
    /// let group = group_of_rank(0)?;
    /// let works = [
    ///     group.start_send(&Tensor::from_slice(&[1i64]), 1, 1)?,
    ///     group.start_send(&Tensor::from_slice(&[2i64]), 1, 2)?,
    /// ];
    /// works.into_iter().try_for_each(|work| work.wait())?;
    /// drop(group);
    /// let received = other.join().unwrap()?;
    /// assert_eq!(received, [Tensor::from_slice(&[1i64]), Tensor::from_slice(&[2i64])]);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn start_receive(&self, tensor: &mut Tensor, from: usize, tag: u16) -> Result<Work<'_>> {
        const CALL: &str = "receive";
        self.check_device(CALL, tensor)?;
        self.check_other(CALL, from)?;
        let (dense, copy_back) = in_place(CALL, tensor)?;
        if self.checked {
            let announced = self.await_announcement(CALL, &dense, from, tag)?;
            let inner = Started::Announced(announced);
            return Ok(Work { group: self, call: CALL, inner, copy_back, announcement: None });
        }
        self.begin(CALL, self.inner.receive(&dense, from, i32::from(tag)), copy_back)
    }

    /// Whether all ranks that are watched are alive, without talking to them. On a GPU, where calls return before
    /// they are done, this tells after a synchronisation whether what came back may be used.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// group.check()?;
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn check(&self) -> Result<()> {
        // A rank that left in good order is lost only to a call that needed it.
        match self.watch.loss_within(Duration::ZERO).filter(|loss| loss.cause != Cause::Left) {
            Some(loss) => Err(Error::PeerLost { call: "check".to_owned(), loss }),
            None => Ok(()),
        }
    }

    pub(crate) fn raw(&self) -> &ffi::Group {
        &self.inner
    }

    /// What a failed call of the shim means to this group.
    pub(crate) fn explain(&self, call: &str, failure: Failure) -> Error {
        let Failure { status, text } = failure;
        if status == Status::Invalid && !self.inner.is_broken() {
            return Error::Invalid { call: call.to_owned(), detail: text };
        }
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

    /// An error of tch in a call during which the group also communicated.
    pub(crate) fn explain_torch(&self, call: &str, error: &tch::TchError) -> Error {
        match Error::torch(call, error) {
            Error::Torch { call, detail } if self.inner.is_broken() => {
                let status = if detail.contains("Timed out") { Status::TimedOut } else { Status::Failed };
                self.explain(&call, Failure { status, text: detail })
            }
            other => other,
        }
    }

    /// Every rank's shapes, of which each has one or more.
    pub(crate) fn all_gather_shapes(&self, call: &'static str, own: &[Shape]) -> Result<Vec<Vec<Shape>>> {
        let rows: Vec<Tensor> = own.iter().map(Shape::to_tensor).collect();
        let all = self.all_gather_unequal(&Tensor::stack(&rows, 0).to_device(self.device()))?;
        all.iter()
            .map(|rows| {
                (0..rows.size()[0]).map(|row| Shape::from_tensor(call, &rows.select(0, row))).collect()
            })
            .collect()
    }

    fn gather_equal(&self, call: &'static str, tensor: &Tensor) -> Result<Vec<Tensor>> {
        let dense = contiguous(call, tensor)?;
        let mut shape = vec![self.world_size as i64];
        shape.extend(dense.size());
        let output = Tensor::f_empty(&shape, (dense.kind(), dense.device()))
            .map_err(|error| Error::torch(call, &error))?;
        self.begin(call, self.inner.all_gather(&output, &dense), None)?.wait()?;
        Ok((0..self.world_size as i64).map(|rank| output.select(0, rank)).collect())
    }

    fn begin(
        &self,
        call: &'static str,
        started: ffi::Result<ffi::Work>,
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
            detail: format!(
                "the tensor is on {:?}, and the group's are on {:?}",
                tensor.device(),
                self.device()
            ),
        })
    }

    fn check_rank(&self, call: &str, rank: usize) -> Result<()> {
        if rank < self.world_size {
            return Ok(());
        }
        Err(Error::Invalid {
            call: call.to_owned(),
            detail: format!("there is no rank {rank} of {}", self.world_size),
        })
    }

    fn check_other(&self, call: &str, rank: usize) -> Result<()> {
        if rank == self.rank {
            return Err(Error::Invalid {
                call: call.to_owned(),
                detail: format!("rank {rank} is this process"),
            });
        }
        self.check_rank(call, rank)
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // A connection that is closed takes with it what the other side has not read yet. So this rank leaves when
        // all do; else its connections stay until the process ends, which closes them without that loss.
        if self.inner.is_broken() {
            self.watch.give_up();
        } else if !self.watch.leave(FAREWELL_LIMIT) {
            self.inner.stay_connected();
            self.watch.stay();
        }
    }
}

/// A communication that has been started. Its result is there when it has been waited for. One that is dropped instead
/// is carried out all the same, and nobody learns whether it was.
///
/// ```
/// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
/// # use tch::Tensor;
/// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
/// let (mut loss, mut rows) = (Tensor::from_slice(&[0.5f64]), Tensor::from_slice(&[32i64]));
/// // Both at once; in the same order on every rank.
/// let works = [
///     group.start_all_reduce(&mut loss, ReduceOp::Sum)?,
///     group.start_all_reduce(&mut rows, ReduceOp::Sum)?,
/// ];
/// works.into_iter().try_for_each(|work| work.wait())?;
/// # Ok::<(), c10d::Error>(())
/// ```
#[must_use = "the result is there when the work has been waited for"]
pub struct Work<'g> {
    group: &'g ProcessGroup,
    call: &'static str,
    inner: Started,
    copy_back: Option<CopyBack>,
    /// Of a send in a group that is checked.
    announcement: Option<ffi::Work>,
}

enum Started {
    Work(ffi::Work),
    /// A receive in a group that is checked.
    Announced(Announced),
}

impl Work<'_> {
    /// Waits for its end. On a GPU the current stream waits, and not the processor.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// # let mut sum = tch::Tensor::from_slice(&[2.0f32]);
    /// let work = group.start_all_reduce(&mut sum, ReduceOp::Mean)?;
    /// work.wait()?;
    /// assert_eq!(sum, tch::Tensor::from_slice(&[2.0f32]));
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn wait(self) -> Result<()> {
        let explain = |failure| self.group.explain(self.call, failure);
        if let Some(announcement) = self.announcement {
            announcement.wait().map_err(explain)?;
        }
        match self.inner {
            Started::Work(work) => work.wait().map_err(explain)?,
            Started::Announced(announced) => announced.receive(self.group)?,
        }
        if let Some(CopyBack { from, mut to }) = self.copy_back {
            tch::no_grad(|| to.f_copy_(&from).map(drop)).map_err(|error| Error::torch(self.call, &error))?;
        }
        Ok(())
    }

    /// Whether [`wait`](Self::wait) would return at once. Of a send or a receive over Gloo only waiting for it tells:
    /// it is never done before.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// # let mut sum = tch::Tensor::from_slice(&[2.0f32]);
    /// let work = group.start_all_reduce(&mut sum, ReduceOp::Sum)?;
    /// while !work.is_done() {
    ///     // ... something else ...
    ///     std::thread::yield_now();
    /// }
    /// work.wait()?;
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn is_done(&self) -> bool {
        match &self.inner {
            Started::Work(work) => work.is_done(),
            Started::Announced(_) => false,
        }
    }
}

/// A contiguous stand-in for a tensor that is not, and where its content is to go.
struct CopyBack {
    from: Tensor,
    to: Tensor,
}

/// What the engine works on in the place of `tensor`.
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

fn invalid_joining(detail: String) -> Error {
    invalid("joining a group", detail)
}

/// A tensor as ranks compare it.
fn shown(tensor: &Tensor) -> String {
    format!("shape {:?} and kind {:?}", tensor.size(), tensor.kind())
}

fn check_place(rank: usize, world_size: usize, options: &Options) -> Result<()> {
    if rank >= world_size {
        return Err(invalid_joining(format!("rank {rank} is not below the number of ranks, {world_size}")));
    }
    if i32::try_from(world_size).is_err() {
        return Err(invalid_joining(format!("{world_size} ranks are more than PyTorch can count")));
    }
    if options.silence < SILENCE_MIN {
        return Err(invalid_joining(format!(
            "a limit of silence of {:?}, expected at least {SILENCE_MIN:?}",
            options.silence
        )));
    }
    Ok(())
}

/// Under which torch.distributed meets for its default group, before the name of the device.
fn store_path(name: &str) -> String {
    format!("default_pg/{name}/")
}

fn present_key(name: &str, rank: usize) -> String {
    format!("c10d/present/{name}/{rank}")
}

/// Makes the group on a thread of its own: what waits for another rank's store has no time limit.
fn join(
    store: &TcpStore,
    rank: usize,
    world_size: usize,
    backend: Backend,
    options: &Options,
) -> ffi::Result<ffi::Group> {
    let timeout_ms = millis(options.timeout);
    let path = store.full(&store_path(&options.name));
    let store = std::sync::Arc::clone(store.raw());
    in_time(options.timeout.saturating_add(GRACE), move || match backend {
        Backend::Gloo => ffi::Group::gloo(&store, &path, rank, world_size, timeout_ms),
        Backend::Nccl { device } => ffi::Group::nccl(&store, &path, rank, world_size, device, timeout_ms),
    })
}

/// Why a group did not come about: a rank that died on the way, or that never came.
fn explain_absence(
    store: &TcpStore,
    rank: usize,
    world_size: usize,
    options: &Options,
    watch: &Watch,
    failure: Failure,
) -> Error {
    let call = "joining a group".to_owned();
    if let Some(loss) = watch.loss_within(Duration::ZERO) {
        return Error::PeerLost { call, loss };
    }
    // Python ranks leave no such mark, but they do leave Gloo's.
    let is_there = |other: usize| {
        other == rank
            || store.is_set(&present_key(&options.name, other)).unwrap_or(false)
            || store.is_set(&format!("{}/cpu//0/{other}", store_path(&options.name))).unwrap_or(false)
    };
    let missing: Vec<String> =
        (0..world_size).filter(|&other| !is_there(other)).map(|rank| rank.to_string()).collect();
    match &missing[..] {
        [] if failure.status == Status::Invalid => Error::Invalid { call, detail: failure.text },
        [] => Error::Communication { call, detail: failure.text },
        [one] => Error::Rendezvous {
            detail: format!(
                "rank {one} of {world_size} did not join the group within {} s: was it started, and does it reach this machine?",
                options.timeout.as_secs_f64()
            ),
        },
        several => Error::Rendezvous {
            detail: format!(
                "ranks {} of {world_size} did not join the group within {} s: were they started, and do they reach this machine?",
                several.join(", "),
                options.timeout.as_secs_f64()
            ),
        },
    }
}
