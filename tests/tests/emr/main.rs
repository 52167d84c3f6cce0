//! The program `emr` on an EMR of this machine: failures at each stage, and the page docs/emr.md as a reader follows
//! it. emr/tests/ has the other tests of `emr`.
//!
//! One server and one Hadoop serve all tests, one test at a time.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

mod failing;
mod faults;
mod job_file;
mod page;
mod served;
