use std::io::Write;

use ::tests::compressed::{bgzf, bzip2, gzip};
use encoding_rs::{BIG5, GBK, ISO_2022_JP, SHIFT_JIS, UTF_16BE, UTF_16LE, WINDOWS_1252};
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
    content_error(&error).unwrap_or_else(|| panic!("{error:?} is no damage")).to_string()
}

#[test]
fn a_plain_file_is_read_unchanged() {
    for content in [&b""[..], b"B", b"BZhello", b"BZh9 {", b"\x1f", b"{\"a\": 1}\n"] {
        assert_eq!(read(content).unwrap(), content);
    }
}

#[test]
fn a_cut_file_is_refused_at_every_length() {
    let content = b"some reviews, ".repeat(40);
    for by in ALL {
        let whole = compressed(by, &content);
        let two = [&whole[..], &whole[..]].concat();
        // A shorter file is not recognized as compressed.
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
fn bytes_after_the_last_member_are_refused() {
    for by in ALL {
        let whole = compressed(by, b"good\n");
        for garbage in [&b"\0"[..], b"{\"a\": 1}\n", &whole[..1]] {
            let message = refused(&[&whole, garbage].concat());
            let place =
                format!("bytes that are not {} follow its members from byte {}", by.name(), whole.len());
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
                // Some header bits do not affect the content. A file with damaged magic bytes is read as
                // plain.
                Ok(bytes) => assert!(bytes == content || bytes == flipped, "{by:?}, bit {at}"),
                Err(error) => assert!(content_error(&error).is_some(), "{by:?}, bit {at}: {error:?}"),
            }
        }
    }
}

#[test]
fn a_skippable_zstd_frame_is_skipped() {
    let skipped = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc";
    let content = [&skipped[..], &compressed(Compression::Zstd, b"good")].concat();
    assert_eq!(read(&content).unwrap(), b"good");
}

fn utf16(text: &str, encoding: &'static Encoding) -> Vec<u8> {
    let bytes = |unit: u16| if encoding == UTF_16LE { unit.to_le_bytes() } else { unit.to_be_bytes() };
    std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(bytes).collect()
}

const UTF_16: [&Encoding; 2] = [UTF_16LE, UTF_16BE];

#[test]
fn utf16_is_decoded_compressed_or_not() {
    let text = "{\"reviewText\": \"schön 😀\", \"overall\": 5}\r\n".repeat(4000);
    for content in UTF_16.map(|encoding| utf16(&text, encoding)) {
        assert_eq!(read(&content).unwrap(), text.as_bytes());
        for by in ALL {
            assert_eq!(read(&compressed(by, &content)).unwrap(), text.as_bytes(), "{by:?}");
        }
    }
    assert_eq!(read(b"\xff\xfe").unwrap(), b"");
    assert_eq!(read(b"\xff").unwrap(), b"\xff");
}

#[test]
fn a_lone_surrogate_is_replaced() {
    let content = b"\xfe\xff\xd8\x00\0a\xdc\x00\xd8\x00\xd8\x00\xdc\x00\xd8\x00";
    assert_eq!(read(content).unwrap(), "\u{fffd}a\u{fffd}\u{fffd}\u{10000}\u{fffd}".as_bytes());
}

#[test]
fn utf16_cut_within_a_unit_is_refused() {
    let message = refused(b"\xff\xfea\0b");
    assert_eq!(message, "the UTF-16 is cut off at byte 5, within a character; fetch the file again");
}

/// An archive of one file, as written by `tar`.
fn tar(name: &str, magic: &[u8]) -> Vec<u8> {
    let mut archive = vec![0; 10 << 10];
    archive[..name.len()].copy_from_slice(name.as_bytes());
    archive[257..257 + magic.len()].copy_from_slice(magic);
    archive[512..519].copy_from_slice(b"a line\n");
    archive
}

#[test]
fn files_without_lines_are_refused_with_what_unpacks_them() {
    for (magic, found, command) in [
        (&b"PK\x03\x04\x14\0"[..], "a zip archive", "unzip -p"),
        (b"7z\xbc\xaf\x27\x1c\0", "a 7z archive", "7z x -so"),
        (b"\xfd7zXZ\0", "an xz-compressed file", "xz -dc"),
        (b"\x04\x22\x4d\x18", "an lz4-compressed file", "lz4 -dc"),
        (b"\xff\x06\0\0sNaPpY", "snappy in frames", "snzip -dc"),
        (b"\xa3\x05\xf0\x3c{\"reviewText\": \"", "raw snappy", "snzip -dc -t raw"),
        (b"x\x9c\x85\x92Ak\x840\x03\x85", "a zlib stream", "pigz -dc <"),
    ] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(magic).unwrap();
        let error = open(file.path()).unwrap_err();
        let expected = format!(
            "found {found}, expected lines; decompress it first: {command} {} > reviews.json",
            file.path().display()
        );
        assert_eq!(content_error(&error).unwrap().to_string(), expected);
        assert!(
            refused(&compressed(Compression::Gzip, magic))
                .starts_with(&format!("found {found}, expected lines; "))
        );
    }
    assert!(refused(b"\x89HDF\r\n\x1a\n\0").contains("merge --describe"));
    assert!(refused(b"PAR1\x15\x04").contains("sentimill"));
    let found = refused(b"SQLite format 3\0\x10\0");
    assert!(
        found.starts_with("found an SQLite database, expected lines; export a table: sqlite3 "),
        "{found}"
    );
}

#[test]
fn an_extension_names_the_compression_of_binary_content_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.json.br");
    std::fs::write(&path, b"\x8b\x02\x80\xff\xfe\x01").unwrap();
    let error = open(&path).unwrap_err();
    let expected = format!(
        "found a brotli-compressed file, expected lines; decompress it first: brotli -dc {} > reviews.json",
        path.display()
    );
    assert_eq!(content_error(&error).unwrap().to_string(), expected);
    std::fs::write(&path, "{\"a\": \"b\u{e9}\u{1}\"}\n").unwrap();
    assert!(open(&path).is_ok());
}

/// A zip archive of files that are not compressed, without their checksums.
fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let sizes = [content.len() as u32; 2].map(u32::to_le_bytes).concat();
        let name_bytes = (name.len() as u16).to_le_bytes();
        let (header, offset) = ([0; 10], (archive.len() as u32).to_le_bytes());
        directory.extend([&b"PK\x01\x02\0\0"[..], &header, &[0; 4], &sizes, &name_bytes].concat());
        directory.extend([&[0; 12][..], &offset, name.as_bytes()].concat());
        archive.extend([&b"PK\x03\x04"[..], &header, &[0; 4], &sizes, &name_bytes, &[0; 2]].concat());
        archive.extend_from_slice(&[name.as_bytes(), content.as_bytes()].concat());
    }
    let number = |number: usize| (number as u32).to_le_bytes();
    let (at, bytes) = (number(archive.len()), number(directory.len()));
    [&archive[..], &directory, b"PK\x05\x06", &[0; 8], &bytes, &at, &[0; 2]].concat()
}

#[test]
fn an_archive_of_several_files_is_refused_with_their_names() {
    let refused = |archive: &[u8]| {
        refused(archive).split("; pass one of them: ").map(str::to_owned).collect::<Vec<_>>()
    };
    let long = "x".repeat(300);
    let found = refused(&zip(&[
        ("notes/", ""),
        ("data/Reviews.csv", &long),
        ("hashes.txt", ""),
        ("__MACOSX/._a", ""),
    ]));
    assert_eq!(found[0], "found a zip archive of 2 files (data/Reviews.csv, hashes.txt), expected lines");
    assert!(found[1].starts_with("unzip -p /") && found[1].ends_with(" data/Reviews.csv > Reviews.csv"));
    let found = refused(&zip(&[("data/it's a.csv", &long), ("b", "")]));
    assert!(found[1].ends_with(r" 'data/it'\''s a.csv' > 'it'\''s a.csv'"), "{}", found[1]);
    let found = refused(&zip(&[("Reviews.csv", &long)]));
    assert!(found[0].starts_with("found a zip archive, expected lines; decompress it first: unzip -p "));
    let found = refused(&zip(&[("docProps/app.xml", &long), ("xl/workbook.xml", &long)]));
    assert_eq!(
        found[0],
        "found an xlsx workbook, expected lines; save the sheet as CSV, and pass that with --format csv"
    );
    // Cut, and hostile: a directory beyond the archive.
    let whole = zip(&[("a", "b"), ("c", "d")]);
    for end in 4..whole.len() {
        assert!(refused(&whole[..end])[0].starts_with("found a zip archive, expected lines; "), "{end}");
    }
    let mut hostile = whole.clone();
    let at = hostile.len() - 6;
    hostile[at..at + 4].fill(0xff);
    assert!(refused(&hostile)[0].starts_with("found a zip archive, expected lines; "));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        magic in prop::sample::select(vec![
            &b"PK\x03\x04"[..], b"PK\x03\x04PK\x01\x02\0\0", b"x\x9c", b"\0\0\x01", b"\xff\xfe", b"\xa3\x05\xf0", b"",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..300),
        end in prop::sample::select(vec![&b"PK\x05\x06"[..], b""]),
        tail in prop::collection::vec(0..64_u8, 0..30),
    ) {
        let content = [magic, &rest, end, &tail].concat();
        if let Err(error) = read(&content) {
            prop_assert!(content_error(&error).is_some(), "{error:?}");
        }
    }
}

#[test]
fn a_file_that_is_compressed_twice_is_refused_with_the_command_for_the_outer_one() {
    for (by, within, command, result) in [
        (Compression::Gzip, Compression::Gzip, "gzip -dc", "once.gz"),
        (Compression::Zstd, Compression::Gzip, "zstd -dc", "once.gz"),
        (Compression::Gzip, Compression::Bzip2, "gzip -dc", "once.bz2"),
    ] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&compressed(by, &compressed(within, b"a review\n"))).unwrap();
        let expected = format!(
            "found {} within {}, expected lines; decompress it once, and pass the result: {command} {} > {result}",
            within.name(),
            by.name(),
            file.path().display()
        );
        assert_eq!(content_error(&open(file.path()).unwrap_err()).unwrap().to_string(), expected);
    }
}

#[test]
fn utf16_without_a_mark_is_refused_or_decoded_as_named() {
    let text = "{\"a\": \"schön 😀\"}\n";
    for encoding in UTF_16 {
        let marked = utf16(text, encoding);
        let unmarked = &marked[2..];
        let expected = format!(
            "found UTF-16 without a mark, expected UTF-8; pass --encoding {0} to sentimill, ngrams or vectors, or convert the file with iconv -f {0} -t UTF-8",
            encoding.name()
        );
        for content in [unmarked.to_owned(), gzip(unmarked)] {
            assert_eq!(refused(&content), expected);
            for piece in [1, 3, 1000] {
                let mut decoded = String::new();
                of_encoding(Trickle(&content, piece), encoding)
                    .unwrap()
                    .read_to_string(&mut decoded)
                    .unwrap();
                assert_eq!(decoded, text);
            }
        }
        // The mark wins over the order that was named.
        for encoding in [UTF_16LE, UTF_16BE] {
            let mut decoded = String::new();
            of_encoding(&marked[..], encoding).unwrap().read_to_string(&mut decoded).unwrap();
            assert_eq!(decoded, text);
        }
        assert!(as_it_comes(unmarked, encoding).is_err());
    }
    // NUL bytes in the middle are no UTF-16.
    assert_eq!(read(b"a\0\0b").unwrap(), b"a\0\0b");
}

#[test]
fn a_mark_of_another_encoding_than_the_named_one_is_refused() {
    for (content, mark) in [("\u{feff}a".as_bytes(), "UTF-8"), (b"\xff\xfea\0\n\0", "UTF-16LE")] {
        let error = of_encoding(content, WINDOWS_1252).unwrap_err();
        let expected = format!(
            "found the byte-order mark of {mark}, expected windows-1252; omit --encoding, and pass files of other encodings to a command of their own"
        );
        assert_eq!(content_error(&error).unwrap().to_string(), expected);
    }
    assert!(of_encoding("\u{feff}a".as_bytes(), UTF_16LE).is_err());
}

#[test]
fn a_tar_archive_is_refused_compressed_or_not() {
    let expected = "found a tar archive, expected lines; unpack it with tar -x and pass its files, or pipe them with tar -xO";
    for archive in [tar("reviews.json", b"ustar\x0000"), tar("reviews.json", b"ustar  \0")] {
        assert_eq!(refused(&archive), expected);
        for by in ALL {
            assert_eq!(refused(&compressed(by, &archive)), expected);
        }
    }
    // The magic word in a text, and an archive without it.
    let text = [&[b'a'; 257][..], b"ustar"].concat();
    assert_eq!(read(&text).unwrap(), text);
    let text = tar("reviews.json", b"");
    assert_eq!(read(&text).unwrap(), text);
}

#[test]
fn a_raw_stream_is_neither_inflated_nor_decoded() {
    let read = |content: &[u8]| {
        let mut bytes = Vec::new();
        as_it_comes(Trickle(content, 7), UTF_8)?.read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    let whole = gzip(b"good");
    assert_eq!(read(&whole).unwrap(), whole);
    assert_eq!(read(b"").unwrap(), b"");
    for content in [utf16("good", UTF_16LE), tar("reviews.json", b"ustar\x0000")] {
        assert!(content_error(&read(&content).unwrap_err()).is_some());
    }
}

/// A reader that fails at its end, where a pipe would block.
struct Waits<'a>(&'a [u8]);

impl Read for Waits<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.is_empty() {
            true => Err(io::Error::other("somebody waits for an answer")),
            false => self.0.read(buffer),
        }
    }
}

#[test]
fn the_first_line_is_returned_without_waiting_for_the_second() {
    for line in ["P\n", "B\n", "BZh\n", "BZh9\n", "(\n", "good\r", "\n", "\u{feff}\n"] {
        let mut bytes = vec![0; line.len()];
        of(Waits(line.as_bytes())).unwrap().read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, line.as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_stream_is_transcoded_as_a_whole_text(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "a", "\\|", "\n", "表示", "很好", "é", "caf", "ソ", "\u{1b}$B", "\u{80}",
        ]), 0..60),
        cut in 0..9_usize,
        encoding in prop::sample::select(vec![GBK, BIG5, SHIFT_JIS, ISO_2022_JP, WINDOWS_1252, UTF_8]),
        piece in 1..40_usize,
    ) {
        let text = pieces.concat().repeat(40);
        let bytes = encoding.encode(&text).0;
        // An end within a character.
        let bytes = &bytes[..bytes.len().saturating_sub(cut)];
        let mut decoded = Vec::new();
        Transcoded::of(Trickle(bytes, piece), encoding).read_to_end(&mut decoded).unwrap();
        let expected = match encoding == UTF_8 {
            true => bytes.to_owned(),
            false => encoding.decode_without_bom_handling(bytes).0.into_owned().into_bytes(),
        };
        prop_assert_eq!(decoded, expected);
    }

    #[test]
    fn the_form_is_detected_for_every_read_size(
        text in "\\PC{0,400}",
        form in 0..6_usize,
        piece in 1..300_usize,
    ) {
        let content = match form {
            0 => text.clone().into_bytes(),
            1 | 2 => utf16(&text, UTF_16[form - 1]),
            _ => compressed(ALL[form - 3], text.as_bytes()),
        };
        let mut bytes = Vec::new();
        of(Trickle(&content, piece)).unwrap().read_to_end(&mut bytes).unwrap();
        prop_assert_eq!(bytes, text.as_bytes());
    }

    #[test]
    fn members_are_read_in_order(
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

/// A reader that returns a few bytes at a time.
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

/// Contents of zero, low and high entropy, larger than a zstd block and than the search window.
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
fn the_end_of_a_member_is_found_if_its_format_records_it() {
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
fn a_false_stream_start_ends_no_stream() {
    let stream = bzip2(b"a review");
    for magic in [&b"BZh91AY&SY"[..], b"1AY&SY", b"\x17\x72\x45\x38\x50\x90\0\0\0\0BZh01AY&SY"] {
        let file = file(&[&stream[..], b"between", magic, &stream].concat());
        assert_eq!(end_of_member(&file, Compression::Bzip2, 0).unwrap(), None, "{}", magic.escape_ascii());
    }
}

proptest! {
    #[test]
    fn the_end_of_a_member_is_after_its_start_for_any_bytes(
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

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    std::fs::write(&path, b"line\n".repeat(400_000)).unwrap();
    let mut content = open(&path).unwrap();
    content.read_exact(&mut [0; 1000]).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(1_200_001).unwrap();
    let error = content.read_to_end(&mut Vec::new()).unwrap_err();
    let expected = "found 1200001 bytes, expected 2000000; do not change the file while it is read";
    assert_eq!(error.to_string(), expected);
}
