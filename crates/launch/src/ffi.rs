//! What a child process does between fork and exec, which has no safe wrapper.
//!
//! This is the only module of the crate with `unsafe`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
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

/// The process that this command starts has this descriptor too, under the same number; this process has it as long as
/// the command lives.
pub(crate) fn inherit(command: &mut Command, descriptor: OwnedFd) -> RawFd {
    let number = descriptor.as_raw_fd();
    let keep = move || Ok(fcntl_setfd(&descriptor, FdFlags::empty())?);
    // SAFETY: as above: one system call on a descriptor that the command owns, and that a fork copies.
    unsafe { command.pre_exec(keep) };
    number
}
