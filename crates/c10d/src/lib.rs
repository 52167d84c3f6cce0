//! PyTorch's distributed engine, c10d, for tch tensors.
//!
//! Ranks find each other through a [`TcpStore`] and join a [`ProcessGroup`] over Gloo or NCCL. The collectives of a
//! group do not copy tch tensors. A [`Reducer`] sums gradients over the ranks while backward is running. These are
//! PyTorch's implementations, called through a C++ shim (csrc/). Rust ranks and Python ranks can therefore be in one
//! group, and torchrun can start both.
//!
//! Every call returns within a time limit. If a peer dies or stops, the call returns within seconds with an [`Error`]
//! that names the rank, because each rank runs a watch in a separate thread. No call panics, and no C++ exception
//! leaves the shim.
//!
//! The crate does not depend on models, batches or datasets.

mod address;
mod cuda;
mod error;
mod ffi;
mod group;
mod key;
mod members;
mod options;
mod precision;
mod reduce_op;
mod reducer;
mod shape;
mod store;
mod watch;

pub use cuda::{has_nccl_part, load_cuda, wait_for};
pub use error::{Cause, Error, Loss, Result};
pub use ffi::compiled_version;
pub use group::{ProcessGroup, Work};
pub use key::Key;
pub use launch::Launch;
pub use members::{Members, has_started_ranks, known_ranks, start_ranks};
pub use options::{Backend, Options};
pub use precision::{forbid_tf32, in_bfloat16, in_own_kinds};
pub use reduce_op::ReduceOp;
pub use reducer::{BucketTimes, GradientReduction, Reducer, ReducerOptions};
pub use store::TcpStore;
