//! Runs a shell script as ranks, for tests: `launch-script RANKS SCRIPT`. The environment has the options. `launch-script fail`
//! is a rank that fails as the trainer does. With `TEST_LOST`, ranks go on
//! without those whose numbers are in that file, if it exists; behind a `|` it has the numbers of those who joined.
#![allow(clippy::unwrap_used, reason = "a panic is a failure of the test")]

use std::cell::Cell;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use launch::{Known, Options, Survival, failure};
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
    let (program, arguments) = (Path::new("/bin/sh"), ["-c".into(), script]);
    let ended = match env::var_os("TEST_LOST") {
        None => launch::run(program, &arguments, &options).map(|()| Vec::new()),
        Some(file) => {
            let ranks_of = |text: &str| text.split_whitespace().map(|rank| rank.parse().unwrap()).collect();
            let known = || {
                let text = fs::read_to_string(&file).ok()?;
                let (lost, members) = text.split_once('|').unwrap_or((&text, ""));
                Some(Known { lost: ranks_of(lost), members: ranks_of(members), is_over: false })
            };
            let number = |name| env::var(name).ok().map(|number| number.parse::<usize>().unwrap());
            let (first, started) = (number("TEST_JOINS_FROM"), Cell::new(options.n_ranks.get()));
            let survival = Survival {
                store: ("127.0.0.1", 4711),
                is_shared: first.is_some(),
                joins_from: first,
                restarts: number("TEST_RESTARTS").unwrap_or(0),
                start_rank: &|| Some(started.replace(started.get() + 1)),
                tell: &|line| eprintln!("{line}"),
                known: &known,
            };
            launch::run_surviving(program, &arguments, &options, &survival)
        }
    };
    match ended {
        Ok(lost) => {
            lost.iter().for_each(|(rank, end)| eprintln!("without rank {rank}, which {end}"));
            ExitCode::SUCCESS
        }
        Err(error) => error.end("trainer", ""),
    }
}
