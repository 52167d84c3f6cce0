//! The table of the origins of reviews: one row per review, by the hash of its cleaned text, then in the order of the
//! input.

use crate::schema::{Column, Kind, Schema};

/// The column of the hashes.
pub const HASH: usize = 0;
/// The column of the names of files.
pub const FILE: usize = 1;
/// The column of the numbers of lines, records, elements or rows, from 1.
pub const LINE: usize = 2;

/// The entry of the metadata for the files whose numbers are those of elements of JSON arrays; see [`list`].
pub const ELEMENTS: &str = "elements";
/// The entry of the metadata for the files whose numbers are those of rows; see [`list`].
pub const ROWS: &str = "rows";
/// The entry of the metadata for the files that are tables of this dialect; see [`list`].
pub fn of_dialect(delimiter: &str, quote: &str) -> String {
    format!("delimiter {delimiter}, quote {quote}")
}
/// The entry of the metadata for the encoding of the files, if it is not UTF-8.
pub const ENCODING: &str = "encoding";

/// Its columns.
pub fn schema() -> Schema {
    Schema::new(vec![
        Column::new("hash", Kind::U64),
        Column::repeating("file", Kind::Text),
        Column::new("line", Kind::U64),
    ])
}

/// Joins names of files for the metadata: one per line, `\\` in place of a backslash, and `\n` in place of a line break.
pub fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| name.replace('\\', r"\\").replace('\n', r"\n")).collect();
    names.join("\n")
}

/// The names that [`list`] has joined.
pub fn names(list: &str) -> impl Iterator<Item = String> {
    list.split('\n').map(|name| {
        let mut chars = name.chars();
        let next = || match chars.next()? {
            '\\' => Some(if chars.next() == Some('n') { '\n' } else { '\\' }),
            other => Some(other),
        };
        std::iter::from_fn(next).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_survives_the_round_trip() {
        let all = ["a.json", "", r"a\nb", "a\nb", r"\\", "\\\n\n", "\u{e9}"];
        assert_eq!(names(&list(all.into_iter())).collect::<Vec<_>>(), all);
        assert_eq!(list(["one"].into_iter()), "one");
    }
}
