//! Sizes as users write them → bytes.

/// Reads a size of memory: bytes, or with KiB, MiB or GiB.
pub fn parse_memory(size: &str) -> Result<usize, String> {
    const LEAST: usize = 1 << 20;
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &size[digits.len()..] {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("expected a number of bytes, or one with KiB, MiB or GiB".to_owned()),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|n| n.checked_mul(unit));
    bytes.filter(|&bytes| bytes >= LEAST).ok_or_else(|| "expected at least 1MiB".to_owned())
}
