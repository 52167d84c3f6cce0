//! Reorders lines, and changes their line ends.

use std::iter;

use synthetic::random::Random;

/// Sorts lines, which each end in LF, as `LC_ALL=C sort` does.
pub fn sorted_as_c(lines: &[u8]) -> Vec<u8> {
    let mut sorted = split(lines);
    // Lines are compared without their LF. `a` must sort before `a` followed by a tab, but a tab is less than
    // LF.
    sorted.sort_unstable_by_key(|line| line.strip_suffix(b"\n").unwrap_or(line));
    sorted.concat()
}

/// The lines in a random order, which depends on the seed.
pub fn shuffled(lines: &[u8], seed: u64) -> Vec<u8> {
    let mut lines = split(lines);
    let mut random = Random::new(seed);
    for end in (1..lines.len()).rev() {
        lines.swap(end, random.below(end + 1));
    }
    lines.concat()
}

/// The records sorted by key, with records of one key in a random order that depends on the seed. Under
/// Hadoop, a reducer gets records in such an order.
pub fn sorted_by_key_only(records: &[u8], seed: u64) -> Vec<u8> {
    let shuffled = shuffled(records, seed);
    let mut records = split(&shuffled);
    records.sort_by_key(|record| record.split(|&byte| byte == b'\t').next());
    records.concat()
}

/// Splits the lines into this number of parts with about equal numbers of lines.
pub fn in_parts(lines: &[u8], parts: usize) -> Vec<Vec<u8>> {
    let lines = split(lines);
    let each = lines.len().div_ceil(parts).max(1);
    let cut = lines.chunks(each).map(<[&[u8]]>::concat);
    cut.chain(iter::repeat(Vec::new())).take(parts).collect()
}

/// The lines with `end` in place of each LF.
pub fn ended_by(lines: &[u8], end: &[u8]) -> Vec<u8> {
    let mut changed = Vec::with_capacity(lines.len());
    for line in split(lines) {
        changed.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
        changed.extend_from_slice(end);
    }
    changed
}

/// The lines one by one, with their LF.
pub fn split(lines: &[u8]) -> Vec<&[u8]> {
    lines.split_inclusive(|&byte| byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::programs::{run, without_hadoop};

    const RECORDS: &[u8] =
        b"b\t0,0,0,0,1\nab\t1,0,0,0,0\na b\t1,0,0,0,0\na\t1,0,0,0,0\nit's\t1,0,0,0,0\nits\t1,0,0,0,0\n\
        \xc3\xa9\t1,0,0,0,0\na\t0,1,0,0,0\nZ\n\na\n";

    #[test]
    fn lines_are_sorted_as_the_sort_program_does() {
        let mut sort = without_hadoop(Path::new("sort"));
        let sorted = run(sort.env("LC_ALL", "C"), RECORDS).succeeded().stdout;
        assert_eq!(sorted_as_c(RECORDS).escape_ascii().to_string(), sorted.escape_ascii().to_string());
    }

    #[test]
    fn a_shuffle_keeps_every_line_and_follows_its_seed() {
        let (one, other) = (shuffled(RECORDS, 1), shuffled(RECORDS, 2));
        assert_ne!(one, other);
        assert_eq!(one, shuffled(RECORDS, 1));
        assert_eq!(sorted_as_c(&one), sorted_as_c(&other));
    }

    #[test]
    fn records_are_sorted_by_key_only() {
        let records = b"b\t1\na\t1\na\t2\na\t3\na b\t1\n";
        let sorted: Vec<_> = (0..20).map(|seed| sorted_by_key_only(records, seed)).collect();
        for sorted in &sorted {
            assert!(sorted.starts_with(b"a\t") && sorted.ends_with(b"a b\t1\nb\t1\n"));
        }
        assert!(sorted.iter().any(|other| *other != sorted[0]));
    }

    #[test]
    fn concatenated_parts_are_the_whole() {
        for parts in [1, 2, 3, 50] {
            let cut = in_parts(RECORDS, parts);
            assert_eq!((cut.len(), cut.concat()), (parts, RECORDS.to_vec()));
        }
    }
}
