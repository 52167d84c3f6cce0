//! The program `trainer-torch`: `trainer` with all commands, linked to PyTorch.

use std::process::ExitCode;

use trainer::commands::with_torch;
use trainer::start::start;

#[expect(clippy::result_large_err, reason = "the error ends the program")]
fn main() -> ExitCode {
    let libraries = [("HDF5", &*dataset::hdf5_version()), ("PyTorch", c10d::compiled_version())];
    start(&libraries, |arguments| with_torch(&arguments.command))
}
