//! The program `trainer`: trains, evaluates and exports models, predicts, and writes reports. Commands that need
//! PyTorch are run by `trainer-torch`, which is in the same folder.

use std::process::ExitCode;

use trainer::start::{is_of_version, replace, start};

#[expect(clippy::result_large_err, reason = "the error ends the program")]
fn main() -> ExitCode {
    if is_of_version() {
        // The other executable knows the version of PyTorch. Without it, the version is printed without PyTorch.
        let _ = replace();
    }
    start(&[("HDF5", &*dataset::hdf5_version())], |_| Err(replace()))
}
