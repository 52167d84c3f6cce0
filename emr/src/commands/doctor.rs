//! `emr doctor`: what this machine can do.

use clap::Args;

use crate::Error;

/// What to check.
#[derive(Args, Clone, Debug)]
pub struct Arguments {}

/// Prints what this machine can do.
pub fn run(_: &Arguments) -> Result<(), Error> {
    program::exit::print("").map_err(Error::Output)
}
