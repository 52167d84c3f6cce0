//! Streams of record lines with reads of any size: a line is a record exactly if a naive parser accepts it, and it is
//! unchanged when written and read again.
//!
//! The first bytes of the input are settings: the size of the buffer, eight sizes of reads.
#![no_main]

use corpus::record::{ReadError, Record, RecordError, RecordReader, Votes, parse_record, write_record};
use libfuzzer_sys::fuzz_target;

mod trickle;

use trickle::Trickle;

fuzz_target!(|data: &[u8]| {
    let Some((&buffer_bytes, data)) = data.split_first() else { return };
    let Some((read_bytes, stream)) = data.split_first_chunk() else { return };
    let source = Trickle::new(stream, *read_bytes);
    let mut reader = RecordReader::with_buffer_bytes(source, usize::from(buffer_bytes).max(1));
    let mut lines: Vec<&[u8]> = stream.split(|&byte| byte == b'\n').collect();
    let cut_off = lines.pop().expect("what is split has a part");
    let n_lines = lines.len() as u64;
    for (line, number) in lines.into_iter().zip(1..) {
        match (reader.next_record(), naive(line)) {
            (Ok(Some(record)), Some(expected)) => {
                assert_eq!(record, expected);
                check_round_trip(record);
            }
            (Err(ReadError::Record { line, .. }), None) => assert_eq!(line, number),
            (found, expected) => panic!("{found:?} instead of {expected:?} in {line:?}"),
        }
        assert_eq!(reader.lines(), number);
    }
    match reader.next_record() {
        Ok(None) => assert!(cut_off.is_empty()),
        Err(ReadError::Record { line, reason: RecordError::CutOff }) => {
            assert_eq!((line, cut_off.is_empty()), (n_lines + 1, false));
        }
        found => panic!("{found:?} at the end of {n_lines} lines and {cut_off:?}"),
    }
});

fn check_round_trip(record: Record<'_>) {
    let mut written = Vec::new();
    write_record(&mut written, record.text, record.votes);
    let [n1, n2, n3, n4, n5] = record.votes.0;
    let votes = format!("\t{n1},{n2},{n3},{n4},{n5}\n");
    assert_eq!(written, [record.text, votes.as_bytes()].concat());
    assert_eq!(parse_record(&written[..written.len() - 1]), Ok(record));
}

fn naive(line: &[u8]) -> Option<Record<'_>> {
    let parts: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
    let (text, votes) = match parts[..] {
        [text, votes] | [text, votes, b""] if !text.is_empty() => (text, std::str::from_utf8(votes).ok()?),
        _ => return None,
    };
    let mut numbers = Vec::new();
    for digits in votes.split(',') {
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        numbers.push(is_number.then(|| digits.parse().ok())??);
    }
    let votes = Votes(numbers.try_into().ok()?);
    (votes.total() > 0).then_some(Record { text, votes })
}
