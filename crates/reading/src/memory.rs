//! Memory that threads share: a thread waits until its share fits, or until no other thread has a share.

use std::sync::{Condvar, Mutex, PoisonError};

use program::threads::locked;

/// Memory for all threads together.
#[derive(Debug)]
pub(crate) struct Memory {
    bytes_max: u64,
    /// Sum of all shares.
    taken: Mutex<u64>,
    /// Signals threads that wait.
    freed: Condvar,
}

impl Memory {
    /// This number of bytes.
    pub(crate) fn of(bytes_max: u64) -> Self {
        Self { bytes_max, taken: Mutex::new(0), freed: Condvar::new() }
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_max
    }

    /// Wakes all threads that wait, after reading was stopped.
    pub(crate) fn wake(&self) {
        // Under the lock, so that no thread is between its check and its wait.
        drop(locked(&self.taken));
        self.freed.notify_all();
    }

    /// Whether a share of this size fits in addition to those of the others. A share that exceeds the memory fits if it
    /// is the only one, because its batch could never be read otherwise.
    fn fits(&self, others: u64, bytes: u64) -> bool {
        others == 0 || others.saturating_add(bytes) <= self.bytes_max
    }
}

/// The share of one thread. Dropping it returns it.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    memory: &'a Memory,
    bytes: u64,
}

impl<'a> Share<'a> {
    /// A share of 0 bytes.
    pub(crate) fn of(memory: &'a Memory) -> Self {
        Self { memory, bytes: 0 }
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Changes its size, if that fits now.
    pub(crate) fn try_change(&mut self, bytes: u64) -> bool {
        let mut taken = locked(&self.memory.taken);
        let others = *taken - self.bytes;
        if !self.memory.fits(others, bytes) {
            return false;
        }
        *taken = others + bytes;
        drop(taken);
        self.memory.freed.notify_all();
        self.bytes = bytes;
        true
    }

    /// Waits until an empty share can have this size. Returns `false` if reading was stopped.
    pub(crate) fn wait_for(&mut self, bytes: u64, is_stopped: impl Fn() -> bool) -> bool {
        let mut taken = locked(&self.memory.taken);
        while !self.memory.fits(*taken - self.bytes, bytes) {
            if is_stopped() {
                return false;
            }
            taken = self.memory.freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken = *taken - self.bytes + bytes;
        self.bytes = bytes;
        true
    }

    /// Reduces it to this size.
    pub(crate) fn reduce(&mut self, bytes: u64) {
        let mut taken = locked(&self.memory.taken);
        *taken -= self.bytes.saturating_sub(bytes);
        drop(taken);
        self.memory.freed.notify_all();
        self.bytes = self.bytes.min(bytes);
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.reduce(0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn shares_never_exceed_the_memory_unless_one_is_alone() {
        let memory = Memory::of(100);
        let (taken, n_waits) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for thread in 0..8 {
                let (memory, taken, n_waits) = (&memory, &taken, &n_waits);
                scope.spawn(move || {
                    for round in 0..500 {
                        let bytes = [10, 45, 300][(thread + round) % 3];
                        let mut share = Share::of(memory);
                        if !share.try_change(bytes) {
                            n_waits.fetch_add(1, Ordering::Relaxed);
                            assert!(share.wait_for(bytes, || false));
                        }
                        let sum = taken.fetch_add(bytes, Ordering::SeqCst) + bytes;
                        assert!(sum <= 100 || sum == 300, "{sum}");
                        thread::yield_now();
                        taken.fetch_sub(bytes, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(n_waits.into_inner() > 0);
        assert_eq!(*locked(&memory.taken), 0);
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let memory = Memory::of(100);
        let mut first = Share::of(&memory);
        assert!(first.try_change(60));
        let stopped = AtomicU64::new(0);
        thread::scope(|scope| {
            let waiting =
                scope.spawn(|| Share::of(&memory).wait_for(50, || stopped.load(Ordering::Relaxed) == 1));
            stopped.store(1, Ordering::Relaxed);
            memory.wake();
            assert!(!waiting.join().unwrap());
        });
        first.reduce(50);
        assert!(Share::of(&memory).try_change(50));
        assert!(!Share::of(&memory).try_change(51));
    }
}
