//! From a dataset to a trained model.
//!
//! The program's commands ([`commands`]) tie together what knows little of each other. Without tensors: the flags
//! ([`arguments`], [`flags`], [`defaults`]) and lines into answers ([`predict`]). With them: a device and threads
//! ([`compute`]), batches on it ([`inputs`]), the models ([`families`]), their gradients ([`gradients`]), what these
//! change ([`optim`]), and the loop ([`train`]). All of it is a function of its arguments, so that ranks ([`ranks`])
//! which are told the same do the same. Beside it: what a rank did with its time ([`times`]).
//!
//! Rows and batches are [`mod@batches`]; recipes, saved models, checkpoints and the folders of trainings
//! [`mod@runs`]; metrics [`mod@scoring`]; the page about trainings [`mod@report`]; ranks as processes [`mod@launch`].

mod checkpoint;
mod error;
mod ffi;
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
pub mod step;
pub mod times;
pub mod train;

pub use error::{Error, Result};
