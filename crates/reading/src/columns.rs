//! What the readers of tables have in common: messages about columns, texts from several columns, and rows.

use corpus::entry::RatingValue;
use corpus::format::FieldPath;
use corpus::lines::{LineContent, is_blank};
use corpus::rejects::Content;
use program::exit::Exit;

use crate::entry::RowValue;
use crate::error::Error;
use crate::source::Source;

/// Maximum number of columns listed in an error.
const SHOWN_MAX: usize = 30;
/// Maximum length of a name in a message, in characters.
const NAME_CHARS_MAX: usize = 60;

/// The names of the first columns, for messages.
fn shown<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let cut = |name: &str| match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    };
    let names: Vec<_> = names.map(cut).take(SHOWN_MAX + 1).collect();
    let more = if names.len() > SHOWN_MAX { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(SHOWN_MAX)].join(", "))
}

/// The error of a table that lacks a column.
pub(crate) fn no_column<'a>(
    source: &Source,
    path: &FieldPath,
    names: impl Iterator<Item = &'a str>,
    option: &str,
) -> Error {
    let (column, found) = (path.quoted(), shown(names));
    let why = format!("found no column {column} among {found}; name the right column with {option}");
    source.refused(Exit::BadInput, why)
}

/// The error of a column whose values are not texts or ratings.
pub(crate) fn bad_column(
    source: &Source,
    path: &FieldPath,
    (found, expected): (&str, &str),
    option: &str,
) -> Error {
    let column = path.quoted();
    let why = format!(
        "found {found} in the column {column}, expected {expected}; name the right column with {option}"
    );
    source.refused(Exit::BadInput, why)
}

/// Joins the texts of a row and reuses its memory.
#[derive(Debug, Default)]
pub(crate) struct Joined(Vec<u8>);

impl Joined {
    /// The texts that are not null, joined by a space; `None` if all are null.
    pub fn of<'a>(&'a mut self, texts: impl Iterator<Item = Option<&'a [u8]>>) -> Option<&'a [u8]> {
        let mut texts = texts.flatten();
        let first = texts.next()?;
        let Some(second) = texts.next() else { return Some(first) };
        self.0.clear();
        self.0.extend_from_slice(first);
        for text in [second].into_iter().chain(texts) {
            self.0.push(b' ');
            self.0.extend_from_slice(text);
        }
        Some(&self.0)
    }
}

/// Visits a row, or reports that its text is too long.
pub(crate) fn visit_row<E>(
    (number, values): (u64, &[RowValue<'_>]),
    text: Option<&[u8]>,
    rating: RatingValue<'_>,
    line_bytes_max: usize,
    visit: &mut impl FnMut(u64, Content<'_>, &[RowValue<'_>]) -> Result<(), E>,
) -> Result<(), E> {
    match text {
        Some(text) if text.len() > line_bytes_max => {
            let content = LineContent::TooLong { bytes: text.len() as u64, blank: is_blank(text) };
            visit(number, Content::Line(content), values)
        }
        text => visit(number, Content::Row { text, rating }, values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_in_messages() {
        let long = "é".repeat(2 * NAME_CHARS_MAX);
        assert_eq!(shown([&*long, "b"].into_iter()), format!("{}…, b", "é".repeat(NAME_CHARS_MAX)));
    }
}
