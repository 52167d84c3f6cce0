//! The record line, the one type on the pipe: `cleaned text TAB n1,n2,n3,n4,n5 LF`.
//!
//! `n1` to `n5` are the numbers of reviews that gave this text one to five stars. The mapper writes records,
//! and the combiner and the reducer read them. Records of one text add up, so the number of combiner passes
//! does not matter.

use std::io::{self, Read};

use thiserror::Error;

/// Number of reviews of a text per rating. `votes.0[0]` counts those of one star.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Votes(pub [u32; 5]);

impl Votes {
    /// One vote for a rating from 1 to 5.
    pub fn one(rating: u8) -> Self {
        let mut votes = Self::default();
        votes.0[usize::from(rating) - 1] = 1;
        votes
    }

    /// Adds other votes. Returns `None` if the votes for a rating exceed 4,294,967,295.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let mut sum = self;
        for (n, m) in sum.0.iter_mut().zip(other.0) {
            *n = n.checked_add(m)?;
        }
        Some(sum)
    }

    /// Sum of all votes: the number of reviews of this text.
    pub fn total(self) -> u64 {
        self.0.iter().map(|&n| u64::from(n)).sum()
    }

    /// The most frequent rating. If several ratings are equally frequent, the smallest of them.
    pub fn mode(self) -> u8 {
        let mut best = 0;
        for rating in 1..5 {
            if self.0[rating] > self.0[best] {
                best = rating;
            }
        }
        best as u8 + 1
    }
}

/// A parsed record line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The cleaned text, not empty.
    pub text: &'a [u8],
    /// The votes, not all zero.
    pub votes: Votes,
}

/// Appends a record line to `out`.
#[inline]
pub fn write_record(out: &mut Vec<u8>, text: &[u8], votes: Votes) {
    out.extend_from_slice(text);
    // Most records have votes of one digit.
    if votes.0.iter().all(|&n| n < 10) {
        let mut digits = *b"\t0,0,0,0,0\n";
        votes.0.iter().enumerate().for_each(|(at, &n)| digits[1 + 2 * at] += n as u8);
        return out.extend_from_slice(&digits);
    }
    let [one, two, three, four, five] = votes.0;
    out.extend_from_slice(format!("\t{one},{two},{three},{four},{five}\n").as_bytes());
}

/// Why a line is not a record.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RecordError {
    /// The line has no tab.
    #[error("no tab between text and votes")]
    NoTab,
    /// The text before the tab is empty.
    #[error("no text before the tab")]
    NoText,
    /// The votes after the tab are not five numbers.
    #[error("the votes are not five numbers from 0 to 4294967295 separated by commas")]
    Votes,
    /// All five numbers are zero.
    #[error("all five votes are zero")]
    NoVotes,
    /// The input ends within the line. Its last number may have had more digits.
    #[error("the input is cut off before the line end")]
    CutOff,
}

/// Parses one line, passed without its LF. A single tab after the votes is skipped: Hadoop appends it to a
/// key that has no value.
pub fn parse_record(line: &[u8]) -> Result<Record<'_>, RecordError> {
    let tab = memchr::memchr(b'\t', line).ok_or(RecordError::NoTab)?;
    let (text, votes) = (&line[..tab], &line[tab + 1..]);
    if text.is_empty() {
        return Err(RecordError::NoText);
    }
    let votes = parse_votes(votes.strip_suffix(b"\t").unwrap_or(votes)).ok_or(RecordError::Votes)?;
    if votes == Votes::default() {
        return Err(RecordError::NoVotes);
    }
    Ok(Record { text, votes })
}

fn parse_votes(bytes: &[u8]) -> Option<Votes> {
    let mut votes = Votes::default();
    // Fast path: most records are one vote from the mapper, which is five digits and four commas.
    if let &[a, b',', b, b',', c, b',', d, b',', e] = bytes {
        for (n, digit) in votes.0.iter_mut().zip([a, b, c, d, e]) {
            *n = u32::from(digit.checked_sub(b'0').filter(|&n| n < 10)?);
        }
        return Some(votes);
    }
    let mut parts = bytes.split(|&byte| byte == b',');
    for n in &mut votes.0 {
        *n = parse_number(parts.next()?)?;
    }
    parts.next().is_none().then_some(votes)
}

fn parse_number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u32, |n, &byte| {
        let digit = byte.checked_sub(b'0').filter(|&digit| digit < 10)?;
        n.checked_mul(10)?.checked_add(u32::from(digit))
    })
}

/// Limit of a record line in bytes. Cleaning cannot make a raw line of the mapper's default limit, 4 MiB,
/// this long.
pub const RECORD_BYTES_MAX: usize = 16 << 20;

const READ_BYTES: usize = 256 << 10;

/// Reads record lines from a stream, in order, through one buffer that grows to the longest line.
pub struct RecordReader<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    lines: u64,
}

/// Why records could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// Reading the stream failed.
    #[error("standard input: cannot read records")]
    Io(#[from] io::Error),
    /// A line is not a record.
    #[error("line {line} is not a record: {reason}; feed this program the output of mapper or combiner")]
    Record {
        /// The line number, from 1.
        line: u64,
        /// The reason.
        reason: RecordError,
    },
    /// A line exceeds the limit.
    #[error(
        "line {line} is longer than {RECORD_BYTES_MAX} bytes; feed this program the output of mapper or combiner"
    )]
    TooLong {
        /// The line number, from 1.
        line: u64,
    },
}

impl<R: Read> RecordReader<R> {
    /// Reads from `input` in large blocks, so `input` needs no buffer.
    pub fn new(input: R) -> Self {
        Self::with_buffer_bytes(input, READ_BYTES)
    }

    /// Reads from `input` with this initial buffer size, which must not be 0. The buffer grows for longer
    /// lines.
    pub fn with_buffer_bytes(input: R, buffer_bytes: usize) -> Self {
        Self { input, buffer: vec![0; buffer_bytes], start: 0, end: 0, ended: false, lines: 0 }
    }

    /// Number of lines read so far.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the next record, or `None` at the end of the stream. A last line without LF was cut off and is
    /// an error.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        let mut searched = 0;
        let length = loop {
            match memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end]) {
                Some(found) => break searched + found,
                None if self.ended && self.start == self.end => return Ok(None),
                None if self.ended => {
                    return Err(ReadError::Record { line: self.lines + 1, reason: RecordError::CutOff });
                }
                None => searched = self.end - self.start,
            }
            self.fill()?;
        };
        self.lines += 1;
        let line = &self.buffer[self.start..self.start + length];
        self.start += length + 1;
        parse_record(line).map(Some).map_err(|reason| ReadError::Record { line: self.lines, reason })
    }

    /// Reads more bytes after the unread ones, and makes space for them first.
    fn fill(&mut self) -> Result<(), ReadError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            if self.end >= RECORD_BYTES_MAX {
                return Err(ReadError::TooLong { line: self.lines + 1 });
            }
            self.buffer.resize(self.end * 2, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(n) => self.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str, votes: [u32; 5]) -> String {
        let mut out = Vec::new();
        write_record(&mut out, text.as_bytes(), Votes(votes));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_record_is_text_tab_five_votes() {
        assert_eq!(written("it works", [0, 0, 0, 0, 1]), "it works\t0,0,0,0,1\n");
        assert_eq!(written("ok", [10, 0, 4_294_967_295, 7, 100]), "ok\t10,0,4294967295,7,100\n");
    }

    #[test]
    fn a_trailing_tab_of_hadoop_is_skipped() {
        assert_eq!(parse_record(b"ok\t1,0,0,0,0\t"), parse_record(b"ok\t1,0,0,0,0"));
    }

    #[test]
    fn an_invalid_record_is_refused_with_its_reason() {
        for (line, reason) in [
            ("ok 1,0,0,0,0", RecordError::NoTab),
            ("\t1,0,0,0,0", RecordError::NoText),
            ("ok\t1,0,0,0", RecordError::Votes),
            ("ok\t1,0,0,0,0,0", RecordError::Votes),
            ("ok\t1,0,0,0,", RecordError::Votes),
            ("ok\t+1,0,0,0,0", RecordError::Votes),
            ("ok\t1,0,0,0,:", RecordError::Votes),
            ("ok\t4294967296,0,0,0,0", RecordError::Votes),
            ("ok\t1,0,0,0,0\t\t", RecordError::Votes),
            ("ok\t0,0,0,0,0", RecordError::NoVotes),
        ] {
            assert_eq!(parse_record(line.as_bytes()), Err(reason), "{line:?}");
        }
    }

    #[test]
    fn of_equally_frequent_ratings_the_smaller_is_the_mode() {
        assert_eq!(Votes([0, 2, 0, 2, 1]).mode(), 2);
        assert_eq!(Votes([1, 0, 0, 0, 3]).mode(), 5);
        assert_eq!(Votes([1, 1, 1, 1, 1]).mode(), 1);
    }

    #[test]
    fn votes_beyond_32_bits_are_detected() {
        assert_eq!(Votes([u32::MAX, 0, 0, 0, 0]).checked_add(Votes::one(1)), None);
    }

    /// Returns its bytes a few at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    proptest! {
        #[test]
        fn records_survive_the_round_trip_and_a_cut_record_is_detected(
            records in prop::collection::vec(("[a-zé' ]{1,40}", prop::array::uniform5(0u32..=u32::MAX)), 0..20),
            step in 1usize..50,
            cut in any::<prop::sample::Index>(),
        ) {
            let records: Vec<_> = records.into_iter().filter(|(_, votes)| votes.iter().any(|&n| n > 0)).collect();
            let (mut bytes, mut ends) = (Vec::new(), vec![0]);
            for (text, votes) in &records {
                write_record(&mut bytes, text.as_bytes(), Votes(*votes));
                ends.push(bytes.len());
            }
            let cut = cut.index(bytes.len() + 1);
            let whole = ends.iter().filter(|&&end| end <= cut).count() - 1;

            let mut reader = RecordReader::new(Drip(&bytes[..cut], step));

            for (text, votes) in &records[..whole] {
                let record = reader.next_record().unwrap().unwrap();
                prop_assert_eq!(record.text, text.as_bytes());
                prop_assert_eq!(record.votes, Votes(*votes));
            }
            let end = reader.next_record();
            if ends[whole] == cut {
                prop_assert!(end.unwrap().is_none());
            } else {
                let is_cut_off = matches!(end, Err(ReadError::Record { reason: RecordError::CutOff, .. }));
                prop_assert!(is_cut_off);
            }
        }
    }
}
