//! Code that the tests of several programs share: synthetic reviews, real reviews if they are available, and
//! functions that run the programs as processes; for `make dist`, [`manual`].
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

use std::env;
use std::io::{self, Write};

pub mod bad_lines;
pub mod command;
pub mod compressed;
pub mod demo;
pub mod emr;
pub mod fault_proxy;
pub mod files;
pub mod hadoop;
pub mod limits;
pub mod lines;
pub mod manual;
pub mod oracle;
pub mod pages;
pub mod pipe;
pub mod programs;
pub mod ranks;
pub mod real_data;
pub mod s3_server;
pub mod seeds;
#[cfg(target_arch = "x86_64")]
pub mod steps;
#[cfg(target_arch = "x86_64")]
pub mod tracer;
pub mod web_server;

/// Whether to run the long tests: PROVE=1, which `make prove` sets.
pub fn prove() -> bool {
    env::var_os("PROVE").is_some()
}

/// Prints that something was not tested, and why: a tool is not installed or not permitted. This is allowed
/// only on a developer's machine. If `CI` is set and not empty, the test fails.
#[track_caller]
pub fn skipped(what: &str) {
    let skipped = format!("SKIPPED {what}");
    assert!(env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{skipped}");
    say(&skipped);
}

/// Prints to standard error directly, because the test harness hides the output of passing tests.
pub fn say(text: &str) {
    writeln!(io::stderr(), "{text}").expect("standard error takes a line");
}
