//! The first bytes of an input that holds no lines as it is → what to do with it.

use crate::Compression;

/// The first bytes of what cannot be read by lines, its name, and what to do with it.
const PACKED: [(&[u8], &str, &str); 3] = [
    (b"\xfd7zXZ", "xz", "unpack it before the mapper"),
    (b"PK\x03\x04", "zip", "unpack it before the mapper"),
    (b"PAR1", "Parquet", "sentimill reads it, the mapper reads lines"),
];

/// What is the matter with an input that begins like this, and what to do; `None` where it may well hold lines.
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
    fn what_holds_no_lines_is_named() {
        assert!(remedy(b"\x1f\x8b\x08").unwrap().contains("--input"));
        assert!(remedy(b"PK\x03\x04").unwrap().contains("zip"));
        assert_eq!(remedy(b"{\"a"), None);
    }
}
