//! No row is lost in a refused run. Each way in which a run can be wrong must lead to one message with the
//! fault and the remedy. The refusal must not change any file, and the correct dataset must result after the
//! fault is repaired.
//!
//! The real programs run as processes on a small job ([`job::Job`]).

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test's helpers may panic and print as the tests do"
)]

mod counts;
mod crafted;
mod damage;
mod gc;
mod job;
mod mapper;
mod places;
mod reducer;
mod run;
mod seal;
mod streams;
