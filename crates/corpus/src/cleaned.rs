//! Converts a raw line into the cleaned text and rating of its review, or into the reason why there is none.

use crate::classes::UnratedClasses;
use crate::clean::Cleaner;
use crate::csv::Columns;
use crate::format::Format;
use crate::ledger::Fate;
use crate::lines::LineContent;
use crate::review::{Rating, RatingValue, Review, ReviewParser};

/// Reads lines one by one and reuses its buffers.
#[derive(Debug)]
pub struct CleanedReviews {
    parser: ReviewParser,
    cleaner: Cleaner,
    text: Vec<u8>,
}

impl CleanedReviews {
    /// Creates a reader of lines of this format.
    pub fn of(format: Format) -> Self {
        Self { parser: ReviewParser::new(format), cleaner: Cleaner::default(), text: Vec::new() }
    }

    /// Returns the cleaned text and the rating of a line, or the reason why it has none.
    pub fn read(&mut self, line: LineContent<'_>) -> Result<(&[u8], Rating), Fate> {
        let review = self.parser.parse(Fate::held(line)?).map_err(Fate::Rejected)?;
        cleaned(&mut self.cleaner, review, &mut self.text)
    }

    /// Returns the cleaned text and the rating of a record of CSV, or the reason why it has none. A header that is
    /// repeated counts as a blank line.
    pub fn read_record(
        &mut self,
        record: LineContent<'_>,
        columns: &Columns,
    ) -> Result<(&[u8], Rating), Fate> {
        let record = Fate::held(record)?;
        if columns.is_header(record) {
            return Err(Fate::Blank);
        }
        let review = self.parser.parse_record(record, columns).map_err(Fate::Rejected)?;
        cleaned(&mut self.cleaner, review, &mut self.text)
    }

    /// Returns the cleaned text and the rating of a review from the columns of a table, or the reason why it
    /// has none.
    pub fn read_row(
        &mut self,
        text: Option<&[u8]>,
        rating: RatingValue<'_>,
    ) -> Result<(&[u8], Rating), Fate> {
        let review = self.parser.row(text, rating).map_err(Fate::Rejected)?;
        cleaned(&mut self.cleaner, review, &mut self.text)
    }

    /// The classes without a rating of the lines read so far.
    pub fn unrated_classes(&self) -> UnratedClasses {
        self.parser.unrated_classes()
    }

    /// Number of lines and rows so far with bytes that are not UTF-8.
    pub fn invalid_utf8(&self) -> u64 {
        self.parser.invalid_utf8()
    }
}

fn cleaned<'a>(
    cleaner: &mut Cleaner,
    review: Review<'_>,
    text: &'a mut Vec<u8>,
) -> Result<(&'a [u8], Rating), Fate> {
    text.clear();
    if cleaner.clean(review.text, text) { Ok((text, review.rating)) } else { Err(Fate::EmptyText) }
}
