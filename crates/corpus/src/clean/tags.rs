//! Step 2: replaces each tag, `<[A-Za-z/!][^<>]*>`, with a space.

use memchr::{memchr, memchr2};

/// Returns the text without tags, which is either `text` or stored in `untagged`.
pub(super) fn blank<'a>(text: &str, untagged: &'a mut String) -> &'a str {
    untagged.clear();
    let mut rest = text;
    while let Some(at) = memchr(b'<', rest.as_bytes()) {
        let (before, tag) = rest.split_at(at);
        untagged.push_str(before);
        // A `<` ends the candidate that an earlier `<` opened, so no byte is scanned twice.
        let end = memchr2(b'<', b'>', &tag.as_bytes()[1..]).map_or(tag.len(), |at| 1 + at);
        rest = if opens_tag(tag) && tag[end..].starts_with('>') {
            untagged.push(' ');
            &tag[end + 1..]
        } else {
            untagged.push_str(&tag[..end]);
            &tag[end..]
        };
    }
    untagged.push_str(rest);
    untagged
}

fn opens_tag(tag: &str) -> bool {
    tag.as_bytes().get(1).is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'!'))
}
