//! Runs a shell script as ranks, for tests: `launch-script RANKS SCRIPT`. The environment has the options.
#![allow(clippy::unwrap_used, reason = "a panic is a failure of the test")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use launch::Options;

fn main() -> ExitCode {
    let [ranks, script] = env::args_os().skip(1).collect::<Vec<_>>().try_into().unwrap();
    let milliseconds = |name| env::var(name).map(|text| Duration::from_millis(text.parse().unwrap()));
    let mut options = Options::of(ranks.to_str().unwrap().parse().unwrap());
    options.log_dir = env::var_os("TEST_LOG_DIR").map(PathBuf::from);
    options.grace = milliseconds("TEST_GRACE_MS").unwrap_or(options.grace);
    options.root_cause_within =
        milliseconds("TEST_ROOT_CAUSE_WITHIN_MS").unwrap_or(options.root_cause_within);
    match launch::run(Path::new("/bin/sh"), &["-c".into(), script], &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.end("trainer"),
    }
}
