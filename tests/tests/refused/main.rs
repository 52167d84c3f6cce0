//! No row is lost in a refused case: for each way a run can be wrong, one message that says what is wrong and what
//! to do, nothing changed by the refusal, and the right dataset once the fault is mended.
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
