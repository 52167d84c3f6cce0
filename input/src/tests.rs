use std::io::Write;

use proptest::prelude::*;

use super::*;

const ALL: [Compression; 3] = [Compression::Gzip, Compression::Bzip2, Compression::Zstd];

fn compressed(by: Compression, content: &[u8]) -> Vec<u8> {
    match by {
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
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
