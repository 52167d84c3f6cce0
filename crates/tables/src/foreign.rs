//! Sizes that a Parquet file of another program declares, before its library believes them.
//!
//! The library converts the schema by one call per nested group, which ends the process if the stack is too small, and
//! allocates what the footer and the headers of pages declare. Here, footers and headers are scanned in Thrift's compact
//! protocol, without allocation and with a limit of nesting. What is invalid is left to the library, which reports it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Maximum number of nested groups of a schema, with its root.
const GROUPS_MAX: usize = 100;
/// Maximum nesting of Thrift structures, that of the library.
const NESTING_MAX: u8 = 64;
/// Length of the footer's length and of the magic behind it.
const TAIL_BYTES: u64 = 8;
/// Bytes of a page header that are read at first,
const HEADER_BYTES: u64 = 512;
/// and at most. It contains the smallest and the largest value.
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// Memory for an entry of a dictionary in addition to its bytes.
const ENTRY_BYTES: u64 = 32;

/// A size that exceeds its limit.
#[derive(Debug, thiserror::Error)]
#[error("found {found}, expected at most {most}; {remedy}")]
pub struct Excess {
    /// What was found.
    found: String,
    /// The limit.
    most: u64,
    remedy: &'static str,
}

/// What helps against a group with too many columns, or a dictionary with too many values.
const DAMAGED: &str = "fetch the file again";

impl Excess {
    /// Something of a size.
    pub fn of(found: String, most: u64, remedy: &'static str) -> Self {
        Self { found, most, remedy }
    }
}

/// Checks the size of the footer, and the number of nested groups of the schema in it.
///
/// # Errors
/// If the file cannot be read.
pub fn check_footer(file: &File, bytes_max: u64) -> io::Result<Result<(), Excess>> {
    let n_bytes = file.metadata()?.len();
    let Some(tail_at) = n_bytes.checked_sub(TAIL_BYTES) else { return Ok(Ok(())) };
    let mut length = [0; 4];
    file.read_exact_at(&mut length, tail_at)?;
    let footer_bytes = u64::from(u32::from_le_bytes(length));
    let Some(footer_at) = tail_at.checked_sub(footer_bytes) else { return Ok(Ok(())) };
    if footer_bytes > bytes_max {
        let remedy = "write the file with fewer row groups, or raise --memory of sentimill";
        return Ok(Err(Excess::of(format!("metadata of {footer_bytes} bytes"), bytes_max, remedy)));
    }
    let mut footer = vec![0; footer_bytes as usize];
    file.read_exact_at(&mut footer, footer_at)?;
    let mut found = Ok(());
    let _ = Scan(&footer).fields(|scan, field, kind| match (field, kind) {
        (2, LIST) => scan.schema(&mut found),
        _ => scan.skip(kind, NESTING_MAX),
    });
    Ok(found)
}

/// Memory for reading a column chunk page by page: the largest page before and after decompression, and the dictionary.
///
/// # Errors
/// If the file cannot be read.
pub fn chunk_memory(file: &File, start: u64, bytes: u64) -> io::Result<Result<u64, Excess>> {
    let (mut at, end) = (start, start.saturating_add(bytes).min(file.metadata()?.len()));
    let (mut largest, mut dictionary) = (0, 0);
    let mut header = Vec::new();
    while at < end {
        let mut read_bytes = HEADER_BYTES;
        let page = loop {
            let most = read_bytes.min(end - at);
            header.resize(most as usize, 0);
            file.read_exact_at(&mut header, at)?;
            match Page::of(&header) {
                Some(page) => break page,
                None if most < read_bytes => return Ok(Ok(largest + dictionary)),
                None if read_bytes == HEADER_BYTES_MAX => {
                    let remedy = "write the file without statistics of pages";
                    return Ok(Err(Excess::of("a larger page header".to_owned(), HEADER_BYTES_MAX, remedy)));
                }
                None => read_bytes = (8 * read_bytes).min(HEADER_BYTES_MAX),
            }
        };
        largest = largest.max(page.stored + page.decoded);
        if let Some(n_entries) = page.n_entries {
            if n_entries > page.decoded {
                let found = format!("a dictionary of {n_entries} values");
                return Ok(Err(Excess::of(found, page.decoded, DAMAGED)));
            }
            dictionary = page.decoded + ENTRY_BYTES * n_entries;
        }
        at += page.header + page.stored;
    }
    Ok(Ok(largest + dictionary))
}

/// What a page header declares, in bytes.
#[derive(Debug, Default)]
struct Page {
    header: u64,
    stored: u64,
    decoded: u64,
    /// Number of values of a dictionary.
    n_entries: Option<u64>,
}

impl Page {
    fn of(bytes: &[u8]) -> Option<Self> {
        let mut page = Self::default();
        let mut scan = Scan(bytes);
        scan.fields(|scan, field, kind| match (field, kind) {
            (2, I32) => scan.unsigned().map(|bytes| page.decoded = bytes),
            (3, I32) => scan.unsigned().map(|bytes| page.stored = bytes),
            (7, STRUCT) => scan.fields(|scan, field, kind| match (field, kind) {
                (1, I32) => scan.unsigned().map(|n| page.n_entries = Some(n)),
                _ => scan.skip(kind, NESTING_MAX),
            }),
            _ => scan.skip(kind, NESTING_MAX),
        })?;
        page.header = (bytes.len() - scan.0.len()) as u64;
        Some(page)
    }
}

const I32: u8 = 5;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The rest of a structure in Thrift's compact protocol. All functions return `None` if it is invalid or truncated.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn pass(&mut self, n_bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(n_bytes).ok()?..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A number that must not be negative.
    fn unsigned(&mut self) -> Option<u64> {
        let zigzag = self.varint()?;
        (zigzag & 1 == 0).then_some(zigzag >> 1)
    }

    /// Visits the fields of a structure by number and type. `visit` passes the value.
    fn fields(&mut self, mut visit: impl FnMut(&mut Self, u64, u8) -> Option<()>) -> Option<()> {
        let mut field = 0;
        loop {
            let head = self.byte()?;
            if head & 0xf == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => self.unsigned()?,
                step => field + u64::from(step),
            };
            visit(self, field, head & 0xf)?;
        }
    }

    /// Length and type of a list.
    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let n = match head >> 4 {
            15 => self.varint()?,
            n => u64::from(n),
        };
        // Each element has a byte at least.
        (n <= self.0.len() as u64).then_some((n, head & 0xf))
    }

    fn skip(&mut self, kind: u8, nesting: u8) -> Option<()> {
        let nesting = nesting.checked_sub(1)?;
        match kind {
            1 | 2 => Some(()),
            3 => self.pass(1),
            4..=6 => self.varint().map(drop),
            7 => self.pass(8),
            8 => self.varint().and_then(|n_bytes| self.pass(n_bytes)),
            LIST | 10 => {
                let (n, kind) = self.list()?;
                (0..n).try_for_each(|_| self.skip_element(kind, nesting))
            }
            11 => {
                let n = self.varint()?;
                let kinds = if n > 0 { self.byte()? } else { 0 };
                (0..n).try_for_each(|_| {
                    self.skip_element(kinds >> 4, nesting)?;
                    self.skip_element(kinds & 0xf, nesting)
                })
            }
            STRUCT => self.fields(|scan, _, kind| scan.skip(kind, nesting)),
            13 => self.pass(16),
            _ => None,
        }
    }

    /// Skips an element of a list or map, in which a boolean has a byte.
    fn skip_element(&mut self, kind: u8, nesting: u8) -> Option<()> {
        self.skip(if kind <= 2 { 3 } else { kind }, nesting)
    }

    /// Counts the nested groups of a schema, a list of elements in depth-first order with their numbers of children.
    fn schema(&mut self, found: &mut Result<(), Excess>) -> Option<()> {
        let (n, kind) = self.list()?;
        if kind != STRUCT {
            return None;
        }
        let mut groups: Vec<u64> = Vec::new();
        for at in 0..n {
            let mut n_children = 0;
            self.fields(|scan, field, kind| match (field, kind) {
                (5, I32) => scan.unsigned().map(|n| n_children = n),
                _ => scan.skip(kind, NESTING_MAX),
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A file whose footer is a schema of this many nested groups.
    fn nested(n_groups: usize) -> File {
        let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
        let mut n = n_groups + 1;
        while n >= 0x80 {
            footer.push(n as u8 | 0x80);
            n >>= 7;
        }
        footer.push(n as u8);
        (0..n_groups).for_each(|_| footer.extend([0x48, 0x01, b'g', 0x15, 0x02, 0x00]));
        footer.extend([0x15, 0x0c, 0x38, 0x01, b'c', 0x00, 0x00]);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&footer).unwrap();
        file.write_all(&(footer.len() as u32).to_le_bytes()).unwrap();
        file.write_all(b"PAR1").unwrap();
        file
    }

    #[test]
    fn nested_groups_and_a_large_footer_are_refused_before_they_are_parsed() {
        assert!(check_footer(&nested(100), 1 << 20).unwrap().is_ok());
        let deep = check_footer(&nested(10_000), 1 << 20).unwrap().unwrap_err();
        let expected = "found a schema of 101 or more nested groups, expected at most 100; write its columns outside of these groups";
        assert_eq!(deep.to_string(), expected);
        let large = check_footer(&nested(10_000), 1000).unwrap().unwrap_err();
        let expected = "found metadata of 60014 bytes, expected at most 1000; write the file with fewer row groups, or raise \
                        --memory of sentimill";
        assert_eq!(large.to_string(), expected);
    }

    #[test]
    fn any_bytes_are_scanned_without_a_panic() {
        let mut bytes = [0_u8; 64];
        for seed in 0..20_000_u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            bytes.fill_with(|| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            });
            let _ = Page::of(&bytes);
            let mut found = Ok(());
            let _ = Scan(&bytes).schema(&mut found);
            let _ = Scan(&bytes).skip(bytes[0] & 0xf, NESTING_MAX);
        }
    }
}
