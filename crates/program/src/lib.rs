//! Start and end of every program. Checks the standard streams, converts arguments into local paths, and
//! converts errors into one line and an exit code. This crate does not depend on what programs read or write.
//!
//! Several programs also show long work ([`bars`]), run as tasks of Hadoop ([`hadoop`]) and draw random numbers ([`random`]).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

pub mod bars;
pub mod bounded;
mod descriptors;
pub mod exit;
pub mod hadoop;
pub mod hexadecimal;
pub mod limits;
pub mod location;
pub mod pipe;
pub mod place;
pub mod progress;
pub mod random;
pub mod size;
mod streams;
pub mod system;
pub mod temporary;
pub mod threads;
pub mod url;
pub mod version;

pub use streams::{Stream, UnusableStream, stdin};

/// Starts a program: prepares it for the limits of the system, and checks that its standard streams can be used. `main`
/// calls this first.
///
/// # Errors
/// If a standard stream is closed, or open in the other direction only.
pub fn start(program: &'static str) -> Result<(), UnusableStream> {
    limits::prepare(program);
    streams::check()
}
