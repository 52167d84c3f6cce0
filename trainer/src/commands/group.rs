//! This process among the ranks of a training of word vectors. Rank 0 writes the folder and reports; all ranks compute.

use launch::interrupt::Asked;
use program::exit::{Exit, Failed};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::of_rank_0::of_rank_0;

/// The processes of a training. All of them make the same calls in the same order.
pub trait Ranks {
    /// This process, from 0.
    fn rank(&self) -> usize;

    /// Number of processes.
    fn world_size(&self) -> usize;

    /// Sends bytes to all ranks. Returns the bytes of each rank, by rank.
    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>>;
}

/// One of several ranks.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    pub ranks: &'a dyn Ranks,
}

/// Size of the messages in which rank 0 sends a checkpoint.
const CHECKPOINT_BYTES: usize = 1 << 24;

impl Group<'_> {
    /// Number of processes.
    pub fn world_size(self) -> usize {
        self.ranks.world_size()
    }

    /// Runs a function on rank 0. Returns its result on all ranks. If it fails, all ranks fail.
    pub fn of_rank_0<T: Serialize + DeserializeOwned>(
        self,
        find_out: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        of_rank_0(self.ranks.rank() == 0, find_out, |message| {
            self.gather(&message)?.into_iter().next().ok_or_else(|| Error::internal(&"no rank answered"))
        })
    }

    /// Runs a function on rank 0 alone. If it fails, all ranks fail.
    pub fn on_first<T>(self, run: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        let mut made = None;
        self.of_rank_0(|| {
            made = Some(run()?);
            Ok(())
        })?;
        Ok(made)
    }

    /// The number by which ranks tell each other what they are asked for. The largest one counts.
    pub fn number_of(asked: Option<Asked>) -> u8 {
        match asked {
            None => 0,
            Some(Asked::Checkpoint) => 1,
            Some(Asked::Stop) => 2,
        }
    }

    /// What [`Group::number_of`] has this number for.
    pub fn asked_of(number: u8) -> Option<Asked> {
        match number {
            0 => None,
            1 => Some(Asked::Checkpoint),
            _ => Some(Asked::Stop),
        }
    }

    /// Sends bytes to all ranks. Returns the bytes of each rank.
    pub fn gather(self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.ranks.gather(bytes)
    }

    /// The sum of a number over the ranks.
    pub fn sum(self, number: u64) -> Result<u64> {
        let all = self.gather(&number.to_le_bytes())?;
        let sum: Option<u64> = all.iter().map(|bytes| Some(u64::from_le_bytes(*bytes.first_chunk()?))).sum();
        sum.ok_or_else(|| Error::internal(&"a rank sent no number"))
    }

    /// Refuses ranks with another input or other settings, which this text has.
    pub fn compare_all(self, content: &str) -> Result<()> {
        let all = self.gather(content.as_bytes())?;
        match all.iter().position(|other| other != content.as_bytes()) {
            None => Ok(()),
            Some(other) => {
                let remedy = "start all ranks with the same input and flags";
                let rank = self.ranks.rank();
                let message = format!("rank {other} has other texts or settings than rank {rank}; {remedy}");
                Err(Failed::new(Exit::Settings, message).into())
            }
        }
    }

    /// The bytes of rank 0, on all ranks.
    pub fn broadcast(self, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        let mut rest = bytes;
        loop {
            let (part, others) = rest.split_at(rest.len().min(CHECKPOINT_BYTES));
            rest = others;
            let part = self.gather(part)?.swap_remove(0);
            if part.is_empty() {
                return Ok(all);
            }
            all.extend(part);
        }
    }
}
