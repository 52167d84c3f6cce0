//! The program `vectors`. Its commands ([`commands`]) convert flags ([`arguments`], [`flags`]) into calls of the crates
//! [`embeddings`], which trains and compares vectors, and [`parameters`], by which workers train together.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

pub mod arguments;
pub mod commands;
pub mod flags;

use std::process::ExitCode;

use training::start::start;
use training::tell::set_quiet;

/// The main function.
pub fn run() -> ExitCode {
    start("vectors", flags::parse, |arguments| {
        set_quiet(arguments.command.is_quiet());
        commands::run(&arguments.command)
    })
}
