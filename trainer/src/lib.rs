//! Trains models on datasets, evaluates them and predicts with them.
//!
//! The program's commands ([`commands`]) combine independent modules. These modules do not use tensors: the flags
//! ([`arguments`], [`flags`], [`defaults`]), predictions for lines ([`predict`]), and n-gram models
//! (`families/ngrams.rs`). These use tensors: device and threads ([`compute`]), batches on the device ([`inputs`]), soft
//! labels ([`soft_targets`]), models of PyTorch ([`families`]), gradients ([`gradients`]), optimizers ([`optim`]), and the
//! training loop ([`train`]) with its steps, times, balancing and checkpoints. All of them are functions of their
//! arguments, so ranks ([`ranks`]) with the same arguments compute the same results. [`start`] has what both executables
//! do first. `places` reads inputs in S3, and `remote` keeps a training folder in S3.
//!
//! Other crates have the rest: rows and batches are in [`mod@batches`]; recipes, saved models, checkpoints and
//! training folders in [`mod@runs`]; metrics in [`mod@scoring`]; the report in [`mod@report`]; rank processes in
//! [`mod@launch`].
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

mod environment;
mod error;
mod ffi;
mod of_rank_0;
mod origins;
mod places;
mod remote;
mod tell;

pub mod arguments;
pub mod commands;
pub mod compute;
pub mod defaults;
pub mod families;
pub mod flags;
pub mod gradients;
pub mod inputs;
pub mod optim;
pub mod predict;
pub mod ranks;
pub mod soft_targets;
pub mod start;
pub mod train;

pub use error::{Error, Result};
pub use tell::set_quiet;
