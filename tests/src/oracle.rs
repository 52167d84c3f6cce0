//! The oracle: the contract read slowly in Python, which shares no code with the programs.

use std::env;
use std::ffi::OsStr;
use std::path::Path;

use crate::programs::{Finished, run, without_hadoop};
use crate::say;

/// Checks that a dataset is what these raw files must become, by the settings in its own attributes.
#[track_caller]
pub fn agrees(dataset: &Path, raw: &[&Path], arguments: &[&OsStr]) {
    let raw = raw.iter().map(|path| path.as_os_str());
    let all = [dataset.as_os_str()].into_iter().chain(raw).chain(arguments.iter().copied());
    let Some(verdict) = python("compare.py", all) else { return };
    let agreement = verdict.succeeded().said();
    assert!(agreement.ends_with("agree; 0 reviews undecided\n"), "{agreement}");
}

/// Checks that a padded file holds the rows of its dataset.
#[track_caller]
pub fn padded_agrees(padded: &Path, dataset: &Path) {
    let Some(verdict) = python("padded.py", [padded.as_os_str(), dataset.as_os_str()]) else { return };
    let agreement = verdict.succeeded().said();
    assert!(agreement.contains("agree, by h5py"), "{agreement}");
}

/// `None` where its Python packages are not installed, which only a developer's machine may do.
#[track_caller]
fn python<'a>(script: &str, arguments: impl IntoIterator<Item = &'a OsStr>) -> Option<Finished> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = tests.with_file_name(".deps").join("test/bin/python");
    if !python.is_file() {
        let skipped =
            format!("SKIPPED oracle: {} is missing; bootstrap/laptop.sh test installs it", python.display());
        assert!(env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{skipped}");
        say(&skipped);
        return None;
    }
    // -B: no compiled files beside the sources.
    let mut command = without_hadoop(&python);
    Some(run(command.arg("-B").arg(tests.join("oracle").join(script)).args(arguments), b""))
}
