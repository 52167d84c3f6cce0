//! Pages: what their headers declare, before the library reads them, and what their content declares, before it is decoded.
//!
//! The delta encodings begin with a number of values, for each of which the library allocates a length. A page may not
//! contain more values than its header says, and those count as memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use parquet::basic::Encoding;
use parquet::column::page::{Page as Content, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};

use super::scan::{BOOL, I32, STRUCT, Scan};
use super::{DAMAGED, Excess};

/// Bytes of a page header that are read at first,
const HEADER_BYTES: u64 = 512;
/// and at most. It contains the smallest and the largest value.
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// Memory for an entry of a dictionary in addition to its bytes.
const ENTRY_BYTES: u64 = 32;
/// Memory for the lengths of a value in a delta encoding: of its prefix and of its suffix, in vectors that may double.
const LENGTHS_BYTES: u64 = 16;
/// The values of rows that are read at once have this many bytes, or are of one page more.
const VALUES_BYTES_MAX: u64 = 16 << 20;

/// Memory for reading a column chunk page by page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkMemory {
    /// Bytes of the largest page before and after decompression, of the dictionary and of lengths.
    pub bytes: u64,
    /// Number of rows that can be read at once. Their values keep their pages, or are copies of parts of a page.
    pub rows_max: usize,
}

/// Scans the headers of a column chunk, of which at most `rows_max` rows are read at once.
///
/// # Errors
/// If the file cannot be read.
pub fn chunk_memory(
    file: &File,
    start: u64,
    bytes: u64,
    rows_max: usize,
) -> io::Result<Result<ChunkMemory, Excess>> {
    let file_bytes = file.metadata()?.len();
    let (mut at, end) = (start, start.saturating_add(bytes).min(file_bytes));
    // The numbers of a page are below 2³¹.
    let (mut largest, mut largest_value, mut dictionary, mut n_lengths) = (0, 0, 0, 0);
    let mut held = Held::new(rows_max as u64);
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
        } else {
            largest_value = largest_value.max(page.decoded);
            if page.has_lengths {
                n_lengths = n_lengths.max(page.n_values);
            }
            held.add(&page);
        }
        at += page.header + page.stored;
    }
    let bytes = largest + dictionary + LENGTHS_BYTES * n_lengths;
    let rows_max = match held.largest > VALUES_BYTES_MAX {
        true => ((VALUES_BYTES_MAX / largest_value.max(1)) as usize).clamp(1, rows_max),
        false => rows_max,
    };
    Ok(Ok(ChunkMemory { bytes, rows_max }))
}

/// The bytes that the values of a number of rows, one after the other, may hold.
struct Held {
    n_rows: u64,
    /// Values and bytes of the last pages, and their sums.
    pages: VecDeque<(u64, u64)>,
    n_values: u64,
    bytes: u64,
    /// The largest sum of bytes so far.
    largest: u64,
}

impl Held {
    fn new(n_rows: u64) -> Self {
        Self { n_rows, pages: VecDeque::new(), n_values: 0, bytes: 0, largest: 0 }
    }

    fn add(&mut self, page: &Page) {
        if page.n_values == 0 {
            return;
        }
        // A value that has a prefix is a copy, of the size of the page at most.
        let copies = if page.has_prefixes { page.n_values.min(self.n_rows) } else { 1 };
        self.pages.push_back((page.n_values, copies * page.decoded));
        self.n_values += page.n_values;
        self.bytes += copies * page.decoded;
        // The rows may begin with the last value of the first page.
        while let Some(&(n_values, bytes)) = self.pages.front()
            && self.n_values - n_values + 1 > self.n_rows
            && self.pages.len() > 1
        {
            self.pages.pop_front();
            self.n_values -= n_values;
            self.bytes -= bytes;
        }
        self.largest = self.largest.max(self.bytes);
    }
}

/// What a page header declares. Sizes are in bytes.
#[derive(Debug, Default)]
pub(super) struct Page {
    header: u64,
    stored: u64,
    decoded: u64,
    /// Number of values of a dictionary.
    n_entries: Option<u64>,
    /// Number of other values, with those that are null.
    n_values: u64,
    /// Whether they are in an encoding with a length for each value,
    has_lengths: bool,
    /// and with the length of what is equal to the beginning of the value before it.
    has_prefixes: bool,
}

impl Page {
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let mut page = Self::default();
        let mut scan = Scan(bytes);
        let types = [I32, I32, I32, I32, STRUCT, STRUCT, STRUCT, STRUCT];
        scan.fields(&types, |scan, field, kind| match field {
            2 => scan.number().map(|bytes| page.decoded = bytes),
            3 => scan.number().map(|bytes| page.stored = bytes),
            5 => scan.fields(&[I32; 4], |scan, field, kind| page.values(2, scan, field, kind)),
            7 => scan.fields(&[I32, I32, BOOL], |scan, field, kind| match field {
                1 => scan.number().map(|n| page.n_entries = Some(n)),
                _ => scan.pass_field(field, kind),
            }),
            8 => {
                let types = [I32, I32, I32, I32, I32, I32, BOOL];
                scan.fields(&types, |scan, field, kind| page.values(4, scan, field, kind))
            }
            _ => scan.pass_field(field, kind),
        })?;
        page.header = (bytes.len() - scan.0.len()) as u64;
        Some(page)
    }

    /// A field of the header of a data page, with the field of its encoding. Of two headers, the library uses one.
    fn values(&mut self, encoding: u64, scan: &mut Scan<'_>, field: u64, kind: u8) -> Option<()> {
        match field {
            1 => scan.number().map(|n| self.n_values = n.max(self.n_values)),
            _ if field == encoding => scan.number().map(|encoding| {
                let is = |of: Encoding| encoding == of as u64;
                self.has_prefixes |= is(Encoding::DELTA_BYTE_ARRAY);
                self.has_lengths |= self.has_prefixes || is(Encoding::DELTA_LENGTH_BYTE_ARRAY);
            }),
            _ => scan.pass_field(field, kind),
        }
    }
}

/// The pages of a column chunk, of which those are refused whose delta encoding has more values than the page.
pub struct Pages<R> {
    pages: R,
    /// Maximum definition level and repetition level of the column.
    levels: [i16; 2],
}

impl<R: PageReader> Pages<R> {
    /// Checks the pages of a column with these maximum definition and repetition levels.
    pub fn of(pages: R, definition: i16, repetition: i16) -> Self {
        Self { pages, levels: [definition, repetition] }
    }
}

impl<R: PageReader> Iterator for Pages<R> {
    type Item = ParquetResult<Content>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<R: PageReader> PageReader for Pages<R> {
    fn get_next_page(&mut self) -> ParquetResult<Option<Content>> {
        let page = self.pages.get_next_page()?;
        page.iter().try_for_each(|page| check_counts(page, self.levels))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> ParquetResult<bool> {
        self.pages.at_record_boundary()
    }
}

/// Refuses a page whose delta encoding has more values than the page.
pub(super) fn check_counts(page: &Content, levels: [i16; 2]) -> ParquetResult<()> {
    let n_lists = match page.encoding() {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        Encoding::DELTA_BYTE_ARRAY => 2,
        _ => return Ok(()),
    };
    let values = match page {
        Content::DataPage { buf, def_level_encoding, rep_level_encoding, .. } => {
            // Repetition levels are first.
            let levels = [(levels[1], rep_level_encoding), (levels[0], def_level_encoding)];
            levels.into_iter().filter(|(level, _)| *level > 0).try_fold(
                &buf[..],
                |rest, (level, encoding)| {
                    let bytes = match encoding {
                        Encoding::RLE => 4 + u32::from_le_bytes(*rest.first_chunk()?) as usize,
                        _ => (page.num_values() as usize * (16 - level.leading_zeros() as usize)).div_ceil(8),
                    };
                    rest.get(bytes..)
                },
            )
        }
        Content::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            buf.get(*def_levels_byte_len as usize + *rep_levels_byte_len as usize..)
        }
        Content::DictionaryPage { .. } => return Ok(()),
    };
    let mut scan = Scan(values.unwrap_or_default());
    for _ in 0..n_lists {
        let most = u64::from(page.num_values());
        let Some(found) = scan.delta_list(most) else {
            return Err(ParquetError::EOF("the lengths of a page are not whole".to_owned()));
        };
        if found > most {
            let found = format!("found {found} lengths in a page of {most} values");
            return Err(ParquetError::General(found));
        }
    }
    Ok(())
}

impl Scan<'_> {
    /// The number of values of a list in the encoding DELTA_BINARY_PACKED. The list is passed if it has at most this many.
    fn delta_list(&mut self, most: u64) -> Option<u64> {
        let (block, n_parts, n) = (self.varint()?, self.varint()?, self.varint()?);
        let _first = self.varint()?;
        if n > most {
            return Some(n);
        }
        let of_part = block.checked_div(n_parts).filter(|&of_part| of_part > 0)?;
        let mut rest = n.saturating_sub(1);
        while rest > 0 {
            let _least = self.varint()?;
            let widths = self.0.get(..usize::try_from(n_parts).ok()?)?;
            self.pass(n_parts)?;
            for &width in widths {
                // The widths behind the last value mean nothing.
                let bits = if rest > 0 { u64::from(width).checked_mul(of_part)? } else { 0 };
                self.pass(bits / 8)?;
                rest = rest.saturating_sub(of_part);
            }
        }
        Some(n)
    }
}
