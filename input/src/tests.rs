use std::io::Write;

use ::tests::compressed::{bgzf, bzip2, gzip};
use proptest::prelude::*;

use super::*;

const ALL: [Compression; 3] = [Compression::Gzip, Compression::Bzip2, Compression::Zstd];

fn compressed(by: Compression, content: &[u8]) -> Vec<u8> {
    match by {
        Compression::Gzip => gzip(content),
        Compression::Bzip2 => bzip2(content),
        Compression::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            encoder.include_checksum(true).unwrap();
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
    }
}

fn read(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content).unwrap();
    let mut bytes = Vec::new();
    open(file.path())?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn refused(content: &[u8]) -> String {
    let error = read(content).unwrap_err();
    damage(&error).unwrap_or_else(|| panic!("{error:?} is no damage")).to_string()
}

#[test]
fn a_plain_file_is_read_as_it_is() {
    for content in [&b""[..], b"B", b"BZhello", b"BZh9 {", b"\x1f", b"{\"a\": 1}\n"] {
        assert_eq!(read(content).unwrap(), content);
    }
}

#[test]
fn a_file_that_is_cut_off_is_named_wherever_it_ends() {
    let content = b"some reviews, ".repeat(40);
    for by in ALL {
        let whole = compressed(by, &content);
        let two = [&whole[..], &whole[..]].concat();
        // With fewer bytes it is not seen to be compressed.
        for end in MAGIC_BYTES..whole.len() {
            let message = refused(&whole[..end]);
            let expected = format!("the {} member at byte 0 is cut off at byte {end}, the end", by.name());
            assert!(message.starts_with(&expected), "{message}");
        }
        for end in whole.len() + MAGIC_BYTES..two.len() {
            let message = refused(&two[..end]);
            let expected =
                format!("the {} member at byte {} is cut off at byte {end},", by.name(), whole.len());
            assert!(message.starts_with(&expected), "{message}");
        }
    }
}

#[test]
fn what_stands_behind_the_members_is_named() {
    for by in ALL {
        let whole = compressed(by, b"good\n");
        for garbage in [&b"\0"[..], b"{\"a\": 1}\n", &whole[..1]] {
            let message = refused(&[&whole, garbage].concat());
            let place = format!(
                "bytes that are no {} stand behind its members, from byte {}",
                by.name(),
                whole.len()
            );
            assert!(message.starts_with(&place), "{message}");
        }
    }
}

#[test]
fn a_flipped_bit_never_gives_other_bytes() {
    let content = b"some reviews, some more reviews".repeat(9);
    for by in ALL {
        let whole = compressed(by, &content);
        for at in 0..8 * whole.len() {
            let mut flipped = whole.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            match read(&flipped) {
                // In the header are bits that say nothing of the content; and a file whose magic is gone is plain.
                Ok(bytes) => assert!(bytes == content || bytes == flipped, "{by:?}, bit {at}"),
                Err(error) => assert!(damage(&error).is_some(), "{by:?}, bit {at}: {error:?}"),
            }
        }
    }
}

#[test]
fn a_zstd_frame_to_skip_is_skipped() {
    let skipped = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc";
    let content = [&skipped[..], &compressed(Compression::Zstd, b"good")].concat();
    assert_eq!(read(&content).unwrap(), b"good");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn members_are_read_one_behind_the_other(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 1..6),
        by in prop::sample::select(ALL.to_vec()),
        piece in 1..300_usize,
    ) {
        let file: Vec<u8> = contents.iter().flat_map(|content| compressed(by, content)).collect();
        let mut members = Members::of(Source::of(Trickle(&file, piece)), by);
        let mut bytes = Vec::new();
        members.read_to_end(&mut bytes).unwrap();
        prop_assert_eq!(bytes, contents.concat());
    }
}

/// A reader that gives few bytes at a time.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.1);
        self.0.read(&mut buffer[..most])
    }
}

fn file(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

/// Contents of no, little and much information, larger than a block of zstd and than what is searched at once.
fn contents() -> Vec<Vec<u8>> {
    let mut number = 1_u64;
    let mut noise = |bytes: usize| -> Vec<u8> {
        let next = |_| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (number >> 56) as u8
        };
        (0..bytes).map(next).collect()
    };
    vec![noise(300_000), b"a".repeat(500_000), noise(10), b"some reviews".repeat(9_000), noise(900_000)]
}

#[test]
fn the_end_of_a_member_is_told_where_its_format_has_it() {
    let zstd = |content: &[u8]| compressed(Compression::Zstd, content);
    let skipped = |content: &[u8]| [b"\x5f\x2a\x4d\x18\x03\x00\x00\x00abc", &zstd(content)[..]].concat();
    let small: Vec<_> =
        contents().iter().map(|content| content[..content.len().min(60_000)].to_vec()).collect();
    let cases: [(Compression, Vec<Vec<u8>>); 4] = [
        (Compression::Gzip, small.iter().chain([&Vec::new()]).map(|content| bgzf(content)).collect()),
        (Compression::Bzip2, contents().iter().map(|content| bzip2(content)).collect()),
        (Compression::Zstd, contents().iter().chain([&Vec::new()]).map(|content| zstd(content)).collect()),
        (Compression::Zstd, contents().iter().map(|content| skipped(content)).collect()),
    ];
    for (by, members) in cases {
        let file = file(&members.concat());
        let (mut at, mut expected) = (0, 0);
        for (number, member) in members.iter().enumerate() {
            expected += member.len() as u64;
            let mut end = end_of_member(&file, by, at).unwrap();
            if by == Compression::Bzip2 && number + 1 == members.len() {
                assert_eq!(end, None, "only the next stream tells where one ends");
                continue;
            }
            if member.starts_with(b"\x5f") {
                assert_eq!(end, Some(at + 11));
                end = end_of_member(&file, by, at + 11).unwrap();
            }
            assert_eq!(end, Some(expected), "{by:?}, member {number}");
            at = expected;
        }
    }
    assert_eq!(end_of_member(&file(&gzip(b"a review")), Compression::Gzip, 0).unwrap(), None);
}

#[test]
fn what_only_looks_like_the_beginning_of_a_stream_ends_none() {
    let stream = bzip2(b"a review");
    for magic in [&b"BZh91AY&SY"[..], b"1AY&SY", b"\x17\x72\x45\x38\x50\x90\0\0\0\0BZh01AY&SY"] {
        let file = file(&[&stream[..], b"between", magic, &stream].concat());
        assert_eq!(end_of_member(&file, Compression::Bzip2, 0).unwrap(), None, "{}", magic.escape_ascii());
    }
}

proptest! {
    #[test]
    fn an_end_stands_behind_its_beginning_whatever_the_bytes(
        magic in prop::sample::select(vec![
            &b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0"[..], b"\x1f\x8b\x08\xff", b"\x28\xb5\x2f\xfd",
            b"\x5a\x2a\x4d\x18", b"BZh91AY&SY",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..300),
        by in prop::sample::select(ALL.to_vec()),
    ) {
        let end = end_of_member(&file(&[magic, &rest].concat()), by, 0).unwrap();
        prop_assert!(end.is_none_or(|end| end > 0));
    }
}
