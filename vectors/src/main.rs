//! The program `vectors`: trains word vectors on lines, streams or a dataset, holds them for several workers, and
//! evaluates, compares and converts them.

use std::process::ExitCode;

fn main() -> ExitCode {
    vectors::run()
}
