//! Suggests the probable cause of many bad lines, and a remedy.

use crate::format::{Format, FormatName};
use crate::ledger::MapperCounts;
use crate::lines::LineContent;

/// Number of bytes of the first line that the guess examines.
const BEGINNING_BYTES: usize = 16;

/// The beginning of the input's first line, from which the cause is guessed.
pub fn beginning(line: LineContent<'_>) -> &[u8] {
    match line {
        LineContent::Bytes(bytes) => &bytes[..bytes.len().min(BEGINNING_BYTES)],
        LineContent::TooLong { .. } => &[],
    }
}

/// Guesses the cause from the beginning of the first line and from the most frequent reason for rejection.
pub fn likely(counts: &MapperCounts, beginning: &[u8], format: &Format) -> String {
    if counts.lines == 0 {
        return "check that what writes it has not failed".to_owned();
    }
    if counts.bad() == 0 {
        return "check that it is the right input".to_owned();
    }
    let most = counts.bad_line.max(counts.line_too_long).max(counts.no_text).max(counts.bad_rating);
    if counts.bad_line == most && counts.no_text < most && counts.bad_rating < most {
        return of_another_format(beginning, format);
    }
    match format {
        Format::Json(fields) if counts.no_text == most => {
            format!("most lines have no text in the field {:?}: name it by --text-field", fields.text)
        }
        Format::Json(fields) if counts.bad_rating == most => {
            format!(
                "most lines have no rating from 1 to 5 in the field {:?}: name it by --rating-field",
                fields.rating
            )
        }
        Format::PolarityCsv { ratings, .. } | Format::FastText { ratings } if counts.bad_rating == most => {
            format!(
                "most lines are of classes without a rating (those of {ratings} have one): name them by --class-ratings"
            )
        }
        _ => "most lines are too long: does each line hold one review?".to_owned(),
    }
}

fn of_another_format(beginning: &[u8], format: &Format) -> String {
    let name = format.name();
    let beginning = beginning.trim_ascii_start();
    let other = match beginning {
        [b'{', ..] => Some(FormatName::Json),
        [b'"', ..] => Some(FormatName::PolarityCsv),
        _ if beginning.starts_with(b"__label__") => Some(FormatName::FastText),
        _ => None,
    };
    match (other, name) {
        (Some(other), _) if other != name => {
            format!("the input looks like {other}: say so by --format {other}")
        }
        (_, FormatName::Json) if beginning.starts_with(b"[") => {
            "the input looks like one JSON array: write one object a line".to_owned()
        }
        (_, FormatName::Json) => {
            "most lines are not in the format json: does each line hold one JSON object?".to_owned()
        }
        (_, FormatName::PolarityCsv) => {
            "most lines are not in the format polarity-csv: does each line hold a class, a \
            comma and a text, quoted where it holds a comma or a quote?"
                .to_owned()
        }
        (_, FormatName::FastText) => {
            "most lines are not in the format fasttext: does each line begin with __label__?".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likely_for(counts: MapperCounts, beginning: &[u8]) -> String {
        likely(&counts, beginning, &Format::default())
    }

    #[test]
    fn the_cause_is_named_from_what_is_seen() {
        let bad_lines = MapperCounts { lines: 10, bad_line: 9, ..MapperCounts::default() };
        assert!(likely_for(bad_lines, b" [{\"a\"").contains("JSON array"));
        assert!(likely_for(bad_lines, b"a,b").contains("format json"));
        assert!(likely_for(bad_lines, b"\"1\",\"ok\"").contains("--format polarity-csv"));
        assert!(likely_for(bad_lines, b"__label__1 ok").contains("--format fasttext"));
        let no_text = MapperCounts { no_text: 9, ..bad_lines };
        assert!(likely_for(no_text, b"{").contains("\"reviewText\""));
        let bad_rating = MapperCounts { bad_rating: 10, ..no_text };
        assert!(likely_for(bad_rating, b"{").contains("\"overall\""));
        let blank = MapperCounts { lines: 2, blank: 1, empty_text: 1, ..MapperCounts::default() };
        assert!(likely_for(blank, b"").contains("right input"));
        assert!(likely_for(MapperCounts::default(), b"").contains("what writes it"));
    }

    #[test]
    fn classes_without_a_rating_are_the_cause_where_there_are_classes() {
        let format = Format::FastText { ratings: "a=1,b=5".parse().unwrap() };
        let bad_rating = MapperCounts { lines: 9, bad_rating: 9, ..MapperCounts::default() };
        assert!(likely(&bad_rating, b"__label__1", &format).contains("those of a=1,b=5 have one"));
        let bad_line = MapperCounts { lines: 9, bad_line: 9, ..MapperCounts::default() };
        assert!(likely(&bad_line, b"{\"a", &format).contains("--format json"));
        assert!(likely(&bad_line, b"label", &format).contains("__label__"));
    }
}
