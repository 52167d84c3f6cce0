//! Trains models on datasets, evaluates them and predicts with them.
//!
//! The program's commands ([`commands`]) combine independent modules. These modules do not use tensors: the flags
//! ([`arguments`], [`flags`], [`defaults`]) and predictions for lines ([`predict`]). These use tensors: device and
//! threads ([`compute`]), batches on the device ([`inputs`]), the datasets of the splits ([`splits`]) and
//! their soft labels ([`soft_targets`]), models ([`families`]), gradients ([`gradients`]),
//! optimizers ([`optim`]), and the training loop ([`train`]). All of them are functions of their arguments, so ranks
//! ([`ranks`]) with the same arguments compute the same results. [`start`] has what both executables do first. [`times`] measures how a rank spends its time. Inputs
//! in S3 are read by `places`, and `remote` keeps a training folder in S3.
//!
//! Other crates have the rest: rows and batches are in [`mod@batches`]; recipes, saved models, checkpoints and
//! training folders in [`mod@runs`]; metrics in [`mod@scoring`]; the report in [`mod@report`]; rank processes in
//! [`mod@launch`].

mod balancing;
mod checkpoint;
mod error;
mod ffi;
mod origins;
mod places;
mod remote;
mod tell;
mod throttle;
mod told;

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
pub mod splits;
pub mod start;
pub mod step;
pub mod times;
pub mod trace;
pub mod train;

pub use error::{Error, Result};
pub use tell::set_quiet;
