//! Ranks: processes that read the same texts and train one model together.
//!
//! Each text belongs to one rank, which alone trains on it. A training consists of rounds. After each round, the ranks
//! exchange the rows that they updated and that texts of other ranks have, too; all ranks then have the same weights of
//! these rows. A row that the texts of only one rank have is exchanged at the end, and before a checkpoint.
//!
//! The crate does not communicate by itself: [`Ranks`] does.

mod message;
mod ownership;

pub(crate) use message::{Floats, Reader, Writer};
pub(crate) use ownership::{Met, Ownership, gather_bits, ones};

use crate::error::{Error, Result};
use crate::texts::Texts;

/// The processes of a training. All of them make the same calls in the same order.
pub trait Ranks {
    /// This process, from 0.
    fn rank(&self) -> usize;

    /// Number of processes.
    fn world_size(&self) -> usize;

    /// Sends bytes to all ranks. Returns the bytes of each rank, by rank.
    ///
    /// # Errors
    /// If a rank cannot be reached.
    fn gather(&self, bytes: &[u8]) -> std::result::Result<Vec<Vec<u8>>, Failure>;
}

/// Why ranks could not communicate.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a rank has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of rounds.
    pub n_rounds: u64,
    /// Rows that were sent in all rounds.
    pub n_rows: u64,
    /// Bytes that were sent in all rounds: numbers of rows, and changes of their weights.
    pub round_bytes: u64,
    /// All bytes that were sent, including those at the start and at the end.
    pub n_bytes: u64,
    /// Bytes of the weights of all rows.
    pub table_bytes: u64,
}

impl Traffic {
    /// Sends bytes, and counts them.
    pub(crate) fn gather(&mut self, ranks: &dyn Ranks, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.n_bytes += bytes.len() as u64;
        let all = ranks.gather(bytes).map_err(|source| Error::Exchange { source })?;
        match all.len() == ranks.world_size() {
            true => Ok(all),
            false => Err(invalid()),
        }
    }
}

/// Compares the texts and the settings of all ranks.
///
/// # Errors
/// If a rank has others than this one, cannot be reached, or the temporary file of the texts cannot be read.
pub fn compare(ranks: &dyn Ranks, texts: &Texts, settings: &str) -> Result<()> {
    let texts = format!("{:016x}", texts.digest()?);
    let mut own = Writer::default();
    own.bytes(texts.as_bytes());
    own.bytes(settings.as_bytes());
    let all = ranks.gather(&own.finish()).map_err(|source| Error::Exchange { source })?;
    for (rank, bytes) in all.iter().enumerate() {
        let mut reader = Reader::new(bytes);
        let (Some(others), Some(other_settings)) = (reader.bytes(), reader.bytes()) else {
            return Err(invalid());
        };
        let (own, what) = match others == texts.as_bytes() {
            false => (ranks.rank(), "texts"),
            true if other_settings != settings.as_bytes() => (ranks.rank(), "settings"),
            true => continue,
        };
        return Err(Error::OtherRank { rank: own, other: rank, what });
    }
    Ok(())
}

/// A message that no rank of this program sends.
pub(crate) fn invalid() -> Error {
    Error::Exchange { source: "a rank sent an invalid message; start all ranks with the same program".into() }
}

#[cfg(test)]
pub(crate) mod threads;
