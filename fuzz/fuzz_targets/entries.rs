//! Splitting CSV into records and a JSON array into elements: reads of any size must give the same entries, and no byte
//! other than separators may be between two entries.
//!
//! The first bytes of the input are eight sizes of reads and the maximum length of an entry.
#![no_main]

use corpus::csv::{CsvReader, Delimiter, Dialect, Quote};
use corpus::json_array::ElementReader;
use corpus::lines::{Line, LineContent};
use libfuzzer_sys::fuzz_target;

mod trickle;

use trickle::Trickle;

/// Offset, and the bytes; for an entry beyond the limit, their number.
type Found = (u64, Result<Vec<u8>, u64>);

/// What a stream is split into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entries {
    Records,
    Elements,
}

fuzz_target!(|data: &[u8]| {
    let Some((read_bytes, data)) = data.split_first_chunk() else { return };
    let Some((&[entry_bytes_max], stream)) = data.split_first_chunk() else { return };
    let entry_bytes_max = usize::from(entry_bytes_max);

    for quote in [Quote::Double, Quote::Backslash, Quote::None] {
        let records = |source: &mut dyn std::io::Read| {
            let dialect = Dialect { delimiter: Delimiter::Comma, quote };
            let mut reader = CsvReader::new(source, dialect, entry_bytes_max);
            let mut found = Vec::new();
            while let Some(record) = reader.next_record().expect("the stream has no errors") {
                found.push(owned(record));
            }
            found
        };
        let found = records(&mut Trickle::new(stream, *read_bytes));
        assert_eq!(found, records(&mut &*stream));
        check_gaps(stream, &found, stream.len(), Entries::Records);
    }

    let elements = |source: &mut dyn std::io::Read| {
        let mut reader = ElementReader::new(source, entry_bytes_max);
        let mut found = Vec::new();
        loop {
            match reader.next_element() {
                Ok(Some(element)) => found.push(owned(element)),
                Ok(None) => return (found, true),
                Err(_) => return (found, false),
            }
        }
    };
    let (found, is_whole) = elements(&mut Trickle::new(stream, *read_bytes));
    assert_eq!((found.clone(), is_whole), elements(&mut &*stream));
    let end = found.last().map_or(0, |last| end_of(stream, last, Entries::Elements));
    check_gaps(stream, &found, if is_whole { stream.len() } else { end }, Entries::Elements);
});

fn owned(line: Line<'_>) -> Found {
    let content = match line.content {
        LineContent::Bytes(bytes) => Ok(bytes.to_vec()),
        LineContent::TooLong { bytes, .. } => Err(bytes),
    };
    (line.offset, content)
}

fn end_of(stream: &[u8], (offset, content): &Found, of: Entries) -> usize {
    let start = *offset as usize;
    // A mark is a part of a record, but not of its content.
    let is_marked = of == Entries::Records && stream[start..].starts_with("\u{feff}".as_bytes());
    let start = start + if is_marked { 3 } else { 0 };
    match content {
        Ok(bytes) => {
            assert_eq!(&stream[start..start + bytes.len()], bytes);
            start + bytes.len()
        }
        Err(bytes) => start + *bytes as usize,
    }
}

fn check_gaps(stream: &[u8], found: &[Found], end: usize, of: Entries) {
    let separators: &[u8] = match of {
        Entries::Records => b"\r\n",
        Entries::Elements => b" \t\r\n[],",
    };
    let mut at = 0;
    let starts = found.iter().map(|entry| (entry.0 as usize, end_of(stream, entry, of)));
    for (start, entry_end) in starts.chain([(end, end)]) {
        let gap = &stream[at..start];
        let is_separator = |byte: &u8| separators.contains(byte) || "\u{feff}".as_bytes().contains(byte);
        assert!(gap.iter().all(is_separator), "{gap:?} before byte {start}");
        at = entry_end;
    }
}
