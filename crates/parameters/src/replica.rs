//! Tables of which each of several ranks has all rows. Ranks that apply the same updates in the same order have the bits of a
//! server that does so.
//!
//! Saved, all numbers are little-endian:
//!
//! ```text
//! "replica1"                    8 bytes
//! length of the caller's bytes  u32, then the bytes
//! tables                        blocks, as in a snapshot of a server
//! digest of all bytes above     u64, XXH3
//! ```

use std::io;

use program::exit::{Exit, Failed};
use prost::Message;
use xxhash_rust::xxh3::xxh3_64;

use crate::client::{Read, Update};
use crate::error::{Error, Result};
use crate::messages::{self, RankUpdates};
use crate::spec::Spec;
use crate::table::Table;
use crate::values::{Wire, floats, to_bytes};

const MARK: &[u8; 8] = b"replica1";
/// A higher version of a block is damage: no training has as many steps.
const VERSION_MAX: u64 = 1 << 60;

/// The tables of a rank.
#[derive(Debug)]
pub struct Replica {
    tables: Vec<Table>,
    /// The version of the blocks that the last update changed.
    n_applied: u64,
}

impl Replica {
    /// Tables with their first values.
    pub fn new(specs: Vec<Spec>) -> Self {
        Self { tables: specs.into_iter().map(|spec| Table::new(spec, 0, 1)).collect(), n_applied: 0 }
    }

    /// Values of each read, row by row.
    ///
    /// # Errors
    /// If there is no such table or row.
    pub fn read(&self, reads: &[Read]) -> Result<Vec<Vec<f32>>> {
        let of = |read: &Read| {
            let bytes = self.table(read.table)?.read(&to_bytes(&read.rows))?;
            Ok(floats(&bytes).collect())
        };
        reads.iter().map(of).collect()
    }

    /// Updates as a message for all ranks.
    ///
    /// # Errors
    /// If there is no such table.
    pub fn encode(&self, updates: Vec<Update>) -> Result<Vec<u8>> {
        let encoded = |Update { table, rows, mut values }| {
            let dim = self.table(table)?.spec.dim as usize;
            let (encoding, k) = Wire::F32.to_fields(dim);
            let mut bytes = Vec::with_capacity(4 * values.len());
            Wire::F32.encode(&mut values, dim, &mut bytes);
            let rows = to_bytes(&rows).into();
            Ok(messages::Update { table, rows, values: bytes.into(), encoding, k })
        };
        let updates = updates.into_iter().map(encoded).collect::<Result<_>>()?;
        Ok(RankUpdates { updates }.encode_to_vec())
    }

    /// Applies the updates of a message. If it is invalid, no row changes.
    ///
    /// # Errors
    /// If it is no message of [`Replica::encode`] of the same tables, or a value is not finite.
    pub fn apply(&mut self, message: &[u8]) -> Result<()> {
        let invalid = |error: prost::DecodeError| Error::of_rank(&error);
        let RankUpdates { updates } = RankUpdates::decode(message).map_err(invalid)?;
        for update in &updates {
            self.table(update.table)?.check(update)?;
        }
        for update in &updates {
            // Several updates of a message may have rows of one block.
            self.n_applied += 1;
            self.table(update.table)?.apply(update, self.n_applied)?;
        }
        Ok(())
    }

    fn table(&self, number: u32) -> Result<&Table> {
        let missing = || Error::of_rank(&format!("rows of table {number}, which does not exist"));
        self.tables.get(number as usize).ok_or_else(missing)
    }

    /// The tables and bytes of the caller.
    ///
    /// # Errors
    /// If the caller has 4 GiB or more.
    pub fn save(&self, place: &[u8]) -> Result<Vec<u8>> {
        let n = u32::try_from(place.len()).map_err(|error| Error::internal(&error))?;
        let mut bytes = [&MARK[..], &n.to_le_bytes(), place].concat();
        self.tables
            .iter()
            .try_for_each(|table| table.write(&mut bytes))
            .map_err(|source| damaged(&source))?;
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// The bytes of the caller in what [`Replica::save`] saved.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn place(bytes: &[u8]) -> Result<&[u8]> {
        split(bytes).map(|(place, _)| place).map_err(|source| damaged(&source))
    }

    /// Reads what [`Replica::save`] saved into new tables of the same description.
    ///
    /// # Errors
    /// If it is damaged or of other tables.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        self.read_tables(bytes).map_err(|source| damaged(&source))
    }

    fn read_tables(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (_, mut tables) = split(bytes)?;
        for table in &mut self.tables {
            table.read_blocks(&mut tables)?;
        }
        self.n_applied = self.tables.iter().map(Table::version).max().unwrap_or_default();
        if self.n_applied > VERSION_MAX {
            return Err(io::Error::other("a block has an impossible version"));
        }
        match tables.is_empty() {
            true => Ok(()),
            false => Err(io::Error::other("it is longer than the tables")),
        }
    }
}

/// The bytes of the caller and the tables.
fn split(bytes: &[u8]) -> io::Result<(&[u8], &[u8])> {
    let early = || io::Error::other("it ends too early");
    let (content, digest) = bytes.split_last_chunk().ok_or_else(early)?;
    if xxh3_64(content) != u64::from_le_bytes(*digest) {
        return Err(io::Error::other("its digest differs"));
    }
    let (mark, rest) = content.split_first_chunk().ok_or_else(early)?;
    if mark != MARK {
        return Err(io::Error::other("it is no state of ranks"));
    }
    let (n, rest) = rest.split_first_chunk().ok_or_else(early)?;
    rest.split_at_checked(u32::from_le_bytes(*n) as usize).ok_or_else(early)
}

fn damaged(source: &io::Error) -> Error {
    let message = "the saved rows are damaged or of other tables; use an older checkpoint, or start again";
    Failed::caused(Exit::MissingInput, message, source).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::spec::{Initial, Optimizer};

    fn replica() -> Replica {
        let spec = |name: &str, optimizer| Spec {
            name: name.to_owned(),
            n_rows: 100,
            dim: 2,
            initial: Initial::Zero,
            optimizer,
            content: String::new(),
        };
        Replica::new(vec![spec("sum", Optimizer::Sum), spec("adagrad", Optimizer::Adagrad { rate: 0.5 })])
    }

    fn updates() -> Vec<Update> {
        [0, 1].map(|table| Update { table, rows: vec![3, 70], values: vec![3.0, 4.0, 0.0, -2.0] }).into()
    }

    fn read(replica: &Replica) -> Vec<Vec<f32>> {
        replica.read(&[0, 1].map(|table| Read { table, rows: vec![3, 70] })).unwrap()
    }

    #[test]
    fn updates_are_applied_by_the_optimizer_of_their_table() {
        let mut replica = replica();
        let message = replica.encode(updates()).unwrap();
        replica.apply(&message).unwrap();
        replica.apply(&message).unwrap();
        let twice = 0.5 + 0.5 / 2f32.sqrt();
        let found = read(&replica);
        assert_eq!(found[0], [6.0, 8.0, 0.0, -4.0]);
        for (found, expected) in found[1].iter().zip([-twice, -twice, 0.0, twice]) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn a_message_of_other_tables_changes_nothing() {
        let mut replica = replica();
        for update in [
            Update { table: 2, rows: vec![1], values: vec![1.0; 2] },
            Update { table: 1, rows: vec![100], values: vec![1.0; 2] },
            Update { table: 1, rows: vec![1, 2], values: vec![1.0; 2] },
        ] {
            let encoded = |update: Update| messages::Update {
                table: update.table,
                rows: to_bytes(&update.rows).into(),
                values: update
                    .values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect::<Vec<u8>>()
                    .into(),
                ..messages::Update::default()
            };
            let first = updates().swap_remove(0);
            let message = RankUpdates { updates: vec![encoded(first), encoded(update)] }.encode_to_vec();
            let error = replica.apply(&message).unwrap_err().to_string();
            assert!(error.starts_with("invalid updates of a rank: "), "{error}");
        }
        let [mut finite, mut other] = <[Update; 2]>::try_from(updates()).unwrap();
        (finite.values[0], other.values[3]) = (1.0, f32::NAN);
        let message = replica.encode(vec![finite, other]).unwrap();
        assert!(matches!(replica.apply(&message), Err(Error::NotFinite)));
        assert!(replica.apply(b"\xff").is_err());
        assert_eq!(read(&replica), [[0.0; 4], [0.0; 4]]);
    }

    fn is_damaged(restored: Result<()>) -> bool {
        restored.is_err_and(|error| error.to_string().starts_with("the saved rows are damaged"))
    }

    #[test]
    fn a_restored_replica_continues_with_the_same_bits() {
        let mut whole = replica();
        let message = whole.encode(updates()).unwrap();
        whole.apply(&message).unwrap();
        let saved = whole.save(b"step 1").unwrap();
        let mut other = replica();
        assert_eq!(Replica::place(&saved).unwrap(), b"step 1");
        other.restore(&saved).unwrap();
        for replica in [&mut whole, &mut other] {
            replica.apply(&message).unwrap();
        }
        assert_eq!(read(&other), read(&whole));
        for at in [2, 9, 30, saved.len() - 1] {
            let mut damaged = saved.clone();
            damaged[at] ^= 1;
            assert!(is_damaged(replica().restore(&damaged)), "byte {at}");
        }
        assert!(replica().restore(&saved[..saved.len() - 9]).is_err());
        assert!(replica().restore(b"").is_err());
        // With valid digests: a file of something else, and versions that a training would wrap.
        let digested = |at: usize, bytes: &[u8]| {
            let mut forged = saved[..saved.len() - 8].to_vec();
            forged[at..at + bytes.len()].copy_from_slice(bytes);
            forged.extend(xxh3_64(&forged).to_le_bytes());
            forged
        };
        let first_version = MARK.len() + 4 + b"step 1".len();
        for (at, bytes) in [(0, &b"another1"[..]), (first_version, &u64::MAX.to_le_bytes())] {
            assert!(is_damaged(replica().restore(&digested(at, bytes))), "byte {at}");
        }
        assert!(replica().restore(&digested(first_version, &2u64.to_le_bytes())).is_ok());
    }
}
