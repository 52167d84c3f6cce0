//! Recognizes packed input that has no lines, by its first bytes, and returns a remedy.

use crate::Compression;

/// The magic bytes of formats without lines, their names and remedies.
const PACKED: [(&[u8], &str, &str); 3] = [
    (b"\xfd7zXZ", "xz", "unpack it before the mapper"),
    (b"PK\x03\x04", "zip", "unpack it before the mapper"),
    (b"PAR1", "Parquet", "sentimill reads it, the mapper reads lines"),
];

/// The problem with an input that starts like this, and the remedy; `None` if it may contain lines.
pub fn remedy(beginning: &[u8]) -> Option<String> {
    if Compression::of(beginning).is_some() {
        let remedy = "the input is compressed: give it as a file, by --input, or unpack it before the mapper";
        return Some(remedy.to_owned());
    }
    let (_, name, remedy) = PACKED.iter().find(|(magic, ..)| beginning.starts_with(magic))?;
    Some(format!("the input is a file of {name}: {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_without_lines_is_recognized() {
        assert!(remedy(b"\x1f\x8b\x08").unwrap().contains("--input"));
        assert!(remedy(b"PK\x03\x04").unwrap().contains("zip"));
        assert_eq!(remedy(b"{\"a"), None);
    }
}
