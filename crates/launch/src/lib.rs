//! Runs the ranks of a training as processes: starts and ends them together on one machine ([`run`]), converts
//! signals into requests ([`interrupt`]), reads the place of a rank ([`Launch`]), provides a shared secret ([`key`]),
//! and writes error files ([`failure`]).
//! This crate does not depend on what ranks compute.

mod environment;
mod ffi;
mod launcher;

pub mod failure;
pub mod interrupt;
pub mod key;

pub use environment::Launch;
pub use ffi::kill_with_parent;
pub use launcher::{
    End, Error, GRACE, Known, Options, ROOT_CAUSE_WITHIN, Result, Survival, run, run_surviving,
};
