//! Records the state of the standard descriptors at process start.
//!
//! Only code that runs before Rust's runtime can do this, because the runtime opens `/dev/null` in place of
//! each closed descriptor. An open `/dev/null` does not prove that the descriptor was closed, because callers
//! also pass `/dev/null` on purpose.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};

/// State of a descriptor at process start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Closed = 1,
    ReadOnly,
    WriteOnly,
    ReadWrite,
}

impl State {
    const ALL: [Self; 4] = [Self::Closed, Self::ReadOnly, Self::WriteOnly, Self::ReadWrite];

    fn of(descriptor: i32) -> Self {
        // SAFETY: F_GETFL takes no pointer and changes nothing, whatever the descriptor is.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
        match flags & libc::O_ACCMODE {
            _ if flags < 0 => Self::Closed,
            libc::O_RDONLY => Self::ReadOnly,
            libc::O_WRONLY => Self::WriteOnly,
            _ => Self::ReadWrite,
        }
    }
}

/// By descriptor; 0 before [`LOOK`] has run.
static AT_START: [AtomicU8; 3] = [const { AtomicU8::new(0) }; 3];

/// The C library calls the functions in this section before `main`, and so before Rust's runtime.
// SAFETY: the section holds pointers to functions of this signature; `look` does not allocate or panic, and
// uses nothing of Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for (descriptor, state) in (0..).zip(&AT_START) {
        state.store(State::of(descriptor) as u8, Ordering::Relaxed);
    }
}

/// State of descriptor 0, 1 or 2 at process start.
pub(crate) fn at_start(descriptor: usize) -> State {
    // A linker drops an archive member that nothing refers to.
    std::hint::black_box(&LOOK);
    let found = AT_START[descriptor].load(Ordering::Relaxed);
    let state = State::ALL.into_iter().find(|&state| state as u8 == found);
    state.expect("the C library calls what stands in .init_array")
}
