//! Sizes that a Parquet file of another program declares, before its library believes them.
//!
//! The library converts the schema by one call per nested group, which ends the process if the stack is too small, and
//! allocates what the footer and the headers of pages declare. Here, footers and headers are scanned in Thrift's compact
//! protocol, without allocation and with a limit of nesting. The library does not look at the types of the fields that it
//! knows, and truncates their numbers. What it would read differently is refused.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Maximum number of nested groups of a schema, with its root.
const GROUPS_MAX: usize = 100;
/// Maximum nesting of Thrift structures, that of the library.
const NESTING_MAX: u8 = 64;
/// Length of the footer's length and of the magic behind it.
const TAIL_BYTES: u64 = 8;
const MAGIC: &[u8] = b"PAR1";
/// Bytes of a page header that are read at first,
const HEADER_BYTES: u64 = 512;
/// and at most. It contains the smallest and the largest value.
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// Memory for an entry of a dictionary in addition to its bytes.
const ENTRY_BYTES: u64 = 32;

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

/// Memory for reading a column chunk page by page: the largest page before and after decompression, and the dictionary.
///
/// # Errors
/// If the file cannot be read.
pub fn chunk_memory(file: &File, start: u64, bytes: u64) -> io::Result<Result<u64, Excess>> {
    let file_bytes = file.metadata()?.len();
    let (mut at, end) = (start, start.saturating_add(bytes).min(file_bytes));
    // The numbers of a page are below 2³¹.
    let (mut largest, mut dictionary) = (0, 0);
    let mut header = Vec::new();
    while at < end {
        let mut read_bytes = HEADER_BYTES;
        let page = loop {
            // The library reads a header beyond the end of its chunk.
            let most = read_bytes.min(file_bytes - at);
            header.resize(most as usize, 0);
            file.read_exact_at(&mut header, at)?;
            match Page::of(&header) {
                Some(page) => break page,
                None if most < read_bytes => return Ok(Err(Excess::unlike("a page header"))),
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
        let types = [I32, I32, I32, I32, STRUCT, STRUCT, STRUCT, STRUCT];
        scan.fields(&types, |scan, field, kind| match field {
            2 => scan.number().map(|bytes| page.decoded = bytes),
            3 => scan.number().map(|bytes| page.stored = bytes),
            5 => scan.fields(&[I32; 4], Scan::pass_field),
            7 => scan.fields(&[I32, I32, BOOL], |scan, field, kind| match field {
                1 => scan.number().map(|n| page.n_entries = Some(n)),
                _ => scan.pass_field(field, kind),
            }),
            8 => scan.fields(&[I32, I32, I32, I32, I32, I32, BOOL], Scan::pass_field),
            _ => scan.pass_field(field, kind),
        })?;
        page.header = (bytes.len() - scan.0.len()) as u64;
        Some(page)
    }
}

const BOOL: u8 = 2;
const BYTE: u8 = 3;
const I32: u8 = 5;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The rest of a structure in Thrift's compact protocol. All functions return `None` if it is truncated, or if the library
/// would read it differently.
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

    /// A number of 32 bits that must not be negative.
    fn number(&mut self) -> Option<u64> {
        let zigzag = self.varint()?;
        (zigzag & 1 == 0 && zigzag >> 1 <= i32::MAX as u64).then_some(zigzag >> 1)
    }

    /// Visits the fields of a structure by number and type. The first fields, which the library knows, must have these types.
    /// `visit` passes the value.
    fn fields(
        &mut self,
        types: &[u8],
        mut visit: impl FnMut(&mut Self, u64, u8) -> Option<()>,
    ) -> Option<()> {
        let mut field = 0;
        loop {
            let head = self.byte()?;
            if head & 0xf == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => self.number()?,
                step => field + u64::from(step),
            };
            if field > i16::MAX as u64 {
                return None;
            }
            let (kind, known) = (head & 0xf, types.get((field as usize).wrapping_sub(1)));
            if known.is_some_and(|&known| known != kind && (known, kind) != (BOOL, 1)) {
                return None;
            }
            visit(self, field, kind)?;
        }
    }

    fn pass_field(&mut self, _: u64, kind: u8) -> Option<()> {
        self.skip(kind, NESTING_MAX)
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
            1 | BOOL => Some(()),
            BYTE => self.pass(1),
            4..=6 => self.varint().map(drop),
            7 => self.pass(8),
            BINARY => self.varint().and_then(|n_bytes| self.pass(n_bytes)),
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
            STRUCT => self.fields(&[], |scan, _, kind| scan.skip(kind, nesting)),
            13 => self.pass(16),
            _ => None,
        }
    }

    /// Skips an element of a list or map, in which a boolean has a byte.
    fn skip_element(&mut self, kind: u8, nesting: u8) -> Option<()> {
        self.skip(if kind <= BOOL { BYTE } else { kind }, nesting)
    }

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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn varint(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    fn of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    /// A file whose footer is a schema of this many nested groups, behind `before`, with `children` before their number.
    fn spelt(n_groups: usize, before: &[u8], children: &[u8]) -> File {
        let mut footer = [before, &[0xfc]].concat();
        footer.extend(varint(n_groups as u64 + 1));
        (0..n_groups).for_each(|_| {
            footer.extend([&[0x48, 0x01, b'g'], children, &[0x02, 0x00]].concat());
        });
        footer.extend([0x15, 0x0c, 0x38, 0x01, b'c', 0x00, 0x00]);
        of(&[&footer[..], &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat())
    }

    /// As every program writes it.
    fn nested(n_groups: usize) -> File {
        spelt(n_groups, &[0x15, 0x02, 0x19], &[0x15])
    }

    #[test]
    fn metadata_that_the_library_reads_differently_are_refused() {
        let long = |number: u64, kind| [&[kind], &varint(2 * number)[..]].concat();
        let version = &[0x15, 0x02][..];
        let found = |n_groups, before: &[u8], children: &[u8]| {
            check_footer(&spelt(n_groups, before, children), 1 << 20)
                .unwrap()
                .map_err(|excess| excess.to_string())
        };
        assert_eq!(found(100, &[version, &long(2, 0x09)].concat(), &long(5, 0x05)), Ok(()));
        let deep = "found a schema of 101 or more nested groups, expected at most 100; write its columns outside of these groups";
        assert_eq!(found(101, &[version, &long(2, 0x09)].concat(), &long(5, 0x05)), Err(deep.to_owned()));
        let expected =
            "found metadata of another structure, expected that of the Parquet format; fetch the file again";
        for (what, before, children) in [
            ("a set", [version, &[0x1a]].concat(), vec![0x15]),
            ("field 2 + 2^16", [version, &long(65_538, 0x09)].concat(), vec![0x15]),
            ("a version of bytes", vec![0x18, 0x02, 0x19], vec![0x15]),
            (
                "key and value before the schema",
                [version, &[0x49, 0x0c], &long(2, 0x09)].concat(),
                vec![0x15],
            ),
            ("a number of children of 64 bits", [version, &[0x19]].concat(), vec![0x16]),
            ("field 5 + 2^16", [version, &[0x19]].concat(), long(65_541, 0x05)),
            ("field 5 - 2^16", [version, &[0x19]].concat(), [&[0x05], &varint(2 * 65_531 - 1)[..]].concat()),
            // A logical type that is passed as 1 byte, and read as a decimal whose scale is that byte.
            (
                "a scale of bytes",
                [version, &[0x19]].concat(),
                vec![0x6c, 0x5c, 0x18, 0x00, 0x00, 0x00, 0x05, 0x0a],
            ),
        ] {
            assert_eq!(found(10_000, &before, &children), Err(expected.to_owned()), "{what}");
        }
        // A number of children, 2³² + 1, of which the library takes 32 bits.
        let large = [&[0x15], &varint((1 << 33) + 2)[..], &[0x00]].concat();
        assert_eq!(found(10, &[version, &[0x19]].concat(), &large), Err(expected.to_owned()));
    }

    #[test]
    fn page_headers_that_the_library_reads_differently_are_refused() {
        let memory = |headers: &[u8], bytes| {
            chunk_memory(&of(headers), 0, bytes).unwrap().map_err(|excess| excess.to_string())
        };
        let size = |number: u64| varint(2 * number);
        // A data page of 1 GiB that is stored as no bytes.
        let page = |kinds: [u8; 2], decoded: u64, stored: u64| {
            [&[0x15, 0x00, 0x10 | kinds[0]], &size(decoded)[..], &[0x10 | kinds[1]], &size(stored), &[0x00]]
                .concat()
        };
        assert_eq!(memory(&page([5, 5], 1 << 30, 0), 100), Ok(1 << 30));
        let expected = "found a page header of another structure, expected that of the Parquet format; fetch the file again";
        for (what, header) in [
            ("a size of 64 bits", page([6, 5], 1 << 30, 0)),
            ("another size of 64 bits", page([5, 6], 1 << 30, 0)),
            ("a size that is truncated", page([5, 5], (1 << 32) + 1, 0)),
            ("hostile sizes", page([5, 5], u64::MAX >> 1, u64::MAX >> 1)),
            (
                "field 2 + 2^16",
                [&[0x15, 0x00, 0x05], &size(65_538)[..], &size(1 << 30), &[0x15, 0x00, 0x00]].concat(),
            ),
        ] {
            assert_eq!(memory(&header, 100), Err(expected.to_owned()), "{what}");
        }
        // A dictionary, of which the library reads the type, the sizes, and then a structure with the number of values.
        let dictionary = |kind: u8, decoded: u64, n_entries: u64| {
            let most = page([5, 5], decoded, 0);
            [&most[..most.len() - 1], &[0x4c, 0x10 | kind], &size(n_entries), &[0x15, 0x00, 0x00, 0x00]]
                .concat()
        };
        let most = i32::MAX as u64;
        assert_eq!(memory(&dictionary(5, most, most), u64::MAX), Ok(34 * most));
        assert_eq!(memory(&dictionary(5, most, 1 << 59), 100), Err(expected.to_owned()));
        assert_eq!(memory(&dictionary(6, most, 1), 100), Err(expected.to_owned()));
        // The library reads the header to its end, beyond the chunk.
        assert_eq!(memory(&page([5, 5], 1 << 30, 0), 1), Ok(1 << 30));
    }

    #[test]
    fn nested_groups_and_a_large_footer_are_refused_before_they_are_parsed() {
        assert!(check_footer(&nested(100), 1 << 20).unwrap().is_ok());
        let deep = check_footer(&nested(10_000), 1 << 20).unwrap().unwrap_err();
        let expected = "found a schema of 101 or more nested groups, expected at most 100; write its columns outside of these groups";
        assert_eq!(deep.to_string(), expected);
        let large = check_footer(&nested(10_000), 1000).unwrap().unwrap_err();
        let expected = "found metadata of 60013 bytes, expected at most 1000; write the file with fewer row groups, or raise \
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
