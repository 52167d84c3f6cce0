//! Words of shell commands, for messages that name a command.

use std::borrow::Cow;

/// A word as a POSIX shell reads it: in single quotes, if it has other characters than those of usual names.
pub fn word(text: &str) -> String {
    String::from_utf8_lossy(&word_of_bytes(text.as_bytes())).into_owned()
}

/// As [`word`], of a path or an argument that may not be UTF-8.
pub fn word_of_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        return Cow::Borrowed(bytes);
    }
    let inner: Vec<&[u8]> = bytes.split(|&byte| byte == b'\'').collect();
    Cow::Owned([b"'", &inner.join(&b"'\\''"[..])[..], b"'"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_other_characters_is_quoted() {
        assert_eq!(
            ["a-b_c./d:1=2,+@%", "", "a b", "it's", "é"].map(word),
            ["a-b_c./d:1=2,+@%", "''", "'a b'", r"'it'\''s'", "'é'"]
        );
        assert_eq!(*word_of_bytes(b"\xff'"), *b"'\xff'\\'''");
    }
}
