//! What a [`classifiers::Classifier`] is evaluated by, and what it answers.

pub mod choice;
pub mod evaluate;
pub mod explain;
pub mod onnx;
pub mod predict;
pub mod quality;
