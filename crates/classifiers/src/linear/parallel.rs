//! Distributes numbered pieces of work among threads.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use program::threads::spawn;

/// Calls `work` with a state of each thread and each of `0..n`, in several threads. Returns the results in order of
/// their numbers, and the states. Which thread handles which number depends on timing.
pub(super) fn map_with<S: Send, R: Send>(
    threads: usize,
    n: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> R + Sync,
) -> (Vec<R>, Vec<S>) {
    let next = AtomicUsize::new(0);
    let run = || {
        let (mut own, mut done) = (state(), Vec::new());
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= n {
                return (own, done);
            }
            done.push((number, work(&mut own, number)));
        }
    };
    let finished = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(n)).map(|_| spawn(scope, run)).collect();
        let mut finished = vec![run()];
        finished.extend(
            others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
        );
        finished
    });
    let (mut results, mut states) = (Vec::with_capacity(n), Vec::with_capacity(finished.len()));
    for (own, done) in finished {
        states.push(own);
        results.extend(done);
    }
    results.sort_unstable_by_key(|&(number, _)| number);
    (results.into_iter().map(|(_, result)| result).collect(), states)
}

/// As [`map_with`], without a state.
pub(super) fn map<R: Send>(threads: usize, n: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    map_with(threads, n, || (), |(), number| work(number)).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_handled_once_and_results_are_in_order() {
        for threads in [1, 2, 7] {
            let (results, states) = map_with(
                threads,
                100,
                || 0,
                |sum, number| {
                    *sum += number;
                    2 * number
                },
            );
            assert_eq!(results, (0..100).map(|number| 2 * number).collect::<Vec<_>>());
            assert_eq!(states.iter().sum::<usize>(), 4950);
        }
        assert!(map(3, 0, |number| number).is_empty());
    }
}
