//! Combines adjacent records of the same text into one record.
//!
//! Hadoop runs a combiner any number of times, on parts of a mapper's output and on the combiner's output.
//! The combiner therefore writes the record format that it reads, and does not change texts or their order.
//! The input may have any order, because the result is correct in every order.

pub mod arguments;

use std::io::{self, Read, Write};

use corpus::group::{Groups, Order};
use corpus::record::write_record;
use program::exit::{Exit, Failed};
use program::system::Failure;

/// Approximate size of one write.
const WRITE_BYTES: usize = 256 << 10;

/// Combines the records of `input` into `output`.
pub fn run(input: impl Read, mut output: impl Write) -> Result<(), Failed> {
    let mut groups = Groups::new(input, Order::Any);
    let mut records = Vec::with_capacity(2 * WRITE_BYTES);
    while let Some(group) = groups.next_group()? {
        write_record(&mut records, group.text, group.votes);
        if records.len() >= WRITE_BYTES {
            output.write_all(&records).map_err(|error| unwritten(&error))?;
            records.clear();
        }
    }
    output.write_all(&records).and_then(|()| output.flush()).map_err(|error| unwritten(&error))
}

/// A closed pipe is a failure too, because records are lost.
fn unwritten(error: &io::Error) -> Failed {
    let why = Failure::writing("write records", error, "redirect it to another disk");
    Failed::new(Exit::Io, format!("standard output: {why}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn combined(input: &str) -> String {
        let mut output = Vec::new();
        run(input.as_bytes(), &mut output).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn neighbours_are_combined_and_the_order_is_kept() {
        let input = "b\t0,0,0,0,1\nb\t0,0,0,0,1\t\na\t1,0,0,0,0\nb\t0,0,0,0,1\n";
        assert_eq!(combined(input), "b\t0,0,0,0,2\na\t1,0,0,0,0\nb\t0,0,0,0,1\n");
        assert_eq!(combined(""), "");
    }

    #[test]
    fn an_invalid_record_is_refused_with_the_line() {
        let error = run("a\t1,0,0,0,0\nnonsense\n".as_bytes(), Vec::new()).unwrap_err();
        assert_eq!(error.exit, Exit::BadInput);
        assert!(error.to_string().starts_with("line 2 is not a record: no tab"), "{error}");
    }

    #[test]
    fn output_without_a_reader_is_a_failure() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert_eq!(run("a\t1,0,0,0,0\n".as_bytes(), Closed).unwrap_err().exit, Exit::Io);
    }

    fn sorted(lines: &[String]) -> String {
        let mut lines = lines.to_vec();
        lines.sort();
        lines.concat()
    }

    fn lines(text: &str) -> Vec<String> {
        text.split_inclusive('\n').map(str::to_owned).collect()
    }

    proptest! {
        #[test]
        fn combiner_passes_before_and_after_the_sort_change_no_result(
            records in prop::collection::vec(("[ab]{1,2}", 0usize..5), 0..60),
            parts in prop::collection::vec((0usize..60, 0usize..3), 0..4),
        ) {
            let raw: Vec<String> = records
                .iter()
                .map(|(text, rating)| {
                    let mut votes = ["0"; 5];
                    votes[*rating] = "1";
                    format!("{text}\t{}\n", votes.join(","))
                })
                .collect();
            // Each part of the input gets its own number of passes and is mixed with the rest, which gets
            // none.
            let mut mixed = Vec::new();
            let mut rest = &raw[..];
            for (length, passes) in parts {
                let (part, after) = rest.split_at(length.min(rest.len()));
                rest = after;
                let mut text = part.concat();
                for _ in 0..passes {
                    text = combined(&sorted(&lines(&text)));
                }
                mixed.extend(lines(&text));
            }
            mixed.extend_from_slice(rest);
            let once = combined(&sorted(&raw));
            prop_assert_eq!(combined(&sorted(&mixed)), once.clone());
            prop_assert_eq!(combined(&once), once);
        }
    }
}
