//! Groups neighbouring records of one text into one record with the sum of their votes.
//!
//! The reducer needs all records of a text together, so it requires ascending texts and refuses input in any
//! other order. The combiner groups neighbours in any order.

use std::io::Read;

use program::exit::{Exit, Fails};
use thiserror::Error;

use crate::record::{ReadError, RecordReader, Votes};

/// The order of texts in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Texts ascend by bytes. Any other order is an error.
    Ascending,
    /// Texts are in any order.
    Any,
}

/// A text with the votes of all its neighbouring records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// The cleaned text.
    pub text: &'a [u8],
    /// The sum of the votes.
    pub votes: Votes,
    /// Line number of the first record, from 1.
    pub line: u64,
}

/// Why groups could not be read.
#[derive(Debug, Error)]
pub enum GroupError {
    /// Reading the stream failed, or a line is invalid.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A text follows a greater one.
    // The message does not show the texts: people without access to reviews may read logs.
    #[error(
        "line {line}: the text is less than the previous text, expected texts in bytewise ascending order; \
         sort the records with `LC_ALL=C sort`"
    )]
    OutOfOrder {
        /// The line number, from 1.
        line: u64,
    },
    /// The number of votes does not fit in 32 bits.
    #[error(
        "line {line}: the votes of one text exceed 4294967295 for one rating; check that no input is read twice"
    )]
    TooManyVotes {
        /// The line number, from 1.
        line: u64,
    },
}

impl Fails for GroupError {
    fn exit(&self) -> Exit {
        match self {
            Self::Read(ReadError::Io(_)) => Exit::Io,
            _ => Exit::BadInput,
        }
    }
}

/// Initial capacity. Most texts are shorter.
const TEXT_BYTES: usize = 4 << 10;

/// Reads groups from a stream of records.
pub struct Groups<R> {
    records: RecordReader<R>,
    order: Order,
    text: Vec<u8>,
    /// The first record of the next group. Its text is empty if there is none.
    ahead: Vec<u8>,
    ahead_votes: Votes,
}

impl<R: Read> Groups<R> {
    /// Reads from `input` in large blocks, so `input` needs no buffer.
    pub fn new(input: R, order: Order) -> Self {
        let records = RecordReader::new(input);
        let (text, ahead) = (Vec::with_capacity(TEXT_BYTES), Vec::with_capacity(TEXT_BYTES));
        Self { records, order, text, ahead, ahead_votes: Votes::default() }
    }

    /// Returns the next group, or `None` at the end of the stream.
    pub fn next_group(&mut self) -> Result<Option<Group<'_>>, GroupError> {
        if self.ahead.is_empty() {
            let Some(first) = self.records.next_record()? else { return Ok(None) };
            self.ahead.extend_from_slice(first.text);
            self.ahead_votes = first.votes;
        }
        std::mem::swap(&mut self.text, &mut self.ahead);
        self.ahead.clear();
        let mut votes = self.ahead_votes;
        let first_line = self.records.lines();
        let mut line = first_line;
        while let Some(record) = self.records.next_record()? {
            line += 1;
            if record.text != self.text {
                if self.order == Order::Ascending && record.text < &self.text[..] {
                    return Err(GroupError::OutOfOrder { line });
                }
                self.ahead.extend_from_slice(record.text);
                self.ahead_votes = record.votes;
                break;
            }
            votes = votes.checked_add(record.votes).ok_or(GroupError::TooManyVotes { line })?;
        }
        Ok(Some(Group { text: &self.text, votes, line: first_line }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::record::write_record;

    fn groups(input: &str, order: Order) -> Result<Vec<(String, [u32; 5])>, GroupError> {
        let mut groups = Groups::new(input.as_bytes(), order);
        let mut all = Vec::new();
        while let Some(group) = groups.next_group()? {
            all.push((String::from_utf8(group.text.to_vec()).unwrap(), group.votes.0));
        }
        Ok(all)
    }

    #[test]
    fn votes_of_neighbouring_records_of_one_text_are_summed() {
        let input = "bad\t1,0,0,0,0\nbad\t0,2,0,0,0\ngood\t0,0,0,0,1\n";
        let expected = vec![("bad".to_owned(), [1, 2, 0, 0, 0]), ("good".to_owned(), [0, 0, 0, 0, 1])];
        assert_eq!(groups(input, Order::Ascending).unwrap(), expected);
    }

    #[test]
    fn a_group_has_the_line_number_of_its_first_record() {
        let input = "a\t1,0,0,0,0\na\t1,0,0,0,0\nb\t1,0,0,0,0\nc\t1,0,0,0,0\nc\t1,0,0,0,0\n";
        let mut groups = Groups::new(input.as_bytes(), Order::Ascending);
        for line in [1, 3, 4] {
            assert_eq!(groups.next_group().unwrap().unwrap().line, line);
        }
    }

    #[test]
    fn input_in_another_order_is_refused() {
        let input = "it's\t1,0,0,0,0\nits\t1,0,0,0,0\nit's\t1,0,0,0,0\n";
        let error = groups(input, Order::Ascending).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 3: the text is less than the previous text, expected texts in bytewise ascending order; \
             sort the records with `LC_ALL=C sort`"
        );
        assert_eq!(groups(input, Order::Any).unwrap().len(), 3);
    }

    #[test]
    fn votes_past_32_bits_are_refused() {
        let input = "a\t4294967295,0,0,0,0\na\t1,0,0,0,0\n";
        assert!(matches!(groups(input, Order::Any), Err(GroupError::TooManyVotes { line: 2 })));
    }

    proptest! {
        #[test]
        fn grouping_a_sorted_stream_equals_a_map_of_sums(
            records in prop::collection::vec(("[ab']{1,3}", 1u8..=5), 0..60),
        ) {
            let mut records = records;
            records.sort();
            let mut sums: BTreeMap<String, [u32; 5]> = BTreeMap::new();
            let mut input = Vec::new();
            for (text, rating) in &records {
                sums.entry(text.clone()).or_default()[usize::from(*rating) - 1] += 1;
                write_record(&mut input, text.as_bytes(), Votes::one(*rating));
            }
            let input = String::from_utf8(input).unwrap();
            prop_assert_eq!(groups(&input, Order::Ascending).unwrap(), sums.into_iter().collect::<Vec<_>>());
        }
    }
}
