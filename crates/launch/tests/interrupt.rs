//! Signals to a process, which each test starts for itself: their handlers are the whole process's.
#![allow(clippy::unwrap_used)]

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use launch::interrupt::{Asked, Interrupts};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::low_level::raise;

const TEST: &str = "TRAINER_TEST";

/// Runs the body in a process of its own; here, how that ended, and there, nothing.
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
fn a_checkpoint_is_asked_for_once_and_a_stop_stays_asked() {
    const NAME: &str = "a_checkpoint_is_asked_for_once_and_a_stop_stays_asked";
    let status = in_a_process(NAME, |interrupts| {
        assert_eq!(interrupts.asked(), None);
        raise(SIGUSR1).unwrap();
        assert_eq!(interrupts.asked(), Some(Asked::Checkpoint));
        assert_eq!(interrupts.asked(), None);
        raise(SIGUSR1).unwrap();
        raise(SIGTERM).unwrap();
        assert_eq!(interrupts.asked(), Some(Asked::Stop));
        assert_eq!(interrupts.asked(), Some(Asked::Stop));
    });
    assert!(status.is_none_or(|status| status.success()), "{status:?}");
}

#[test]
fn an_interrupt_asks_for_a_stop_and_a_second_one_ends_at_once() {
    const NAME: &str = "an_interrupt_asks_for_a_stop_and_a_second_one_ends_at_once";
    let status = in_a_process(NAME, |interrupts| {
        raise(SIGTERM).unwrap();
        raise(SIGINT).unwrap();
        assert_eq!(interrupts.asked(), Some(Asked::Stop));
        raise(SIGTERM).unwrap();
        raise(SIGINT).unwrap();
        panic!("a second SIGINT did not end the process");
    });
    assert!(status.is_none_or(|status| status.signal() == Some(SIGINT)), "{status:?}");
}
