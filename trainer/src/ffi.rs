//! The one thing about processes that has no safe wrapper: what a child does between fork and exec.
//!
//! This is the only module of the crate with `unsafe`.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// The process that this command starts is killed as soon as the thread that starts it has ended, however that ends.
pub(crate) fn kill_with_parent(command: &mut Command) {
    let parent = getpid();
    let arm = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the call, and then no signal comes.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from(Errno::SRCH)) }
    };
    // SAFETY: between fork and exec only what is safe in a signal handler may be done: `arm` makes two system calls,
    // takes no lock and allocates nothing, for an error of the system is a number.
    unsafe { command.pre_exec(arm) };
}
