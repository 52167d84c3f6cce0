//! Coordinate descent: threads take numbers in random order, and share what a step changes without locks.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Barrier, PoisonError, RwLock};
use std::thread;

use program::threads::spawn;

use super::settings::LinearSettings;

/// Threads that train, until they are stopped.
#[derive(Clone, Copy)]
pub(super) struct Threads<'a> {
    pub n: usize,
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
}

/// In each epoch, calls `begin` in one thread, then `step` with each of `0..n` in random order. A thread takes `together`
/// numbers at once.
#[inline]
pub(super) fn descend(
    settings: &LinearSettings,
    threads: Threads<'_>,
    n: usize,
    together: usize,
    begin: impl Fn() + Sync,
    step: impl Fn(usize) + Sync,
) {
    let is_stopped = threads.is_stopped;
    let order: RwLock<Vec<u32>> = RwLock::new((0..n as u32).collect());
    // All threads leave at the same barrier.
    let (next, barrier, has_ended) = (AtomicUsize::new(0), Barrier::new(threads.n), AtomicBool::new(false));
    let work = |is_first: bool| {
        let mut random = Random::new(settings.seed);
        for _ in 0..settings.epochs {
            if is_first {
                random.shuffle(&mut order.write().unwrap_or_else(PoisonError::into_inner));
                next.store(0, Relaxed);
                has_ended.store(is_stopped(), Relaxed);
                begin();
            }
            barrier.wait();
            if has_ended.load(Relaxed) {
                return;
            }
            let order = order.read().unwrap_or_else(PoisonError::into_inner);
            loop {
                let from = next.fetch_add(together, Relaxed);
                if from >= order.len() || is_stopped() {
                    break;
                }
                for &number in &order[from..order.len().min(from + together)] {
                    step(number as usize);
                }
            }
            drop(order);
            barrier.wait();
        }
    };
    thread::scope(|scope| {
        (1..threads.n).for_each(|_| {
            spawn(scope, || work(false));
        });
        work(true);
    });
}

/// Xorshift generator of Marsaglia (2003).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491_4f6c_dd1d) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Orders numbers at random.
    fn shuffle(&mut self, numbers: &mut [u32]) {
        for n in (2..=numbers.len()).rev() {
            let other = ((u128::from(self.next()) * n as u128) >> 64) as usize;
            numbers.swap(n - 1, other);
        }
    }
}
