//! Sizes that a Parquet file of another program declares, before its library believes them.
//!
//! The library converts the schema by one call per nested group, which ends the process if the stack is too small, and
//! allocates what the footer and the headers of pages declare. Here, footers and headers are scanned in Thrift's compact
//! protocol, without allocation and with a limit of nesting. The library does not look at the types of the fields that it
//! knows, and truncates their numbers. What it would read differently is refused.

mod pages;
mod scan;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

pub use self::pages::{ChunkMemory, Pages, chunk_memory};
use self::scan::{BINARY, BOOL, BYTE, I32, LIST, STRUCT, Scan};

/// Maximum number of nested groups of a schema, with its root.
const GROUPS_MAX: usize = 100;
/// Length of the footer's length and of the magic behind it.
const TAIL_BYTES: u64 = 8;
const MAGIC: &[u8] = b"PAR1";

/// A size that exceeds its limit, or that cannot be known.
#[derive(Debug, thiserror::Error)]
#[error("found {found}, expected {expected}; {remedy}")]
pub struct Excess {
    /// What was found.
    found: String,
    /// The limit.
    expected: String,
    remedy: &'static str,
}

/// What helps against sizes that contradict each other, and against another structure.
const DAMAGED: &str = "fetch the file again";

impl Excess {
    /// Something of a size.
    pub fn of(found: String, most: u64, remedy: &'static str) -> Self {
        Self { found, expected: format!("at most {most}"), remedy }
    }

    /// Something that the library would read differently.
    fn unlike(what: &str) -> Self {
        let found = format!("{what} of another structure");
        Self { found, expected: "that of the Parquet format".to_owned(), remedy: DAMAGED }
    }
}

/// Checks the size of the footer, and the number of nested groups of the schema in it.
///
/// # Errors
/// If the file cannot be read.
pub fn check_footer(file: &File, bytes_max: u64) -> io::Result<Result<(), Excess>> {
    let n_bytes = file.metadata()?.len();
    let Some(tail_at) = n_bytes.checked_sub(TAIL_BYTES) else { return Ok(Ok(())) };
    let mut tail = [0; TAIL_BYTES as usize];
    file.read_exact_at(&mut tail, tail_at)?;
    let [a, b, c, d, magic @ ..] = tail;
    if magic != MAGIC {
        // The library does not parse it.
        return Ok(Ok(()));
    }
    let footer_bytes = u64::from(u32::from_le_bytes([a, b, c, d]));
    let Some(footer_at) = tail_at.checked_sub(footer_bytes) else { return Ok(Ok(())) };
    if footer_bytes > bytes_max {
        let remedy = "write the file with fewer row groups, or raise --memory of sentimill";
        return Ok(Err(Excess::of(format!("metadata of {footer_bytes} bytes"), bytes_max, remedy)));
    }
    let mut footer = vec![0; footer_bytes as usize];
    file.read_exact_at(&mut footer, footer_at)?;
    Ok(Scan(&footer).footer())
}

impl Scan<'_> {
    /// Checks the schema. Only the version may be before it, so that nothing before it is read differently.
    fn footer(&mut self) -> Result<(), Excess> {
        let mut found = None;
        let _ = self.fields(&[I32, LIST], |scan, field, kind| match field {
            1 => scan.pass_field(field, kind),
            2 => {
                let mut groups = Ok(());
                let passed = scan.schema(&mut groups);
                found = (passed.is_some() || groups.is_err()).then_some(groups);
                // The library uses the first schema.
                None
            }
            _ => None,
        });
        found.unwrap_or_else(|| Err(Excess::unlike("metadata")))
    }

    /// Passes the logical type of a column, of which the library knows the first fields of the first kinds.
    fn logical_type(&mut self) -> Option<()> {
        // The ninth is reserved, and passed by its type.
        self.fields(&[STRUCT; 8], |scan, field, kind| match field {
            10..=18 if kind != STRUCT => None,
            5 => scan.fields(&[I32, I32], Scan::pass_field),
            7 | 8 => scan.fields(&[BOOL, STRUCT], |scan, field, kind| match field {
                2 => scan.fields(&[STRUCT; 3], Scan::pass_field),
                _ => scan.pass_field(field, kind),
            }),
            10 => scan.fields(&[BYTE, BOOL], Scan::pass_field),
            16 => scan.fields(&[BYTE], Scan::pass_field),
            17 | 18 => scan.fields(&[BINARY, I32], Scan::pass_field),
            _ => scan.pass_field(field, kind),
        })
    }

    /// Counts the nested groups of a schema, a list of elements in depth-first order with their numbers of children.
    fn schema(&mut self, found: &mut Result<(), Excess>) -> Option<()> {
        let (n, kind) = self.list()?;
        if kind != STRUCT {
            return None;
        }
        let types = [I32, I32, I32, BINARY, I32, I32, I32, I32, I32, STRUCT];
        let mut groups: Vec<u64> = Vec::new();
        for at in 0..n {
            let mut n_children = 0;
            self.fields(&types, |scan, field, kind| match field {
                5 => scan.number().map(|n| n_children = n),
                10 => scan.logical_type(),
                _ => scan.pass_field(field, kind),
            })?;
            while groups.pop_if(|rest| *rest == 0).is_some() {}
            if let Some(rest) = groups.last_mut() {
                *rest -= 1;
            }
            if n_children > n - at {
                *found = Err(Excess::of(format!("a group of {n_children} columns"), n - at, DAMAGED));
                return None;
            }
            if n_children > 0 {
                groups.push(n_children);
            }
            if groups.len() > GROUPS_MAX {
                let deep = format!("a schema of {} or more nested groups", groups.len());
                *found =
                    Err(Excess::of(deep, GROUPS_MAX as u64, "write its columns outside of these groups"));
                return None;
            }
        }
        Some(())
    }
}
