//! Tables before they are on a server of ranks, and their checkpoint.
//!
//! Saved, all numbers are little-endian:
//!
//! ```text
//! "replica1"                    8 bytes
//! length of the caller's bytes  u32, then the bytes
//! tables                        blocks, as in a snapshot of a server
//! digest of all bytes above     u64, XXH3
//! ```

use std::borrow::Borrow;
use std::io;

use program::exit::{Exit, Failed};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::spec::Spec;
use crate::table::Table;

const MARK: &[u8; 8] = b"replica1";
/// A higher version of a block is damage: no training has as many steps.
const VERSION_MAX: u64 = 1 << 60;

/// Tables.
#[derive(Debug)]
pub struct Tables(pub(crate) Vec<Table>);

impl Tables {
    /// Tables with their first values.
    pub fn new(specs: Vec<Spec>) -> Self {
        Self(specs.into_iter().map(|spec| Table::new(spec, 0, 1)).collect())
    }

    /// Sets the values of a row.
    ///
    /// # Errors
    /// If there is no such row.
    pub fn set(&mut self, table: u32, row: u32, values: &[f32]) -> Result<()> {
        let found = self.0.get_mut(table as usize).map(|table| table.set(row, values));
        let missing = || Failed::defect(format!("row {row} of table {table}, which does not exist")).into();
        found.and_then(std::result::Result::ok).ok_or_else(missing)
    }

    /// The bytes of the caller in what [`crate::Server::save`] saved.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn place(bytes: &[u8]) -> Result<&[u8]> {
        split(bytes).map(|(place, _)| place).map_err(|error| damaged(&error))
    }

    /// Reads what [`crate::Server::save`] saved into new tables of the same description.
    ///
    /// # Errors
    /// If it is damaged or of other tables.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        self.read(bytes).map_err(|error| damaged(&error))
    }

    fn read(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (_, mut tables) = split(bytes)?;
        for table in &mut self.0 {
            table.read_blocks(&mut tables)?;
        }
        if self.version() > VERSION_MAX {
            return Err(io::Error::other("a block has an impossible version"));
        }
        match tables.is_empty() {
            true => Ok(()),
            false => Err(io::Error::other("it is longer than the tables")),
        }
    }

    /// The number of the last update.
    pub(crate) fn version(&self) -> u64 {
        self.0.iter().map(Table::version).max().unwrap_or_default()
    }
}

/// The tables and bytes of the caller, as a checkpoint.
pub(crate) fn saved<T: Borrow<Table>>(tables: &[T], place: &[u8]) -> Result<Vec<u8>> {
    let n = u32::try_from(place.len()).map_err(Failed::defect)?;
    let mut bytes = [&MARK[..], &n.to_le_bytes(), place].concat();
    tables.iter().try_for_each(|table| table.borrow().write(&mut bytes)).map_err(|error| damaged(&error))?;
    bytes.extend(xxh3_64(&bytes).to_le_bytes());
    Ok(bytes)
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
    use crate::messages::RowUpdates;
    use crate::spec::{Initial, Optimizer};
    use crate::values::to_bytes;

    fn tables() -> Tables {
        let spec = |name: &str, optimizer| Spec {
            name: name.to_owned(),
            n_rows: 100,
            dim: 2,
            initial: Initial::Zero,
            optimizer,
            content: String::new(),
            min_count: 0,
        };
        Tables::new(vec![spec("sum", Optimizer::Sum), spec("adagrad", Optimizer::Adagrad { rate: 0.5 })])
    }

    fn apply(tables: &Tables, version: u64) {
        let values = [3f32, 4.0, 0.0, -2.0].map(f32::to_le_bytes).concat();
        let update =
            RowUpdates { rows: to_bytes(&[3, 70]).into(), values: values.into(), ..RowUpdates::default() };
        tables.0.iter().for_each(|table| table.apply(&update, version, 0).unwrap());
    }

    fn read(tables: &Tables) -> Vec<Vec<u8>> {
        tables.0.iter().map(|table| table.read(&to_bytes(&[3, 70])).unwrap()).collect()
    }

    fn is_damaged(restored: Result<()>) -> bool {
        restored.is_err_and(|error| error.to_string().starts_with("the saved rows are damaged"))
    }

    #[test]
    fn restored_tables_continue_with_the_same_bits() {
        let whole = tables();
        apply(&whole, 1);
        let saved = saved(&whole.0, b"step 1").unwrap();
        let mut other = tables();
        assert_eq!(Tables::place(&saved).unwrap(), b"step 1");
        other.restore(&saved).unwrap();
        assert_eq!(other.version(), 1);
        for tables in [&whole, &other] {
            apply(tables, 2);
        }
        assert_eq!(read(&other), read(&whole));
        for at in [2, 9, 30, saved.len() - 1] {
            let mut damaged = saved.clone();
            damaged[at] ^= 1;
            assert!(is_damaged(tables().restore(&damaged)), "byte {at}");
        }
        assert!(tables().restore(&saved[..saved.len() - 9]).is_err());
        assert!(tables().restore(b"").is_err());
        // With valid digests: a file of something else, and versions that a training would wrap.
        let digested = |at: usize, bytes: &[u8]| {
            let mut forged = saved[..saved.len() - 8].to_vec();
            forged[at..at + bytes.len()].copy_from_slice(bytes);
            forged.extend(xxh3_64(&forged).to_le_bytes());
            forged
        };
        let first_version = MARK.len() + 4 + b"step 1".len();
        for (at, bytes) in [(0, &b"another1"[..]), (first_version, &u64::MAX.to_le_bytes())] {
            assert!(is_damaged(tables().restore(&digested(at, bytes))), "byte {at}");
        }
        assert!(tables().restore(&digested(first_version, &2u64.to_le_bytes())).is_ok());
    }
}
