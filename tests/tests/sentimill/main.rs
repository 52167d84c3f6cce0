//! `sentimill` makes the same dataset as `mapper | sort | reducer` and `merge`, byte for byte, or reports an
//! error and leaves nothing.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

mod defaults;
mod dialects;
mod encodings;
mod fetch;
mod inputs;
mod interrupted;
mod killed;
mod made;
mod origins;
mod outputs;
mod refused;
mod rejects;
mod same_bytes;
mod settings;
mod shapes;
mod tables;
mod web;
