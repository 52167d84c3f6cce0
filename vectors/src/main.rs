//! The program `vectors`: trains word vectors on lines, streams or a dataset, holds them for several workers, and
//! evaluates, compares and converts them.

use std::process::ExitCode;

use training::start::start;
use training::tell::set_quiet;
use vectors::{commands, flags};

fn main() -> ExitCode {
    start("vectors", flags::parse, |arguments| {
        set_quiet(arguments.command.is_quiet());
        commands::run(&arguments.command)
    })
}
