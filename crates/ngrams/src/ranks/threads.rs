//! Ranks as threads of one process, for tests.
#![allow(clippy::unwrap_used)]

use std::sync::{Barrier, Mutex};
use std::thread;

use program::threads::spawn;

use super::{Failure, Ranks};

/// What the ranks share.
struct Board {
    barrier: Barrier,
    slots: Vec<Mutex<Vec<u8>>>,
}

struct Rank<'a> {
    rank: usize,
    board: &'a Board,
}

impl Ranks for Rank<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world_size(&self) -> usize {
        self.board.slots.len()
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        *self.board.slots[self.rank].lock().unwrap() = bytes.to_vec();
        self.board.barrier.wait();
        let all = self.board.slots.iter().map(|slot| slot.lock().unwrap().clone()).collect();
        self.board.barrier.wait();
        Ok(all)
    }
}

/// Runs a function as several ranks. Returns the results by rank.
pub(crate) fn on_ranks<R: Send>(world_size: usize, run: impl Fn(&dyn Ranks) -> R + Sync) -> Vec<R> {
    let slots = (0..world_size).map(|_| Mutex::default()).collect();
    let board = Board { barrier: Barrier::new(world_size), slots };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..world_size)
            .map(|rank| {
                let (run, board) = (&run, &board);
                spawn(scope, move || run(&Rank { rank, board }))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
