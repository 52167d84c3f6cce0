//! Threads of a computation. If the system refuses one, the program ends with one line: `clippy.toml` refuses the functions
//! of std, which panic.

use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::limits::end;
use crate::system::{NO_MEMORY, NO_MEMORY_REMEDY};

/// Starts a thread of a scope.
pub fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    Builder::new().spawn_scoped(scope, work).unwrap_or_else(|_| exhausted())
}

/// Starts a thread that is not joined.
pub fn detach(work: impl FnOnce() + Send + 'static) {
    drop(Builder::new().spawn(work).unwrap_or_else(|_| exhausted()));
}

/// Checks that the system allows this number of threads in addition, before a library starts them that cannot report a
/// refusal.
pub fn check(n: usize) {
    let all = Barrier::new(n + 1);
    std::thread::scope(|scope| {
        (0..n).for_each(|_| drop(spawn(scope, || all.wait())));
        all.wait();
    });
}

/// Ends the program because the system refuses a thread.
pub fn exhausted() -> ! {
    end(&format!("cannot start a thread: {NO_MEMORY}; {NO_MEMORY_REMEDY}"))
}

/// Locks a mutex. A thread that panicked while it held the lock left no inconsistent state, so the others may continue.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
