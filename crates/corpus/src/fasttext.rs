//! Parses a line of a fastText file into a review: `__label__2 great fit`.
//!
//! Labels are at the start of the line, each followed by one space or tab. If there are several labels, the
//! first one is the class. A label after the first word of the text is part of the text. The fastText program, and
//! `ngrams train`, read each word with the prefix as a label, wherever it is. Lines where this differs are counted.

use crate::class_ratings::ClassRatings;
use crate::classes::FoundValues;
use crate::entry::{Entry, Reject};

const LABEL: &str = "__label__";

/// Parser of fastText lines.
#[derive(Debug)]
pub(crate) struct FastTextParser {
    pub ratings: ClassRatings,
    pub unrated: FoundValues,
    /// Lines in which the fastText program reads other labels.
    pub n_other_labels: u64,
}

impl FastTextParser {
    /// Parses one line, passed without its line end.
    pub fn parse<'a>(&mut self, line: &'a str) -> Result<Entry<'a>, Reject> {
        if has_other_labels(line) {
            self.n_other_labels += 1;
        }
        let (class, mut text) = split_label(line).ok_or(Reject::BadLine)?;
        while let Some((_, after)) = split_label(text) {
            text = after;
        }
        let rating = self.ratings.rating(class).ok_or(Reject::BadRating);
        if rating.is_err() {
            self.unrated.count(class);
        }
        Ok(Entry { text, rating, label: None })
    }
}

/// Whether the fastText program reads other labels than the one at the start of a line.
fn has_other_labels(line: &str) -> bool {
    let spaces = [' ', '\t', '\r', '\u{b}', '\u{c}', '\0'];
    let mut labels = line.split(spaces).filter(|word| word.len() > LABEL.len() && word.starts_with(LABEL));
    labels.next().is_some() && (labels.next().is_some() || !line.starts_with(LABEL))
}

/// The class of the label at the start of a line, and the text after its space or tab.
fn split_label(line: &str) -> Option<(&str, &str)> {
    let label = line.strip_prefix(LABEL)?;
    Some(label.split_once([' ', '\t']).unwrap_or((label, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_labels_at_the_start_counts() {
        let mut parser = FastTextParser {
            ratings: ClassRatings::default(),
            unrated: FoundValues::default(),
            n_other_labels: 0,
        };
        let mut read = |line| {
            parser.parse(line).map(|entry| (entry.text, entry.rating.ok().map(|rating| rating.stars())))
        };
        for (line, expected) in [
            ("__label__1 not good", ("not good", Some(1))),
            ("__label__2 __label__1 good", ("good", Some(5))),
            ("__label__2 good __label__1 x", ("good __label__1 x", Some(5))),
            ("__label__2  __label__1 x", (" __label__1 x", Some(5))),
            ("__label__3 x", ("x", None)),
            ("__label__ x", ("x", None)),
            ("__label__1\tnot good", ("not good", Some(1))),
            ("__label__2\t__label__1 good", ("good", Some(5))),
            ("__label__2 \tgood", ("\tgood", Some(5))),
            ("__label__1", ("", Some(1))),
            ("__label__1 ", ("", Some(1))),
        ] {
            assert_eq!(read(line), Ok(expected), "{line}");
        }
        for line in [" __label__1 x", "good", "_label_1 x", "__LABEL__1 x"] {
            assert_eq!(read(line), Err(Reject::BadLine), "{line}");
        }
    }

    #[test]
    fn lines_in_which_the_fasttext_program_reads_other_labels_are_found() {
        for line in
            ["__label__1 good", "__label__1", "good", "__label__1 __label__ x", "__label__1 x__label__2"]
        {
            assert!(!has_other_labels(line), "{line}");
        }
        for line in [
            "__label__1 __label__2 x",
            "__label__1 x\t__label__2",
            "x __label__1",
            " __label__1 x",
            "__label__a, __label__b, x",
        ] {
            assert!(has_other_labels(line), "{line}");
        }
    }
}
