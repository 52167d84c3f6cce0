//! Converts a raw line into the text and rating of its review, or into the reason why there is none.

use crate::clean::{Cleaner, Rules};
use crate::csv::Columns;
use crate::entry::{Entry, Rating, RatingValue, Reject};
use crate::format::Format;
use crate::ledger::NoReview;
use crate::lines::{Line, LineContent};
use crate::review::ReviewParser;

/// Reads lines one by one and reuses its buffers. Texts are cleaned, unless it was created by
/// [`CleanedReviews::as_written`].
#[derive(Debug)]
pub struct CleanedReviews {
    parser: ReviewParser,
    texts: Texts,
}

/// A review that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Review<'a> {
    /// The text, cleaned or as it is written. It is not empty.
    pub text: &'a [u8],
    /// The rating.
    pub rating: Rating,
    /// The label, if the values of the rating field are labels and no ratings.
    pub label: Option<&'a [u8]>,
}

/// What is done with texts.
#[derive(Debug)]
enum Texts {
    Cleaned { cleaner: Cleaner, text: Vec<u8> },
    AsWritten,
}

impl CleanedReviews {
    /// Creates a reader of lines of this format that cleans texts by these rules.
    pub fn of(format: Format, rules: Rules) -> Self {
        let texts = Texts::Cleaned { cleaner: Cleaner::new(rules), text: Vec::new() };
        Self { parser: ReviewParser::new(format), texts }
    }

    /// Creates a reader of lines of this format that does not clean texts. A text of white space only counts as
    /// empty.
    pub fn as_written(format: Format) -> Self {
        Self { parser: ReviewParser::new(format), texts: Texts::AsWritten }
    }

    /// Returns the review in a line, or the reason why it has none.
    #[inline]
    pub fn read<'a>(&'a mut self, line: LineContent<'a>) -> Result<Review<'a>, NoReview> {
        self.texts.of(self.parser.parse(NoReview::held(line)?))
    }

    /// Passes on the review in each element of the list of a line, with the element as a line, or the reason why
    /// it has none. A line without such a list is passed on itself.
    pub fn each<E>(
        &mut self,
        line: Line<'_>,
        mut visit: impl FnMut(Line<'_>, Result<Review<'_>, NoReview>) -> Result<(), E>,
    ) -> Result<(), E> {
        let bytes = match NoReview::held(line.content) {
            Ok(bytes) => bytes,
            Err(reason) => return visit(line, Err(reason)),
        };
        let (texts, mut visited) = (&mut self.texts, Ok(()));
        self.parser.each(bytes, &mut |element, entry| {
            if visited.is_ok() {
                let offset = line.offset + element.start as u64;
                let element = Line { offset, content: LineContent::Bytes(&bytes[element]) };
                visited = visit(element, texts.of(entry));
            }
        });
        visited
    }

    /// Returns the review in a record of CSV, or the reason why it has none. A header that is
    /// repeated counts as a blank line.
    pub fn read_record<'a>(
        &'a mut self,
        record: LineContent<'a>,
        columns: &Columns,
    ) -> Result<Review<'a>, NoReview> {
        let record = NoReview::held(record)?;
        if columns.is_header(record) {
            return Err(NoReview::Blank);
        }
        self.texts.of(self.parser.parse_record(record, columns))
    }

    /// Returns the review in the columns of a table, or the reason why it has none.
    pub fn read_row<'a>(
        &'a mut self,
        text: Option<&'a [u8]>,
        rating: RatingValue<'_>,
    ) -> Result<Review<'a>, NoReview> {
        self.texts.of(self.parser.row(text, rating))
    }

    /// The parser, which has found values that are no ratings, other labels, and bytes that are not UTF-8.
    pub fn parser(&self) -> &ReviewParser {
        &self.parser
    }
}

impl Texts {
    #[inline(always)]
    fn of<'a>(&'a mut self, entry: Result<Entry<'a>, Reject>) -> Result<Review<'a>, NoReview> {
        let Entry { text: written, rating, label } = entry.map_err(NoReview::Rejected)?;
        let rating = rating.map_err(NoReview::Rejected)?;
        match self {
            Self::Cleaned { cleaner, text } => {
                text.clear();
                if cleaner.clean(written, text) {
                    Ok(Review { text, rating, label })
                } else {
                    Err(NoReview::EmptyText)
                }
            }
            Self::AsWritten if written.trim().is_empty() => Err(NoReview::EmptyText),
            Self::AsWritten => Ok(Review { text: written.as_bytes(), rating, label }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cleaned_or_as_they_are_written() {
        let line = |text: &str| format!("{{\"reviewText\": \"{text}\", \"overall\": 5}}").into_bytes();
        let (mut cleaned, mut as_written) = (
            CleanedReviews::of(Format::default(), Rules::Letters),
            CleanedReviews::as_written(Format::default()),
        );
        let text = |reviews: &mut CleanedReviews, text: &str| {
            reviews
                .read(LineContent::Bytes(&line(text)))
                .map(|review| String::from_utf8_lossy(review.text).into_owned())
        };
        assert_eq!(text(&mut cleaned, "It's <br/> Good!").unwrap(), "it's good");
        assert_eq!(text(&mut as_written, "It's <br/> Good!").unwrap(), "It's <br/> Good!");
        assert_eq!(
            [text(&mut cleaned, "!!"), text(&mut as_written, " \\n\u{A0}")],
            [const { Err(NoReview::EmptyText) }; 2]
        );
        assert_eq!(text(&mut as_written, "!!").unwrap(), "!!");
    }
}
