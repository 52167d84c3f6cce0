//! Runs numbered pieces of work on several threads and returns their results in order.

use std::num::NonZeroUsize;
use std::sync::mpsc::sync_channel;
use std::thread;

use program::threads::spawn;

/// Number of threads: one per core, at most `most`. For input that takes longer to decode than to read.
pub fn threads(most: NonZeroUsize) -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).min(most)
}

/// Runs `work` for pieces 0 to `n_pieces` - 1, each on one of several threads, and passes the results to
/// `take` on the calling thread, in the order of the pieces. Stops at the first error in that order. At most
/// one result per thread exists that `take` has not received.
pub(crate) fn in_order<R: Send, E: Send>(
    n_pieces: usize,
    threads: NonZeroUsize,
    work: impl Fn(usize) -> Result<R, E> + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.get().min(n_pieces);
    if threads < 2 {
        return (0..n_pieces).try_for_each(|piece| take(work(piece)?));
    }
    thread::scope(|scope| {
        let mut queues = Vec::new();
        for first in 0..threads {
            // Capacity 0: a thread waits until its result is taken.
            let (done, queue) = sync_channel(0);
            queues.push(queue);
            let work = &work;
            spawn(scope, move || {
                for piece in (first..n_pieces).step_by(threads) {
                    // After an error no more results are taken.
                    if done.send(work(piece)).is_err() {
                        return;
                    }
                }
            });
        }
        (0..n_pieces).try_for_each(|piece| {
            let result = queues[piece % threads].recv();
            take(result.expect("a thread sends all its results, unless it panics")?)
        })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn of(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).unwrap()
    }

    #[test]
    fn results_come_in_the_order_of_the_pieces() {
        for n_threads in [1, 2, 3, 8] {
            for n_pieces in [0, 1, 2, 7, 100] {
                let mut taken = Vec::new();
                let work = |piece| Ok::<_, ()>(piece * piece);
                let take = |square| {
                    taken.push(square);
                    Ok(())
                };
                in_order(n_pieces, of(n_threads), work, take).unwrap();
                assert_eq!(taken, (0..n_pieces).map(|piece| piece * piece).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_first_error_ends_the_work() {
        for n_threads in [1, 2, 8] {
            let begun = AtomicUsize::new(0);
            let work = |piece| {
                begun.fetch_add(1, Ordering::Relaxed);
                if piece == 5 || piece == 6 { Err(piece) } else { Ok(piece) }
            };
            let mut n_taken = 0;
            let take = |_| {
                n_taken += 1;
                Ok(())
            };
            assert_eq!(in_order(1000, of(n_threads), work, take), Err(5));
            assert_eq!(n_taken, 5);
            assert!(begun.into_inner() <= 6 + 2 * n_threads);
            assert_eq!(in_order(1000, of(n_threads), Ok::<usize, usize>, Err), Err(0));
        }
    }
}
