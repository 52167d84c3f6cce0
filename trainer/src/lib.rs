//! Trains LSTM models on datasets, evaluates them and predicts with them.
//!
//! The program's commands ([`commands`]) combine independent modules. The flags ([`arguments`], [`flags`], [`defaults`]) use
//! no tensors. These modules do: device and threads ([`compute`]), batches on the device ([`inputs`]), soft
//! labels ([`soft_targets`]), models of PyTorch ([`families`]), gradients ([`gradients`]), sums over ranks (`exchange`),
//! optimizers ([`optim`]), and the training loop ([`train`]) with its steps, times, balancing and checkpoints. All of them are functions of their
//! arguments, so ranks ([`ranks`]) with the same arguments compute the same results.
//!
//! Other crates have the rest: what other programs need too is in [`mod@training`]; rows and batches are in
//! [`mod@batches`]; recipes, saved models, checkpoints and training folders in [`mod@runs`]; metrics in [`mod@scoring`];
//! rank processes in [`mod@launch`].
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

mod error;
mod exchange;
mod ffi;

pub mod arguments;
pub mod commands;
pub mod compute;
pub mod defaults;
pub mod families;
pub mod flags;
pub mod gradients;
pub mod inputs;
pub mod optim;
pub mod ranks;
pub mod soft_targets;
pub mod train;

pub use error::{Error, Result};
