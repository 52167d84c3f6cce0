//! A line of a fastText file → its review: `__label__2 great fit`. Labels stand at its head, one space or tab behind each;
//! of several the first counts, and what looks like one further on is text.

use crate::format::ClassRatings;
use crate::review::{Entry, Reject};

const LABEL: &str = "__label__";

/// Reads such lines.
#[derive(Debug)]
pub(crate) struct FastTextParser {
    pub ratings: ClassRatings,
}

impl FastTextParser {
    /// Reads one line without its end.
    pub fn parse<'a>(&self, line: &'a str) -> Result<Entry<'a>, Reject> {
        let (class, mut text) = split_label(line).ok_or(Reject::BadLine)?;
        while let Some((_, after)) = split_label(text) {
            text = after;
        }
        Ok(Entry { text, rating: self.ratings.rating(class) })
    }
}

/// The class of the label that a line begins with, and what follows its space or tab.
fn split_label(line: &str) -> Option<(&str, &str)> {
    let label = line.strip_prefix(LABEL)?;
    Some(label.split_once([' ', '\t']).unwrap_or((label, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_at_the_head_and_the_first_counts() {
        let parser = FastTextParser { ratings: ClassRatings::default() };
        let read =
            |line| parser.parse(line).map(|entry| (entry.text, entry.rating.map(|rating| rating.stars())));
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
}
