//! The order of labels, and the text of a line of fastText's format.

use classifiers::{LABEL_PREFIX, Texts};

/// Texts whose labels have the order of these names.
pub fn in_order_of(names: Vec<&str>, mut texts: Texts) -> Texts {
    let names = names.into_iter().map(str::as_bytes).collect();
    texts.dictionary = std::mem::take(&mut texts.dictionary).with_classes(names);
    texts
}

/// Appends a line without its labels. Returns whether it has a label.
pub fn without_labels(line: &[u8], text: &mut Vec<u8>) -> bool {
    let mut rest = line;
    let mut has_label = false;
    while let Some(at) = find_label(rest) {
        has_label = true;
        text.extend_from_slice(&rest[..at]);
        let end = rest[at..].iter().position(|&byte| is_space(byte));
        rest = end.map_or(&[], |end| &rest[at + end..]);
    }
    text.extend_from_slice(rest);
    has_label
}

/// The labels of a line, without their prefix.
pub fn labels_of(line: &[u8]) -> Vec<&[u8]> {
    let (mut rest, mut labels) = (line, Vec::new());
    while let Some(at) = find_label(rest) {
        let (label, behind) = rest[at..]
            .split_at(rest[at..].iter().position(|&byte| is_space(byte)).unwrap_or(rest.len() - at));
        labels.push(&label[LABEL_PREFIX.len()..]);
        rest = behind;
    }
    labels
}

/// The place of the first word with the prefix of labels.
fn find_label(line: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + line[from..].windows(LABEL_PREFIX.len()).position(|bytes| bytes == LABEL_PREFIX)?;
        let is_label = line.get(at + LABEL_PREFIX.len()).is_some_and(|&byte| !is_space(byte));
        if is_label && (at == 0 || is_space(line[at - 1])) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// White space of the fastText program.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0x0b | 0x0c | 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn text(line: &str) -> String {
        let mut text = Vec::new();
        without_labels(line.as_bytes(), &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn words_with_the_prefix_of_labels_are_no_part_of_the_text() {
        assert_eq!(text("__label__1 good film"), " good film");
        assert_eq!(text("good __label__a\t__label__b film __label__c"), "good \t film ");
        assert_eq!(text("x__label__1 good __label__ film"), "x__label__1 good __label__ film");
        assert_eq!(text("__label__1"), "");
        assert_eq!(labels_of(b"good __label__a\t__label__bc film x__label__d"), [&b"a"[..], b"bc"]);
    }
}
