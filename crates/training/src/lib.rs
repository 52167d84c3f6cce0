//! What the programs that train models share. A program has its own models and commands; here are
//!
//! - how a program and its ranks start and end ([`start`], [`ranks`], [`tell`], [`error`]), and the arguments of
//!   several commands ([`arguments`]),
//! - inputs ([`places`], [`datasets`], [`lines`], [`inputs`], [`initial`], [`texts`], [`model`]) and results ([`out`],
//!   [`texts_out`], [`remote`], [`log`], [`wrong`]),
//! - what is printed ([`mod@print`], [`outcome`], [`classes`]), and one answer per line ([`answers`]),
//! - commands of several programs: a search for settings ([`autotune`]), a report of trainings ([`page`]), the
//!   probabilities of a dataset's rows ([`soft_labels`]) and exports ([`exports`]).
//!
//! Nothing here uses tensors.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

mod origins;

pub mod answers;
pub mod arguments;
pub mod autotune;
pub mod classes;
pub mod datasets;
pub mod error;
pub mod exports;
pub mod formats;
pub mod initial;
pub mod inputs;
pub mod lines;
pub mod log;
pub mod model;
pub mod out;
pub mod outcome;
pub mod page;
pub mod places;
pub mod print;
pub mod ranks;
pub mod remote;
pub mod soft_labels;
pub mod start;
pub mod tell;
pub mod texts;
pub mod texts_out;
pub mod wrong;

pub use error::{Error, Result};
