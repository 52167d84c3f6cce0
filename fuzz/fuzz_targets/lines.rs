//! Splitting a stream into lines: reads of any size must give the lines of the whole input.
//!
//! The first bytes of the input are settings: the maximum line length, the size of the buffer, eight sizes of reads.
#![no_main]

use corpus::lines::{LineContent, LineReader, is_blank};
use libfuzzer_sys::fuzz_target;

mod trickle;

use trickle::Trickle;

/// Offset, and the bytes; for a line beyond the limit, the number of bytes and whether they are blank.
type Found = (u64, Result<Vec<u8>, (u64, bool)>);

fuzz_target!(|data: &[u8]| {
    let Some((&[line_bytes_max, buffer_bytes], data)) = data.split_first_chunk() else { return };
    let Some((read_bytes, stream)) = data.split_first_chunk() else { return };
    let line_bytes_max = usize::from(line_bytes_max);
    let source = Trickle::new(stream, *read_bytes);
    let mut reader = LineReader::with_buffer_bytes(source, line_bytes_max, usize::from(buffer_bytes));
    for expected in naive(stream, line_bytes_max) {
        let line = reader.next_line().expect("the stream has no errors").expect("a line is left");
        let content = match line.content {
            LineContent::Bytes(bytes) => Ok(bytes.to_vec()),
            LineContent::TooLong { bytes, blank } => Err((bytes, blank)),
        };
        assert_eq!((line.offset, content), expected);
    }
    assert_eq!(reader.next_line().expect("the stream has no errors"), None);
});

fn naive(stream: &[u8], line_bytes_max: usize) -> Vec<Found> {
    let mut lines = Vec::new();
    let mut start = 0;
    while start < stream.len() {
        let length = stream[start..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let end = length.map_or(stream.len(), |length| start + length);
        let marked = &stream[start..end];
        let line = marked.strip_prefix("\u{feff}".as_bytes()).unwrap_or(marked);
        let content = match line.len() > line_bytes_max {
            true => Err((line.len() as u64, is_blank(line))),
            false => Ok(line.to_vec()),
        };
        lines.push((start as u64, content));
        start = if stream[end..].starts_with(b"\r\n") { end + 2 } else { end + 1 };
    }
    lines
}
