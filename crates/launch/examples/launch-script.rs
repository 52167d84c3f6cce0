//! Runs a shell script as ranks, for tests: `launch-script RANKS SCRIPT`. The environment has the options. `launch-script fail`
//! is a rank that fails as the trainer does.
#![allow(clippy::unwrap_used, reason = "a panic is a failure of the test")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use launch::{Options, failure};
use program::exit::Exit;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    if arguments == ["fail"] {
        failure::report(Exit::Io, "checkpoint: disk full").unwrap();
        return ExitCode::from(Exit::Io as u8);
    }
    let [ranks, script] = arguments.try_into().unwrap();
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
