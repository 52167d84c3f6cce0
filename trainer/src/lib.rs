//! From a dataset to a trained model.
//!
//! The program's commands ([`commands`]) tie together what knows little of each other. Without tensors: the flags
//! ([`arguments`], [`flags`], [`defaults`]) and the sizes that anything may have ([`limits`]), the rows of a dataset as batches for one
//! rank ([`batches`]), the learning rate of a step ([`schedule`]), what an evaluation counts ([`metrics`]), the folder of a
//! saved model ([`saved`]), lines into answers ([`predict`]), the folder of a training ([`run`]) and the page about it
//! ([`report`]), event files ([`tensorboard`]). With them: batches on a device
//! ([`inputs`]), the models ([`models`]), what computes them, kernels or PyTorch ([`compute`], `gradients`), what is made
//! small ([`loss`]) and how ([`optim`]), and the loop ([`train`]). All of it is a function of its arguments, so that ranks
//! ([`ranks`]) which are told the same do the same. Around it: what a rank did with its time ([`times`]). Ranks as processes
//! are [`mod@launch`].

mod checkpoint;
mod error;
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
pub mod predict;
pub mod ranks;
pub mod step;
pub mod times;
pub mod train;

pub use error::{Error, Result};
