//! Parses sizes in arguments into bytes, and formats bytes as the shortest exact size.

use std::ops::RangeInclusive;

/// Units of a size. Those of one letter are powers of two, as in `sort -S 1G`.
const UNITS: [(&str, u64); 11] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("kB", 1_000),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
    ("", 1),
];

/// The lowest memory limit that a program accepts.
const MEMORY_MIN: u64 = 1 << 20;

/// Parses a size: a whole number of bytes, or one with KiB, MiB, GiB, kB, MB, GB, K, M or G.
pub fn parse_size(size: &str) -> Result<u64, String> {
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = UNITS.iter().find(|(name, _)| *name == &size[digits.len()..]);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let (true, Some((_, unit))) = (is_number, unit) else {
        return Err("expected a size such as 512MiB or 10MB".to_owned());
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit));
    bytes.ok_or_else(|| format!("expected a size of at most {} bytes", u64::MAX))
}

/// Parses a size within these bounds, in bytes.
pub fn parse_size_within(size: &str, bounds: &RangeInclusive<u64>) -> Result<u64, String> {
    let bytes = parse_size(size)?;
    if bounds.contains(&bytes) {
        return Ok(bytes);
    }
    let (least, most) = (shown(*bounds.start()), shown(*bounds.end()));
    Err(match *bounds.end() {
        u64::MAX => format!("expected at least {least}"),
        _ => format!("expected a size from {least} to {most}"),
    })
}

/// Parses a size of memory: 1 MiB or more.
pub fn parse_memory(size: &str) -> Result<usize, String> {
    let bytes = parse_size_within(size, &(MEMORY_MIN..=u64::MAX))?;
    usize::try_from(bytes).map_err(|_| format!("expected a size of at most {} bytes", usize::MAX))
}

/// Returns the shortest text that [`parse_size`] reads as this number of bytes, in binary units.
pub fn shown(bytes: u64) -> String {
    let fits = |(_, unit): &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(*unit);
    let (name, unit) = UNITS[..3].iter().find(fits).copied().unwrap_or(("", 1));
    format!("{}{name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_binary_or_decimal_units() {
        for (size, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("1KiB", 1 << 10),
            ("512MiB", 512 << 20),
            ("2GiB", 2 << 30),
            ("3kB", 3_000),
            ("3KB", 3_000),
            ("10MB", 10_000_000),
            ("1GB", 1_000_000_000),
            ("1K", 1 << 10),
            ("1M", 1 << 20),
            ("1G", 1 << 30),
        ] {
            assert_eq!(parse_size(size), Ok(bytes), "{size}");
        }
    }

    #[test]
    fn a_size_that_cannot_be_read_is_refused_with_an_example() {
        for size in ["", "5XB", "MiB", "1.5GiB", "-1", "+1", "1 MiB", "1mib", "1TiB", "٣MiB"] {
            assert_eq!(
                parse_size(size),
                Err("expected a size such as 512MiB or 10MB".to_owned()),
                "{size:?}"
            );
        }
        for size in ["18446744073709551616", "17179869184GiB"] {
            let expected = "expected a size of at most 18446744073709551615 bytes";
            assert_eq!(parse_size(size), Err(expected.to_owned()), "{size:?}");
        }
    }

    #[test]
    fn a_size_out_of_bounds_is_refused_with_them() {
        assert_eq!(parse_memory("1MiB"), Ok(1 << 20));
        assert_eq!(parse_memory("1MB"), Err("expected at least 1MiB".to_owned()));
        assert_eq!(parse_size_within("4M", &(1..=4 << 20)), Ok(4 << 20));
        let expected = Err("expected a size from 1 to 4MiB".to_owned());
        assert_eq!(parse_size_within("4194305", &(1..=4 << 20)), expected);
        assert_eq!(parse_size_within("0", &(1..=4 << 20)), expected);
    }

    #[test]
    fn a_shown_size_is_exact() {
        for (bytes, size) in [(0, "0"), (1, "1"), (1000, "1000"), (1 << 10, "1KiB"), (3 << 29, "1536MiB")] {
            assert_eq!(shown(bytes), size);
            assert_eq!(parse_size(size), Ok(bytes));
        }
    }
}
