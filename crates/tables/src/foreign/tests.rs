//! Files that declare more than they have, or what the library would read differently.

use std::io::Write;

use parquet::basic::Encoding;
use parquet::column::page::Page as Content;

use super::pages::{Page, check_counts, chunk_memory};
use super::scan::{NESTING_MAX, Scan};
use super::*;

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// A file whose footer is a schema of this many nested groups, behind `before`, with `children` before their number.
fn spelt(n_groups: usize, before: &[u8], children: &[u8]) -> File {
    let mut footer = [before, &[0xfc]].concat();
    footer.extend(varint(n_groups as u64 + 1));
    (0..n_groups).for_each(|_| {
        footer.extend([&[0x48, 0x01, b'g'], children, &[0x02, 0x00]].concat());
    });
    footer.extend([0x15, 0x0c, 0x38, 0x01, b'c', 0x00, 0x00]);
    of(&[&footer[..], &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat())
}

/// As every program writes it.
fn nested(n_groups: usize) -> File {
    spelt(n_groups, &[0x15, 0x02, 0x19], &[0x15])
}

#[test]
fn metadata_that_the_library_reads_differently_are_refused() {
    let long = |number: u64, kind| [&[kind], &varint(2 * number)[..]].concat();
    let version = &[0x15, 0x02][..];
    let found = |n_groups, before: &[u8], children: &[u8]| {
        check_footer(&spelt(n_groups, before, children), 1 << 20)
            .unwrap()
            .map_err(|excess| excess.to_string())
    };
    assert_eq!(found(100, &[version, &long(2, 0x09)].concat(), &long(5, 0x05)), Ok(()));
    let deep = "found a schema of 101 or more nested groups, expected at most 100; write its columns outside of these groups";
    assert_eq!(found(101, &[version, &long(2, 0x09)].concat(), &long(5, 0x05)), Err(deep.to_owned()));
    let expected =
        "found metadata of another structure, expected that of the Parquet format; fetch the file again";
    for (what, before, children) in [
        ("a set", [version, &[0x1a]].concat(), vec![0x15]),
        ("field 2 + 2^16", [version, &long(65_538, 0x09)].concat(), vec![0x15]),
        ("a version of bytes", vec![0x18, 0x02, 0x19], vec![0x15]),
        ("key and value before the schema", [version, &[0x49, 0x0c], &long(2, 0x09)].concat(), vec![0x15]),
        ("a number of children of 64 bits", [version, &[0x19]].concat(), vec![0x16]),
        ("field 5 + 2^16", [version, &[0x19]].concat(), long(65_541, 0x05)),
        ("field 5 - 2^16", [version, &[0x19]].concat(), [&[0x05], &varint(2 * 65_531 - 1)[..]].concat()),
        // A logical type that is passed as 1 byte, and read as a decimal whose scale is that byte.
        (
            "a scale of bytes",
            [version, &[0x19]].concat(),
            vec![0x6c, 0x5c, 0x18, 0x00, 0x00, 0x00, 0x05, 0x0a],
        ),
    ] {
        assert_eq!(found(10_000, &before, &children), Err(expected.to_owned()), "{what}");
    }
    // A number of children, 2³² + 1, of which the library takes 32 bits.
    let large = [&[0x15], &varint((1 << 33) + 2)[..], &[0x00]].concat();
    assert_eq!(found(10, &[version, &[0x19]].concat(), &large), Err(expected.to_owned()));
}

#[test]
fn page_headers_that_the_library_reads_differently_are_refused() {
    let memory = |headers: &[u8], bytes| {
        let found = chunk_memory(&of(headers), 0, bytes, 1024).unwrap();
        found.map(|memory| memory.bytes).map_err(|excess| excess.to_string())
    };
    let size = |number: u64| varint(2 * number);
    // A data page of 1 GiB that is stored as no bytes.
    let page = |kinds: [u8; 2], decoded: u64, stored: u64| {
        [&[0x15, 0x00, 0x10 | kinds[0]], &size(decoded)[..], &[0x10 | kinds[1]], &size(stored), &[0x00]]
            .concat()
    };
    assert_eq!(memory(&page([5, 5], 1 << 30, 0), 100), Ok(1 << 30));
    let expected =
        "found a page header of another structure, expected that of the Parquet format; fetch the file again";
    for (what, header) in [
        ("a size of 64 bits", page([6, 5], 1 << 30, 0)),
        ("another size of 64 bits", page([5, 6], 1 << 30, 0)),
        ("a size that is truncated", page([5, 5], (1 << 32) + 1, 0)),
        ("hostile sizes", page([5, 5], u64::MAX >> 1, u64::MAX >> 1)),
        (
            "field 2 + 2^16",
            [&[0x15, 0x00, 0x05], &size(65_538)[..], &size(1 << 30), &[0x15, 0x00, 0x00]].concat(),
        ),
    ] {
        assert_eq!(memory(&header, 100), Err(expected.to_owned()), "{what}");
    }
    // A dictionary, of which the library reads the type, the sizes, and then a structure with the number of values.
    let dictionary = |kind: u8, decoded: u64, n_entries: u64| {
        let most = page([5, 5], decoded, 0);
        [&most[..most.len() - 1], &[0x4c, 0x10 | kind], &size(n_entries), &[0x15, 0x00, 0x00, 0x00]].concat()
    };
    let most = i32::MAX as u64;
    assert_eq!(memory(&dictionary(5, most, most), u64::MAX), Ok(34 * most));
    assert_eq!(memory(&dictionary(5, most, 1 << 59), 100), Err(expected.to_owned()));
    assert_eq!(memory(&dictionary(6, most, 1), 100), Err(expected.to_owned()));
    // The library reads the header to its end, beyond the chunk.
    assert_eq!(memory(&page([5, 5], 1 << 30, 0), 1), Ok(1 << 30));
}

#[test]
fn nested_groups_and_a_large_footer_are_refused_before_they_are_parsed() {
    assert!(check_footer(&nested(100), 1 << 20).unwrap().is_ok());
    let deep = check_footer(&nested(10_000), 1 << 20).unwrap().unwrap_err();
    let expected = "found a schema of 101 or more nested groups, expected at most 100; write its columns outside of these groups";
    assert_eq!(deep.to_string(), expected);
    let large = check_footer(&nested(10_000), 1000).unwrap().unwrap_err();
    let expected = "found metadata of 60013 bytes, expected at most 1000; write the file with fewer row groups, or raise \
                    --memory of sentimill";
    assert_eq!(large.to_string(), expected);
}

#[test]
fn any_bytes_are_scanned_without_a_panic() {
    let mut bytes = [0_u8; 64];
    for seed in 0..20_000_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        bytes.fill_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        });
        let _ = Page::of(&bytes);
        let mut found = Ok(());
        let _ = Scan(&bytes).schema(&mut found);
        let _ = Scan(&bytes).skip(bytes[0] & 0xf, NESTING_MAX);
    }
}

/// A header of a data page of the first or second version, in the order of the fields that the library reads.
fn data_page(version: u8, n_values: u64, encoding: u64, decoded: u64) -> Vec<u8> {
    let field = |number: u64| [&[0x15][..], &varint(2 * number)].concat();
    let (kind, head) = if version == 1 { (0, 0x2c) } else { (3, 0x5c) };
    let values = match version {
        1 => [field(n_values), field(encoding), field(3), field(3)].concat(),
        _ => [field(n_values), field(0), field(n_values), field(encoding), field(0), field(0)].concat(),
    };
    [field(kind), field(decoded), field(0), vec![head], values, vec![0, 0]].concat()
}

#[test]
fn lengths_of_delta_encodings_count_as_memory() {
    let memory = |pages: &[u8]| chunk_memory(&of(pages), 0, u64::MAX, 1024).unwrap().unwrap();
    let most = i32::MAX as u64;
    for version in [1, 2] {
        for encoding in [6, 7] {
            let found = memory(&data_page(version, most, encoding, 100)).bytes;
            assert_eq!(found, 100 + 16 * most, "{version} {encoding}");
        }
        for encoding in [0, 5, 8, 9] {
            assert_eq!(memory(&data_page(version, most, encoding, 100)).bytes, 100, "{version} {encoding}");
        }
    }
}

#[test]
fn rows_that_are_read_at_once_hold_bounded_memory() {
    let rows = |pages: &[u8]| chunk_memory(&of(pages), 0, u64::MAX, 1024).unwrap().unwrap().rows_max;
    let mib = 1 << 20;
    // As most programs write them.
    assert_eq!(rows(&data_page(1, 5000, 0, mib).repeat(100)), 1024);
    // One value per page.
    assert_eq!(rows(&data_page(1, 1, 0, mib).repeat(100)), 16);
    assert_eq!(rows(&data_page(2, 1, 0, 100 * mib).repeat(100)), 1);
    assert_eq!(rows(&[data_page(1, 1000, 0, mib), data_page(1, 1, 0, 8 * mib)].concat().repeat(9)), 2);
    // Each value repeats the one before it.
    assert_eq!(rows(&data_page(1, 5000, 7, mib)), 16);
    assert_eq!(rows(&data_page(1, 5000, 7, 1 << 10)), 1024);
    // Pages without values hold nothing.
    assert_eq!(rows(&data_page(1, 0, 0, 100 * mib).repeat(100)), 1024);
}

#[test]
fn a_page_with_more_lengths_than_values_is_refused() {
    let lengths = |n: u64| {
        let blocks = n.saturating_sub(1).div_ceil(128) as usize;
        // Blocks of 128 lengths in 4 parts, without bits.
        [&varint(128)[..], &[4], &varint(n), &[0], &[0, 0, 0, 0, 0].repeat(blocks)].concat()
    };
    let of_version = |version, encoding, n_values, levels: [&[u8]; 2], values: &[u8]| {
        let buf = [levels[0], levels[1], values].concat().into();
        match version {
            1 => Content::DataPage {
                buf,
                num_values: n_values,
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            },
            _ => Content::DataPageV2 {
                buf,
                num_values: n_values,
                encoding,
                num_nulls: 0,
                num_rows: n_values,
                def_levels_byte_len: levels[1].len() as u32,
                rep_levels_byte_len: levels[0].len() as u32,
                is_compressed: false,
                statistics: None,
            },
        }
    };
    let (one, two) = (Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY);
    let level: &[u8] = &[2, 0, 0, 0, 0x03, 0x01];
    for (version, levels, maxima) in [
        (1, [&[][..], &[]], [0, 0]),
        (1, [&[], level], [1, 0]),
        (1, [level, level], [2, 1]),
        (2, [level, level], [1, 1]),
    ] {
        let found = |encoding, n_values, values: &[u8]| {
            check_counts(&of_version(version, encoding, n_values, levels, values), maxima)
                .map_err(|error| error.to_string())
        };
        for n in [0, 1, 2, 128, 129, 1000] {
            assert_eq!(found(one, n, &lengths(n.into())), Ok(()), "{n}");
            assert_eq!(found(two, n, &[lengths(n.into()), lengths(n.into())].concat()), Ok(()), "{n}");
        }
        let refused = "Parquet error: found 2147483648 lengths in a page of 1000 values";
        assert_eq!(found(one, 1000, &lengths(1 << 31)[..20]), Err(refused.to_owned()));
        let values = [lengths(1000), lengths(1 << 31)[..20].to_vec()].concat();
        assert_eq!(found(two, 1000, &values), Err(refused.to_owned()));
        for cut in 0..lengths(1000).len() {
            assert!(found(one, 1000, &lengths(1000)[..cut]).is_err(), "{cut}");
        }
    }
}
