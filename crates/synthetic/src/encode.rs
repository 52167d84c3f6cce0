//! Converts a plain text into the form in which a web shop stores it (references, tags, typographic quotes),
//! and this form into a JSON string or a Python literal. Cleaning restores the same words from all forms.

use std::fmt::Write;

use crate::random::Random;

/// A variant of a text that cleans to the same words: in upper case, in lower case, or with other
/// punctuation.
pub(crate) fn respelled(text: &str, random: &mut Random) -> String {
    match random.below(5) {
        0 => text.to_ascii_uppercase(),
        1 => text.to_ascii_lowercase(),
        2 => text.replace(". ", "!!! ").replace(", ", " - "),
        3 => format!("  {}...", text.replace(' ', "  ")),
        _ => text.to_owned(),
    }
}

/// Writes the text in the form in which a web shop stores it.
pub(crate) fn write_marked_up(raw: &mut String, text: &str, random: &mut Random) {
    let apostrophe = ["'", "'", "'", "'", "\u{2019}", "&#39;", "&rsquo;"][random.below(7)];
    let quote = ["\"", "\"", "&#34;", "&quot;", "\u{201c}"][random.below(5)];
    let line_break = ["\n", "\n\n", "<br />", "<br /><br />", "</p>\n<p>", "&nbsp;\r\n"][random.below(6)];
    let ampersand = random.pick(&["&", "&amp;", "&AMP;"]);
    let e_acute = random.pick(&["é", "&eacute;", "&#233;", "&#xE9;"]);
    let less = random.pick(&["<", "&lt;"]);
    let (before, after) = match random.below(150) {
        0 => ("<a href=\"/dp/B000DEMO00?ref=text&x=1\" class='link'>", "</a>"),
        1 => ("<video id=\"review-clip\" src=\"https://clips.example/1.mp4\" controls></video>&nbsp;", ""),
        2 => ("<B>", "</B><!-- edited -->"),
        _ => ("", ""),
    };
    raw.push_str(before);
    for character in text.chars() {
        match character {
            '\'' => raw.push_str(apostrophe),
            '"' => raw.push_str(quote),
            '\n' => raw.push_str(line_break),
            '&' => raw.push_str(ampersand),
            'é' => raw.push_str(e_acute),
            '<' => raw.push_str(less),
            plain => raw.push(plain),
        }
    }
    raw.push_str(after);
}

/// How the writer of a JSON file treats characters beyond ASCII.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NonAscii {
    /// As UTF-8.
    Kept,
    /// As `\u` escapes, with surrogate pairs beyond U+FFFF.
    Escaped,
}

/// Writes a JSON string with its quotes.
pub(crate) fn write_json(json: &mut String, text: &str, non_ascii: NonAscii) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            ' '..='~' => json.push(character),
            _ if non_ascii == NonAscii::Kept && character >= '\u{a0}' => json.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(json, "\\u{unit:04x}");
                }
            }
        }
    }
    json.push('"');
}

/// Writes a Python literal as `repr` does: in double quotes if the text contains only single ones.
pub(crate) fn write_python(literal: &mut String, text: &str, non_ascii: NonAscii) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    literal.push(quote);
    for character in text.chars() {
        match (character, character as u32) {
            ('\n', _) => literal.push_str("\\n"),
            ('\r', _) => literal.push_str("\\r"),
            ('\\', _) => literal.push_str("\\\\"),
            _ if character == quote => literal.extend(['\\', quote]),
            (' '..='~', _) => literal.push(character),
            _ if non_ascii == NonAscii::Kept && character >= '\u{a0}' => literal.push(character),
            (_, code @ 0..=0xff) => drop(write!(literal, "\\x{code:02x}")),
            (_, code @ 0x100..=0xffff) => drop(write!(literal, "\\u{code:04x}")),
            (_, code) => drop(write!(literal, "\\U{code:08x}")),
        }
    }
    literal.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "It's \"5\\5\",\r\n\tcafé \u{85} σας 👍🏽";

    #[test]
    fn json_survives_the_round_trip() {
        for non_ascii in [NonAscii::Kept, NonAscii::Escaped] {
            let mut json = String::new();
            write_json(&mut json, TEXT, non_ascii);
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), TEXT);
            assert_eq!(json.is_ascii(), non_ascii == NonAscii::Escaped);
        }
    }

    #[test]
    fn python_literals_equal_those_of_repr() {
        for (text, non_ascii, expected) in [
            ("it's", NonAscii::Kept, r#""it's""#),
            ("it's \"it\"", NonAscii::Kept, r#"'it\'s "it"'"#),
            ("a\\b\nc", NonAscii::Kept, r"'a\\b\nc'"),
            ("café ς 👍", NonAscii::Kept, "'café ς 👍'"),
            ("café ς 👍", NonAscii::Escaped, r"'caf\xe9 \u03c2 \U0001f44d'"),
        ] {
            let mut literal = String::new();
            write_python(&mut literal, text, non_ascii);
            assert_eq!(literal, expected);
        }
    }
}
