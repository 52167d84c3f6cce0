//! This process among the ranks of a training of n-grams or word vectors. Rank 0 writes the folder and reports; all ranks
//! compute.

use ::ngrams::ranks::{Ranks, Traffic, compare};
use ::ngrams::{Error as NgramsError, Texts};
use launch::interrupt::Asked;
use report::whole;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::of_rank_0::of_rank_0;

/// A single process, or one of several ranks.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    ranks: Option<&'a dyn Ranks>,
}

/// What a rank has sent, in the summary that `--json` prints.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Exchanged {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of rounds.
    pub rounds: u64,
    /// Rows that rank 0 sent after a round: those that it updated and other ranks have.
    pub rows_per_round: u64,
    /// Bytes of these rows.
    pub bytes_per_round: u64,
    /// Bytes of all rows, which an exchange of whole tables would send after each round.
    pub table_bytes: u64,
    /// All bytes that rank 0 sent.
    pub bytes: u64,
}

/// Size of the messages in which rank 0 sends a checkpoint.
const CHECKPOINT_BYTES: usize = 1 << 24;

impl<'a> Group<'a> {
    /// The group of these ranks.
    pub fn of(ranks: Option<&'a dyn Ranks>) -> Self {
        Self { ranks: ranks.filter(|ranks| ranks.world_size() > 1) }
    }

    /// The ranks, if there are several.
    pub fn ranks(self) -> Option<&'a dyn Ranks> {
        self.ranks
    }

    /// Number of processes.
    pub fn world_size(self) -> usize {
        self.ranks.map_or(1, Ranks::world_size)
    }

    /// Runs a function on rank 0. Returns its result on all ranks. If it fails, all ranks fail.
    pub fn of_rank_0<T: Serialize + DeserializeOwned>(
        self,
        find_out: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Some(ranks) = self.ranks else { return find_out() };
        of_rank_0(ranks.rank() == 0, find_out, |message| {
            gather(ranks, &message)?.into_iter().next().ok_or_else(|| Error::internal(&"no rank answered"))
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

    /// Refuses ranks with other texts or settings.
    pub fn compare(self, texts: &Texts, settings: &str) -> Result<()> {
        Ok(self.ranks.map_or(Ok(()), |ranks| compare(ranks, texts, settings))?)
    }

    /// The action for all ranks: to stop if a rank was asked to, otherwise a checkpoint if a rank was asked for it.
    pub fn agree(self, asked: Option<Asked>) -> Result<Option<Asked>> {
        let most = self.gather(&[Self::number_of(asked)])?.into_iter().flatten().max();
        Ok(Self::asked_of(most.unwrap_or_default()))
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
        self.ranks.map_or_else(|| Ok(vec![bytes.to_vec()]), |ranks| gather(ranks, bytes))
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
                let rank = self.ranks.map_or(0, Ranks::rank);
                Err(NgramsError::OtherRank { rank, other, what: "texts or settings" }.into())
            }
        }
    }

    /// The bytes of rank 0, on all ranks.
    pub fn broadcast(self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let Some(ranks) = self.ranks else { return Ok(bytes) };
        let mut all = Vec::new();
        let mut rest = &bytes[..];
        loop {
            let (part, others) = rest.split_at(rest.len().min(CHECKPOINT_BYTES));
            rest = others;
            let part = gather(ranks, part)?.swap_remove(0);
            if part.is_empty() {
                return Ok(all);
            }
            all.extend(part);
        }
    }

    /// What rank 0 has sent, for the summary.
    pub fn exchanged(self, traffic: Option<Traffic>) -> Option<Exchanged> {
        let Traffic { n_rounds, n_rows, round_bytes, n_bytes, table_bytes } = traffic?;
        let per_round = |n: u64| n / n_rounds.max(1);
        Some(Exchanged {
            ranks: self.world_size(),
            rounds: n_rounds,
            rows_per_round: per_round(n_rows),
            bytes_per_round: per_round(round_bytes),
            table_bytes,
            bytes: n_bytes,
        })
    }
}

impl std::fmt::Display for Exchanged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { ranks, rounds, rows_per_round, bytes_per_round, table_bytes, .. } = *self;
        write!(
            f,
            "{ranks} ranks exchanged updated rows {} times: {} bytes per rank and exchange for {} rows; all rows are {} bytes",
            whole(rounds),
            whole(bytes_per_round),
            whole(rows_per_round),
            whole(table_bytes)
        )
    }
}

fn gather(ranks: &dyn Ranks, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
    Ok(ranks.gather(bytes).map_err(|source| NgramsError::Exchange { source })?)
}
