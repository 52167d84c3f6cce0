//! PyTorch's distributed engine, c10d, for tch tensors.
//!
//! Ranks find each other through a [`TcpStore`] and join a [`ProcessGroup`] over Gloo or NCCL; its collectives take
//! tch tensors without a copy; a [`Reducer`] sums gradients over the ranks while backward runs. Since all of it is
//! PyTorch's own code, called through a C++ shim (csrc/), a Rust rank and a Python rank can sit in one group, and
//! torchrun starts either.
//!
//! Every call ends within a time limit, and one whose peer dies or stops ends within seconds, by an [`Error`] that
//! names the rank: each rank runs a watch beside its collectives. Nothing panics, no C++ exception gets out.
//!
//! It knows nothing of models, batches or datasets.

mod address;
mod cuda;
mod error;
mod ffi;
mod group;
mod key;
mod launch;
mod options;
mod reduce_op;
mod reducer;
mod shape;
mod store;
mod watch;

pub use cuda::{has_nccl_part, load_cuda};
pub use error::{Cause, Error, Loss, Result};
pub use group::{ProcessGroup, Work};
pub use key::Key;
pub use launch::Launch;
pub use options::{Backend, Options};
pub use reduce_op::ReduceOp;
pub use reducer::{BucketTimes, GradientReduction, Reducer, ReducerOptions};
pub use store::TcpStore;
