//! Runs numbered pieces of work on several threads and returns their results in order.

use std::num::NonZeroUsize;
use std::sync::mpsc::sync_channel;
use std::thread;

use program::threads::spawn;

/// Number of threads: one per core, at most `most`. For input that takes longer to decode than to read.
pub fn threads(most: NonZeroUsize) -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).min(most)
}

/// Runs `work` for pieces 0 to `n_pieces` - 1, each on one of several threads. `work` puts any number of results, and
/// the calling thread passes them to `take`, in the order of the pieces. Stops at the first error in that order. At most
/// `queued` results per thread exist that `take` has not received, and one more that a thread puts.
pub fn in_order<R: Send, E: Send>(
    n_pieces: usize,
    threads: NonZeroUsize,
    queued: usize,
    work: impl Fn(usize, &mut dyn FnMut(R)) -> Result<(), E> + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.get().min(n_pieces);
    if threads < 2 {
        return (0..n_pieces).try_for_each(|piece| {
            let mut taken = Ok(());
            let worked = work(piece, &mut |result| {
                if taken.is_ok() {
                    taken = take(result);
                }
            });
            taken.and(worked)
        });
    }
    thread::scope(|scope| {
        let mut queues = Vec::new();
        for first in 0..threads {
            let (done, queue) = sync_channel(queued);
            queues.push(queue);
            let work = &work;
            spawn(scope, move || {
                for piece in (first..n_pieces).step_by(threads) {
                    // After an error no more results are taken.
                    let worked = work(piece, &mut |result| drop(done.send(Message::Result(result))));
                    if done.send(Message::End(worked)).is_err() {
                        return;
                    }
                }
            });
        }
        (0..n_pieces).try_for_each(|piece| {
            loop {
                match queues[piece % threads].recv().expect("a thread ends its pieces, unless it panics") {
                    Message::Result(result) => take(result)?,
                    Message::End(worked) => return worked,
                }
            }
        })
    })
}

/// What a thread sends about a piece.
enum Message<R, E> {
    Result(R),
    End(Result<(), E>),
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
                for queued in [0, 1, 5] {
                    // A piece has no, one or two results.
                    let results = |piece| (0..piece % 3).map(move |result| (piece, result));
                    let mut taken = Vec::new();
                    let work = |piece, put: &mut dyn FnMut((usize, usize))| {
                        results(piece).for_each(put);
                        Ok::<_, ()>(())
                    };
                    let take = |result| {
                        taken.push(result);
                        Ok(())
                    };
                    in_order(n_pieces, of(n_threads), queued, work, take).unwrap();
                    assert_eq!(taken, (0..n_pieces).flat_map(results).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn the_first_error_ends_the_work() {
        for n_threads in [1, 2, 8] {
            let begun = AtomicUsize::new(0);
            let work = |piece, put: &mut dyn FnMut(usize)| {
                begun.fetch_add(1, Ordering::Relaxed);
                if piece == 5 || piece == 6 {
                    return Err(piece);
                }
                put(piece);
                Ok(())
            };
            let mut n_taken = 0;
            let take = |_| {
                n_taken += 1;
                Ok(())
            };
            assert_eq!(in_order(1000, of(n_threads), 0, work, take), Err(5));
            assert_eq!(n_taken, 5);
            assert!(begun.into_inner() <= 6 + 2 * n_threads);
            let all = |piece, put: &mut dyn FnMut(usize)| {
                put(piece);
                Ok(())
            };
            assert_eq!(in_order(1000, of(n_threads), 0, all, Err), Err(0));
        }
    }
}
