//! The ranks of a training as processes: started together on one machine and ended together ([`run`]), asked for
//! something by signals ([`interrupt`]), known to each other by a secret ([`key`]), and failing with a file that says
//! why ([`failure`]). Knows nothing of what ranks compute.

mod ffi;
mod launcher;

pub mod failure;
pub mod interrupt;
pub mod key;

pub use launcher::{End, Error, GRACE, Options, ROOT_CAUSE_WITHIN, Result, run};
