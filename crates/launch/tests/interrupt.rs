//! Signals to a process. Each test starts its own process, because signal handlers are global.
#![allow(clippy::unwrap_used)]

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use launch::interrupt::{Interrupts, Requested};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::low_level::raise;

const TEST: &str = "TRAINER_TEST";

/// Runs the body in a separate process. Returns its exit status; inside that process, returns None.
fn in_a_process(test: &str, body: impl FnOnce(&Interrupts)) -> Option<ExitStatus> {
    if env::var(TEST).is_ok_and(|name| name == test) {
        body(&Interrupts::listen().unwrap());
        return None;
    }
    let mut process = Command::new(env::current_exe().unwrap());
    process.args(["--exact", test, "--nocapture"]).env(TEST, test);
    Some(process.status().unwrap())
}

#[test]
fn a_checkpoint_is_requested_once_and_a_stop_permanently() {
    const NAME: &str = "a_checkpoint_is_requested_once_and_a_stop_permanently";
    let status = in_a_process(NAME, |interrupts| {
        assert_eq!(interrupts.requested(), None);
        raise(SIGUSR1).unwrap();
        assert_eq!(interrupts.requested(), Some(Requested::Checkpoint));
        assert_eq!(interrupts.requested(), None);
        raise(SIGUSR1).unwrap();
        raise(SIGTERM).unwrap();
        assert_eq!(interrupts.requested(), Some(Requested::Stop));
        assert_eq!(interrupts.requested(), Some(Requested::Stop));
    });
    assert!(status.is_none_or(|status| status.success()), "{status:?}");
}

#[test]
fn one_sigint_requests_a_stop_and_a_second_ends_the_process() {
    const NAME: &str = "one_sigint_requests_a_stop_and_a_second_ends_the_process";
    let status = in_a_process(NAME, |interrupts| {
        raise(SIGTERM).unwrap();
        raise(SIGINT).unwrap();
        assert_eq!(interrupts.requested(), Some(Requested::Stop));
        raise(SIGTERM).unwrap();
        raise(SIGINT).unwrap();
        panic!("a second SIGINT did not end the process");
    });
    assert!(status.is_none_or(|status| status.signal() == Some(SIGINT)), "{status:?}");
}
