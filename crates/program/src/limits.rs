//! Limits of the operating system. A program that reaches one ends with [`Exit::Io`] and one line, not with a panic, a
//! signal or an abort.
//!
//! - **Memory** (`ulimit -v`, `-d`). The allocator of all programs prints a prepared line and ends the process: code that
//!   runs after a failed allocation would have to allocate.
//! - **File size** (`ulimit -f`). SIGXFSZ has a handler that does nothing, so that writing fails with EFBIG as on a full
//!   disk. The programs that this one starts do not inherit it.
//! - **Threads** (`ulimit -u`). [`crate::threads`] starts them. A library that panics because it cannot start one, or
//!   because memory is exhausted, is recognized by its message; another panic is a defect, also if a system call failed.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::any::Any;
use std::cell::Cell;
use std::io::Write as _;
use std::panic;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, getrlimit};

use crate::exit::Exit;
use crate::system::{NO_MEMORY, NO_MEMORY_REMEDY};

static PROGRAM: OnceLock<&'static str> = OnceLock::new();

/// Prepares a program for the limits of the system, before it does anything else.
pub(crate) fn prepare(program: &'static str) {
    let _ = PROGRAM.set(program);
    survive_file_size();
    let of_defects = panic::take_hook();
    panic::set_hook(Box::new(move |panic| match text_of(panic.payload()) {
        Some(text) if is_panic_of_exhausted(text) => end(&why_exhausted(text)),
        _ => of_defects(panic),
    }));
}

fn survive_file_size() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    // SAFETY: no other code uses this signal, and its handler does nothing.
    unsafe { libc::signal(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t) };
}

fn text_of(payload: &dyn Any) -> Option<&str> {
    payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied())
}

/// Memory is exhausted, on a CPU or a GPU.
const MEMORY: [&str; 5] =
    ["out of memory", "allocate memory", "bad_alloc", "ALLOC_FAILED", "ALLOCATION_FAILED"];
/// A thread is refused, in the words of std, and of tokio.
const THREADS: [&str; 2] = ["failed to spawn thread", "can't spawn worker thread"];

/// Whether a panic reports that memory or threads are exhausted. The words of the system alone do not: a socket has the
/// same ones.
fn is_panic_of_exhausted(text: &str) -> bool {
    let has = |causes: &[&str]| causes.iter().any(|cause| text.contains(cause));
    // The panics of tch contain the errors of PyTorch.
    has(&THREADS) || text.contains("bad_alloc") || text.contains("Torch(\"") && has(&MEMORY)
}

/// The line for a panic of exhausted memory or threads.
fn why_exhausted(text: &str) -> String {
    if !is_of_gpu(text) {
        return format!("{NO_MEMORY}; {NO_MEMORY_REMEDY}");
    }
    // The debug format of an error of PyTorch escapes the ends of its lines.
    let text = text.split_once("Torch(\"").map_or(text, |(_, text)| text);
    let first = text.split(['\n', '"']).next().unwrap_or_default();
    format!("{}; use a smaller --batch", first.split("\\n").next().unwrap_or_default().trim())
}

/// Whether an error of PyTorch is one of a GPU.
pub fn is_of_gpu(message: &str) -> bool {
    ["CUDA", "cuDNN", "CUDNN"].iter().any(|name| message.contains(name))
}

/// Whether an error of PyTorch reports that memory or threads are exhausted, on a CPU or a GPU.
pub fn is_exhausted(message: &str) -> bool {
    const CAUSES: [&str; 2] = [
        // oneDNN, which compiles its code into memory of its own.
        "could not create a primitive",
        // EAGAIN, in the words of the operating system.
        "Resource temporarily unavailable",
    ];
    MEMORY.iter().chain(&THREADS).chain(&CAUSES).any(|cause| message.contains(cause))
}

/// Prints one line and ends the process with [`Exit::Io`]. Exit handlers do not run, because other threads still run.
pub(crate) fn end(why: &str) -> ! {
    first_to_end();
    let _ = Exit::Io.end(PROGRAM.get().unwrap_or(&"sentimill"), why);
    leave()
}

/// Only the first of several threads that end the process prints a line. Its own line may need memory.
fn first_to_end() {
    thread_local!(static HERE: Cell<u8> = const { Cell::new(0) });
    static ENDS: AtomicUsize = AtomicUsize::new(0);
    let here = HERE.with(|here| std::ptr::from_ref(here).addr());
    let first = ENDS.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|first| first != here) {
        loop {
            // SAFETY: waits for a signal; the first thread ends the process.
            unsafe { libc::pause() };
        }
    }
}

fn leave() -> ! {
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(Exit::Io as i32) }
}

/// Ends the process because a block of memory is refused. Allocates nothing.
#[cold]
fn end_without_memory(bytes: usize) -> ! {
    first_to_end();
    let mut line = [0; 256];
    let mut rest = &mut line[..];
    let program = PROGRAM.get().unwrap_or(&"sentimill");
    let _ = writeln!(rest, "{program}: {NO_MEMORY} (for {bytes} bytes); {NO_MEMORY_REMEDY}");
    let unused = rest.len();
    let n_bytes = line.len() - unused;
    // SAFETY: the buffer has as many bytes. If standard error cannot be written, the exit code still reports the failure.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), n_bytes) };
    leave()
}

/// The limit of this process's memory in bytes (`ulimit -v`), if there is one.
pub fn memory_limit() -> Option<u64> {
    getrlimit(Resource::As).current
}

/// Returns freed memory to the system.
pub fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the C library releases unused pages of its heaps, under their locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The allocator of the system. It never returns null.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// `block`, if there is one.
#[inline]
fn some(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        end_without_memory(bytes);
    }
    block
}

// SAFETY: all calls are passed to the allocator of the system, with the same arguments.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises.
        some(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        some(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        some(unsafe { System.realloc(block, layout, bytes) }, bytes)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_started_does_not_ignore_the_signal_of_file_sizes() {
        survive_file_size();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let is_in = |set: &str| {
            let signals = status.lines().find_map(|line| line.strip_prefix(set)).unwrap();
            u64::from_str_radix(signals.trim(), 16).unwrap() & 1 << (libc::SIGXFSZ - 1) != 0
        };
        // A program that is started ignores what this one ignores, but has none of its handlers. No program is started here,
        // because it would have a copy of the locks of other tests.
        assert!(is_in("SigCgt:") && !is_in("SigIgn:"), "{status}");
    }

    #[test]
    fn exhausted_memory_and_threads_are_recognized_in_panics() {
        for text in [
            "failed to spawn thread: Os { code: 11, kind: WouldBlock, message: \"Resource temporarily unavailable\" }",
            "OS can't spawn worker thread: Resource temporarily unavailable (os error 11)",
            "std::bad_alloc",
            "called `Result::unwrap()` on an `Err` value: Torch(\"[enforce fail at alloc_cpu.cpp:127] err == 0. \
             DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes.\")",
        ] {
            assert!(is_panic_of_exhausted(text), "{text}");
        }
        for text in [
            "index out of bounds: the len is 3 but the index is 3",
            "called `Result::unwrap()` on an `Err` value: Os { code: 11, kind: WouldBlock, message: \"Resource temporarily \
             unavailable\" }",
            "called `Result::unwrap()` on an `Err` value: Os { code: 12, kind: OutOfMemory, message: \"Cannot allocate \
             memory\" }",
            "called `Result::unwrap()` on an `Err` value: Torch(\"could not create a primitive\")",
        ] {
            assert!(!is_panic_of_exhausted(text), "{text}");
        }
    }

    #[test]
    fn a_panic_of_a_full_gpu_names_it() {
        let error = "CUDA out of memory. GPU 0 has 1 GiB.\nException raised from malloc";
        let text = format!("called `Result::unwrap()` on an `Err` value: Torch({error:?})");
        assert!(is_panic_of_exhausted(&text), "{text}");
        let expected = "CUDA out of memory. GPU 0 has 1 GiB.; use a smaller --batch";
        assert_eq!(why_exhausted(&text), expected);
        assert!(why_exhausted("std::bad_alloc").starts_with(NO_MEMORY));
    }

    #[test]
    fn exhausted_memory_and_threads_are_recognized_in_errors_of_pytorch() {
        for message in [
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 \
             bytes. Error code 12 (Cannot allocate memory)",
            "std::bad_alloc",
            "could not create a primitive",
            "CUDA out of memory. Tried to allocate 2 GiB",
            "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        ] {
            assert!(is_exhausted(message), "{message}");
        }
        assert!(!is_exhausted("index out of bounds: the len is 3 but the index is 3"));
    }
}
