//! Groups records of one text: neighbours in, one record of summed votes out.
//!
//! The reducer needs every text's records together, so it asks that texts ascend and refuses a stream that was
//! sorted some other way. The combiner folds whatever happens to be neighbours and asks for no order.

use std::io::Read;

use thiserror::Error;

use crate::record::{ReadError, RecordReader, Votes};

/// What the stream promises about its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Texts ascend bytewise; anything else is an error.
    Ascending,
    /// Nothing.
    Any,
}

/// A text with the votes of all its neighbouring records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// The cleaned text.
    pub text: &'a [u8],
    /// The sum of its votes.
    pub votes: Votes,
    /// The number of the first of its lines, from 1.
    pub line: u64,
}

/// Why groups could not be read.
#[derive(Debug, Error)]
pub enum GroupError {
    /// The stream or a line of it failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A text came after a greater one.
    // Which texts they are stays out of the log, which others keep than those who may read reviews.
    #[error(
        "line {line}: the text is less than the one before, expected texts in bytewise ascending order; \
         sort with LC_ALL=C"
    )]
    OutOfOrder {
        /// The line's number, from 1.
        line: u64,
    },
    /// More votes than 32 bits hold.
    #[error(
        "line {line}: the votes of one text pass 4294967295 for one rating; is the input read more than once?"
    )]
    TooManyVotes {
        /// The line's number, from 1.
        line: u64,
    },
}

/// Most texts have no more bytes.
const TEXT_BYTES: usize = 4 << 10;

/// Reads groups from a stream of records.
pub struct Groups<R> {
    records: RecordReader<R>,
    order: Order,
    text: Vec<u8>,
    /// The first record of the next group, read ahead; its text is empty when there is none.
    ahead: Vec<u8>,
    ahead_votes: Votes,
}

impl<R: Read> Groups<R> {
    /// Reads from `input` in large pieces; it needs no buffer of its own.
    pub fn new(input: R, order: Order) -> Self {
        let records = RecordReader::new(input);
        let (text, ahead) = (Vec::with_capacity(TEXT_BYTES), Vec::with_capacity(TEXT_BYTES));
        Self { records, order, text, ahead, ahead_votes: Votes::default() }
    }

    /// The next group, or `None` at the end of the stream.
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
    fn neighbours_of_one_text_add_up() {
        let input = "bad\t1,0,0,0,0\nbad\t0,2,0,0,0\ngood\t0,0,0,0,1\n";
        let expected = vec![("bad".to_owned(), [1, 2, 0, 0, 0]), ("good".to_owned(), [0, 0, 0, 0, 1])];
        assert_eq!(groups(input, Order::Ascending).unwrap(), expected);
    }

    #[test]
    fn a_group_knows_the_first_of_its_lines() {
        let input = "a\t1,0,0,0,0\na\t1,0,0,0,0\nb\t1,0,0,0,0\nc\t1,0,0,0,0\nc\t1,0,0,0,0\n";
        let mut groups = Groups::new(input.as_bytes(), Order::Ascending);
        for line in [1, 3, 4] {
            assert_eq!(groups.next_group().unwrap().unwrap().line, line);
        }
    }

    #[test]
    fn a_stream_sorted_another_way_is_refused() {
        let input = "it's\t1,0,0,0,0\nits\t1,0,0,0,0\nit's\t1,0,0,0,0\n";
        let error = groups(input, Order::Ascending).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 3: the text is less than the one before, expected texts in bytewise ascending order; \
             sort with LC_ALL=C"
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
