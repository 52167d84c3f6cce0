//! Finds records that a quote hides: a text that begins with a quote by chance is one record with all lines up to a text
//! that ends with one.
//!
//! Without quotes, each line of such a record is a record of its own: it has the columns of the header, and a rating. A
//! text with line breaks has such lines by chance only. Therefore its first and its last line, which are the parts of a
//! record that is hidden, must have exactly these columns, and most lines a rating, too. If columns have labels in place
//! of ratings, which may be any texts, there must be several lines, and labels must be repeated.

use std::collections::HashSet;

use super::Columns;
use crate::rating_rule::RatingRule;

/// Minimum number of lines between the first and the last that are sufficient evidence.
const LINES_MIN: usize = 3;

/// What a line is compared with.
#[derive(Debug)]
pub(super) struct HiddenRecords {
    delimiter: u8,
    n_columns: usize,
    rating: usize,
    ratings: RatingRule,
}

impl HiddenRecords {
    pub fn of(columns: &Columns, ratings: RatingRule) -> Self {
        let delimiter = columns.dialect.delimiter.byte();
        Self { delimiter, n_columns: columns.n_columns, rating: columns.rating, ratings }
    }

    /// Whether a record of several lines hides records. `n_columns` is its number of columns.
    pub fn are_in(&mut self, record: &[u8], n_columns: usize) -> bool {
        if n_columns != self.n_columns {
            return self.are_behind_first_line(record);
        }
        if self.ratings.label().is_some() {
            return self.repeat_labels(record);
        }
        let first = memchr::memchr2(b'\n', b'\r', record).map_or(record, |end| &record[..end]);
        let last = memchr::memrchr2(b'\n', b'\r', record).map_or(record, |end| &record[end + 1..]);
        if ![last, first].iter().all(|line| self.n_columns_of(line) == self.n_columns) {
            return false;
        }
        let lines: Vec<_> = lines(&record[first.len()..record.len() - last.len()]).collect();
        let n_like = lines.iter().filter(|line| self.is_like_record(line)).count();
        let are_ends_like = self.is_like_record(first) && self.is_like_record(last);
        (are_ends_like && 2 * n_like >= lines.len()) || (lines.len() >= LINES_MIN && 2 * n_like > lines.len())
    }

    /// Whether most lines behind the first are records. This is sufficient if the record has the wrong number of columns, or
    /// if its end is unknown.
    pub fn are_behind_first_line(&mut self, record: &[u8]) -> bool {
        if self.ratings.label().is_some() {
            return self.repeat_labels(record);
        }
        let (mut n_lines, mut n_like) = (0, 0);
        for line in lines(record).skip(1) {
            n_lines += 1;
            n_like += usize::from(self.is_like_record(line));
        }
        2 * n_like > n_lines
    }

    /// Whether most lines are records, and each label has two of them on average.
    fn repeat_labels(&mut self, record: &[u8]) -> bool {
        let (mut n_lines, mut n_like, mut labels) = (0, 0, HashSet::new());
        for line in lines(record) {
            n_lines += 1;
            if self.is_like_record(line) {
                n_like += 1;
                labels.extend(self.ratings.label().map(<[u8]>::to_vec));
            }
        }
        n_lines > LINES_MIN && 2 * n_like > n_lines && 2 * labels.len() <= n_like
    }

    fn n_columns_of(&self, line: &[u8]) -> usize {
        memchr::memchr_iter(self.delimiter, line).count() + 1
    }

    /// Whether a line is a record without quotes. A comma before a space is one of a text.
    fn is_like_record(&mut self, line: &[u8]) -> bool {
        if self.n_columns_of(line) != self.n_columns {
            return false;
        }
        let mut columns = line.split(|&byte| byte == self.delimiter);
        let rating = columns.clone().nth(self.rating).and_then(|rating| str::from_utf8(rating).ok());
        let is_text = self.delimiter == b',' && columns.any(|column| column.starts_with(b" "));
        !is_text && rating.is_some_and(|rating| self.ratings.of_text(rating).is_ok())
    }
}

/// The lines that are not empty.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n' || byte == b'\r').filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::{Delimiter, Dialect, Header};
    use crate::fields::Fields;

    /// Whether a record hides records below this header. It has as many columns as the header.
    fn is_hiding(header: &str, record: &str) -> bool {
        let delimiter = if header.contains('\t') { Delimiter::Tab } else { Delimiter::Comma };
        let header = Header::parse(header.as_bytes(), Dialect::rfc4180(delimiter)).unwrap();
        let columns = header.selected(&Fields::named("text", "stars")).unwrap();
        HiddenRecords::of(&columns, RatingRule::default()).are_in(record.as_bytes(), header.names().len())
    }

    #[test]
    fn lines_that_are_records_are_hidden_records() {
        for (header, record) in [
            ("text\tstars", "\"good\t5\nbad\"\t1"),
            ("text\tstars", "\"good\t5\r\nfine\t4\r\nbad\"\t1"),
            ("stars,text", "5,\"good\n1,bad\""),
            ("id,stars,text", "7,5,\"good\n8,4,ok\n9,1,bad\""),
            // Two of three lines between; the ratings of the first and the last line are wrong.
            ("text\tstars", "\"good\t?\nfine\t4\nunrated\t\nok\t3\nbad\"\t"),
        ] {
            assert!(is_hiding(header, record), "{record:?}");
        }
    }

    #[test]
    fn a_text_of_several_lines_is_no_hidden_record() {
        for (header, record) in [
            ("text,stars", "\"Good,\nvery\",5"),
            ("text,stars", "\"I say,\n5\",5"),
            ("stars,text", "5,\"My ranking:\n1, the screen\n2, the battery\n3, the rest\n4, the box\""),
            ("text,stars", "\"Ratings:\nTaste,5\nService,4\nPrice,3\nParking,1\n\",4"),
            ("id,text,stars", "1,\"a,b\nc,d\",5"),
            ("id\ttext\tstars", "1\t\"one\ntwo\n\nthree\nfour\nfive\"\t5"),
        ] {
            assert!(!is_hiding(header, record), "{record:?}");
        }
    }

    #[test]
    fn labels_of_hidden_records_are_repeated() {
        let is_hiding = |record: &str| {
            let header = Header::parse(b"label,text", Dialect::rfc4180(Delimiter::Comma)).unwrap();
            let fields = Fields { has_labels: true, ..Fields::named("text", "label") };
            let columns = header.selected(&fields).unwrap();
            let rule = RatingRule::of(&fields);
            HiddenRecords::of(&columns, rule).are_in(record.as_bytes(), 2)
        };
        assert!(!is_hiding("spam,\"hello\nyes,no\""));
        assert!(!is_hiding("spam,\"10,000 units\nno good\""));
        assert!(!is_hiding("spam,\"one,two\nthree,four\nfive,six\nseven,eight\""));
        assert!(is_hiding("spam,\"buy\nham,hi\nspam,pills\nham,how are you\""));
    }

    #[test]
    fn a_record_with_other_columns_hides_records_if_most_lines_are_some() {
        let header = Header::parse(b"text\tstars", Dialect::rfc4180(Delimiter::Tab)).unwrap();
        let columns = header.selected(&Fields::named("text", "stars")).unwrap();
        let mut hidden = HiddenRecords::of(&columns, RatingRule::default());
        assert!(hidden.are_in(b"\"good\t5\nfine\t4\nok\t3\nbad\"", 1));
        assert!(!hidden.are_in(b"\"good\nfine\t4\nok", 1));
        assert!(!hidden.are_in(b"\"good\n\n", 1));
    }
}
