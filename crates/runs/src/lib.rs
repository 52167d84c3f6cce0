//! Reads and writes the files of trainings, for any model: the folder of a saved model ([`saved`]), checkpoints
//! ([`checkpoints`]), the training folder with its events ([`training`]), the same events for TensorBoard
//! ([`tensorboard`]), models as files of ONNX ([`onnx`]), the settings of a training ([`recipe`]), the folder of a
//! cross-validation ([`folds`]), and soft labels ([`soft_labels`]). This crate does not depend on how a model computes.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

mod error;
mod json;

pub mod checkpoints;
pub mod folds;
pub mod onnx;
pub mod recipe;
pub mod saved;
pub mod soft_labels;
pub mod tensorboard;
pub mod training;

pub use error::{Error, Result};
