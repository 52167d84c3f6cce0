//! Many bad lines → what is probably the matter, and what to do.

use corpus::ledger::MapperCounts;
use corpus::lines::Content;
use corpus::review::Fields;

/// So many bytes of the first line are looked at.
const BEGINNING_BYTES: usize = 8;

/// The first bytes of compressed files.
const MAGIC: [(&[u8], &str); 4] =
    [(b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ", "xz")];

/// What of the input's first line a guess is made from.
pub(crate) fn beginning(line: Content<'_>) -> &[u8] {
    match line {
        Content::Bytes(bytes) => &bytes[..bytes.len().min(BEGINNING_BYTES)],
        Content::TooLong { .. } => &[],
    }
}

/// Guesses from the input's first bytes and from which reason is the most frequent.
pub(crate) fn likely(counts: &MapperCounts, beginning: &[u8], fields: &Fields) -> String {
    if let Some((_, name)) = MAGIC.iter().find(|(magic, _)| beginning.starts_with(magic)) {
        return format!("the input is compressed by {name}: unpack it before the mapper");
    }
    if beginning.trim_ascii_start().starts_with(b"[") {
        return "the input looks like one JSON array: write one object a line".to_owned();
    }
    let most = counts.bad_line.max(counts.line_too_long).max(counts.no_text).max(counts.bad_rating);
    if counts.no_text == most {
        format!("most lines have no text in the field {:?}: name it by --text-field", fields.text)
    } else if counts.bad_rating == most {
        format!(
            "most lines have no rating from 1 to 5 in the field {:?}: name it by --rating-field",
            fields.rating
        )
    } else if counts.line_too_long == most {
        "most lines are too long: does each line hold one review?".to_owned()
    } else {
        "most lines are not in the format json: does each line hold one JSON object?".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likely_for(counts: MapperCounts, beginning: &[u8]) -> String {
        likely(&counts, beginning, &Fields::default())
    }

    #[test]
    fn the_cause_is_named_from_what_is_seen() {
        let bad_lines = MapperCounts { bad_line: 9, ..MapperCounts::default() };
        assert!(likely_for(bad_lines, b"\x1f\x8b\x08").contains("gzip"));
        assert!(likely_for(bad_lines, b" [{\"a\"").contains("JSON array"));
        assert!(likely_for(bad_lines, b"a,b").contains("format json"));
        let no_text = MapperCounts { no_text: 9, ..bad_lines };
        assert!(likely_for(no_text, b"{").contains("\"reviewText\""));
        let bad_rating = MapperCounts { bad_rating: 10, ..no_text };
        assert!(likely_for(bad_rating, b"{").contains("\"overall\""));
    }
}
