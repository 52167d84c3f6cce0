//! Settings of a child process that are applied between fork and exec. They have no safe wrapper.
//!
//! This is the only module of the crate with `unsafe`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// Kills the command's process as soon as the thread that started it ends, for whatever reason.
pub fn kill_with_parent(command: &mut Command) {
    let parent = getpid();
    let arm = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent died before this call, there will be no signal.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from(Errno::SRCH)) }
    };
    // SAFETY: code between fork and exec must be async-signal-safe. `arm` makes two system calls, takes no lock and
    // allocates nothing; an error of the system is a number.
    unsafe { command.pre_exec(arm) };
}

/// Passes a descriptor to the command's process, under the same number. This process keeps it open as long as the
/// command.
pub(crate) fn inherit(command: &mut Command, descriptor: OwnedFd) -> RawFd {
    let number = descriptor.as_raw_fd();
    let keep = move || Ok(fcntl_setfd(&descriptor, FdFlags::empty())?);
    // SAFETY: as above. One system call on a descriptor that the command owns and that a fork copies.
    unsafe { command.pre_exec(keep) };
    number
}
