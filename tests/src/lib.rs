//! What the tests of several programs share: the made-up reviews they read, real ones where they lie beside the
//! project, and the programs themselves as processes.

use std::env;
use std::io::{self, Write};

pub mod bad_lines;
pub mod compressed;
pub mod demo;
pub mod fault_proxy;
pub mod files;
pub mod hadoop;
pub mod lines;
pub mod oracle;
pub mod pipe;
pub mod programs;
pub mod real_data;
pub mod s3_server;
pub mod seeds;
#[cfg(target_arch = "x86_64")]
pub mod steps;
#[cfg(target_arch = "x86_64")]
pub mod tracer;

/// Whether there is time for the long counts: PROVE=1, which `make prove` sets.
pub fn prove() -> bool {
    env::var_os("PROVE").is_some()
}

/// Says that something was not tested, and why: what that takes is not installed or not permitted, which only a
/// developer's machine may do. Where `CI` is set and not empty, the test fails.
#[track_caller]
pub fn skipped(what: &str) {
    let skipped = format!("SKIPPED {what}");
    assert!(env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{skipped}");
    say(&skipped);
}

/// Says, past the harness, which keeps what a passing test prints, that something was not tested or how it went.
pub fn say(text: &str) {
    writeln!(io::stderr(), "{text}").expect("standard error takes a line");
}
