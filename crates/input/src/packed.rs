//! Recognizes files that hold no lines by their first bytes, and names what unpacks or reads them.

use std::fmt;

use corpus::shell::word;
use encoding_rs::{Encoding, UTF_8};

use crate::Compression;

/// A kind of file that contains no lines.
#[derive(Debug)]
pub struct Packed {
    /// What messages call it.
    pub name: &'static str,
    /// Its format, if it is a table that `sentimill` reads from a file.
    pub table: Option<&'static str>,
    /// What to do with it. `FILE` stands for its name as a word of a shell, and `PATH` as a string of Python.
    remedy: &'static str,
    signature: Signature,
}

/// How a kind is recognized.
#[derive(Debug)]
enum Signature {
    /// By its first bytes.
    Magic(&'static [u8]),
    /// By a check of its first bytes, which no text passes.
    Check(fn(&[u8]) -> bool),
    /// By a check of its first bytes, which hardly any text passes.
    Guess(fn(&[u8]) -> bool),
    /// By the extension of its name, if its first bytes are binary: the format has no signature.
    Extension(&'static str),
}

use Signature::{Check, Extension, Guess, Magic};

const fn kind(name: &'static str, signature: Signature, remedy: &'static str) -> Packed {
    Packed { name, table: None, remedy, signature }
}

const fn table(format: &'static str, name: &'static str, magic: &'static [u8]) -> Packed {
    let remedy = match format.as_bytes() {
        b"Arrow" => "pass the file to sentimill, which reads Arrow",
        _ => "pass the file to sentimill, which reads Parquet",
    };
    Packed { name, table: Some(format), remedy, signature: Magic(magic) }
}

/// All kinds. The first that applies counts.
static KINDS: [Packed; 29] = [
    table("Parquet", "a Parquet file", b"PAR1"),
    table("Arrow", "an Arrow file", b"ARROW1"),
    table("Arrow", "an Arrow file", b"\xff\xff\xff\xff"),
    kind("an xlsx workbook", Check(is_workbook), "save the sheet as CSV, and pass that with --format csv"),
    kind(ZIP, Magic(b"PK\x03\x04"), "decompress it first: unzip -p FILE > reviews.json"),
    kind("a 7z archive", Magic(b"7z\xbc\xaf\x27\x1c"), "decompress it first: 7z x -so FILE > reviews.json"),
    kind("a RAR archive", Magic(b"Rar!\x1a\x07"), "decompress it first: unrar p -inul FILE > reviews.json"),
    kind("an xz-compressed file", Magic(b"\xfd7zXZ\0"), "decompress it first: xz -dc FILE > reviews.json"),
    kind(
        "an lz4-compressed file",
        Magic(b"\x04\x22\x4d\x18"),
        "decompress it first: lz4 -dc FILE > reviews.json",
    ),
    kind("an lzip-compressed file", Magic(b"LZIP\x01"), "decompress it first: lzip -dc FILE > reviews.json"),
    kind(
        "an lzop-compressed file",
        Magic(b"\x89LZO\0\r\n\x1a"),
        "decompress it first: lzop -dc FILE > reviews.json",
    ),
    kind("a file of compress", Magic(b"\x1f\x9d"), "decompress it first: gzip -dc FILE > reviews.json"),
    kind(
        "snappy in frames",
        Magic(b"\xff\x06\0\0sNaPpY"),
        "decompress it first: snzip -dc FILE > reviews.json",
    ),
    kind(
        "snappy in Hadoop's blocks",
        Check(is_hadoop_snappy),
        "decompress it first: hadoop fs -text FILE > reviews.json",
    ),
    kind("raw snappy", Guess(is_raw_snappy), "decompress it first: snzip -dc -t raw FILE > reviews.json"),
    kind("a zlib stream", Check(is_zlib), "decompress it first: pigz -dc < FILE > reviews.json"),
    kind("a brotli-compressed file", Extension("br"), "decompress it first: brotli -dc FILE > reviews.json"),
    kind("raw snappy", Extension("snappy"), "decompress it first: snzip -dc -t raw FILE > reviews.json"),
    kind("an lzma-compressed file", Extension("lzma"), "decompress it first: xz -dc FILE > reviews.json"),
    kind("a deflate stream", Extension("deflate"), "decompress it first with the program that wrote it"),
    kind(
        "an SQLite database",
        Magic(b"SQLite format 3\0"),
        "export a table: sqlite3 -header -csv FILE 'SELECT * FROM NAME' > reviews.csv, and pass that with --format csv",
    ),
    kind(
        "an xls workbook",
        Magic(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
        "save the sheet as CSV, and pass that with --format csv",
    ),
    kind("an Avro file", Magic(b"Obj\x01"), "convert it: avro-tools tojson FILE > reviews.json"),
    kind(
        "a Python pickle",
        Check(|bytes| matches!(bytes, [0x80, 2..=5, _, ..])),
        "convert it with pandas: read_pickle(PATH).to_json('reviews.json', orient='records', lines=True)",
    ),
    kind("a NumPy array", Magic(b"\x93NUMPY"), "write its texts as JSON lines"),
    kind("a PDF file", Magic(b"%PDF-"), "pass a file of text"),
    kind(
        "an HDF5 file",
        Magic(b"\x89HDF\r\n\x1a\n"),
        "pass reviews; merge --describe FILE prints the data card of a dataset",
    ),
    kind("UTF-32", Check(is_utf32_le), "convert the file with iconv -f UTF-32LE -t UTF-8"),
    kind("UTF-32", Check(is_utf32_be), "convert the file with iconv -f UTF-32BE -t UTF-8"),
];

pub(crate) const ZIP: &str = "a zip archive";

impl Packed {
    /// The kind of input with this beginning and in this encoding; `None` if it may contain lines. UTF-8 is the default.
    pub fn of(beginning: &[u8], encoding: &'static Encoding) -> Option<&'static Self> {
        KINDS.iter().find(|kind| match kind.signature {
            Magic(magic) => beginning.starts_with(magic),
            Check(is_it) => is_it(beginning),
            Guess(is_it) => encoding == UTF_8 && is_it(beginning),
            Extension(_) => false,
        })
    }

    /// The kind of a file with this name, whose beginning is binary but has no signature.
    pub(crate) fn named(file: &str) -> Option<&'static Self> {
        let (_, found) = file.rsplit_once('.')?;
        KINDS.iter().find(|kind| match kind.signature {
            Extension(extension) => found.eq_ignore_ascii_case(extension),
            _ => false,
        })
    }

    /// The remedy for a file with this name.
    pub(crate) fn remedy(&self, file: &str) -> String {
        // A name may contain the other placeholder.
        match self.remedy.split_once("PATH") {
            Some((before, after)) => format!("{before}{file:?}{after}"),
            None => self.remedy.replace("FILE", &word(file)),
        }
    }
}

impl PartialEq for Packed {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Display for Packed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

/// The remedy for a Hadoop task whose input is compressed; `None` if the input may contain lines.
pub fn remedy(beginning: &[u8]) -> Option<String> {
    let remedy = "the input is compressed; pass it as a file by --input, or decompress it before the mapper";
    Compression::of(beginning).map(|_| remedy.to_owned())
}

/// Whether bytes are no text in any encoding: not UTF-8, and with control characters.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f);
    let is_cut = |error: std::str::Utf8Error| error.error_len().is_none();
    bytes.iter().any(is_control) && str::from_utf8(bytes).is_err_and(|error| !is_cut(error))
}

/// A zip archive whose first names are those of a workbook. A workbook that begins with other names is found by the
/// names of all files.
fn is_workbook(bytes: &[u8]) -> bool {
    let has = |name: &[u8]| memchr::memmem::find(bytes, name).is_some();
    bytes.starts_with(b"PK\x03\x04") && (has(b"[Content_Types].xml") || has(b"xl/"))
}

/// RFC 1950: method 8, a window of at most 32 KiB, and a check of both bytes.
fn is_zlib(bytes: &[u8]) -> bool {
    match bytes {
        [first @ (0x58 | 0x68 | 0x78), flags, ..] => {
            (u16::from(*first) << 8 | u16::from(*flags)) % 31 == 0 && flags & 0x20 == 0 && is_binary(bytes)
        }
        _ => false,
    }
}

/// The format of snappy: the decompressed size, then a literal, because nothing can be copied yet. Only text is of
/// interest.
fn is_raw_snappy(bytes: &[u8]) -> bool {
    let Some((size, literal)) = snappy_size(bytes) else { return false };
    let Some((&tag, rest)) = literal.split_first() else { return false };
    let (length, text) = match (tag & 3, tag >> 2, rest) {
        (0, 60, [low, text @ ..]) => (u64::from(*low) + 1, text),
        (0, 61, [low, high, text @ ..]) => (u64::from(u16::from_le_bytes([*low, *high])) + 1, text),
        (0, short @ 0..=59, text) => (u64::from(short) + 1, text),
        _ => return false,
    };
    let text = &text[..text.len().min(length as usize)];
    let header = &bytes[..bytes.len() - literal.len()];
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..);
    let is_literal = length <= size && text.len() >= 4 && text.iter().all(is_text);
    is_literal && str::from_utf8(header).is_err() && is_binary(bytes)
}

/// The size in the header of raw snappy, a number of up to 32 bits in groups of seven, and the bytes behind it.
fn snappy_size(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let n = bytes.iter().take(5).position(|byte| byte & 0x80 == 0)? + 1;
    let size = bytes[..n].iter().rev().fold(0, |size, byte| size << 7 | u64::from(byte & 0x7f));
    Some((size, &bytes[n..]))
}

/// Hadoop's block format: the decompressed size of a block, the compressed size of a part of it, and the part in raw
/// snappy.
fn is_hadoop_snappy(bytes: &[u8]) -> bool {
    let Some(([a, b, c, d, e, f, g, h], part)) = bytes.split_first_chunk() else { return false };
    let (block, compressed) = (u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h]));
    // snappy enlarges nothing by more than a sixth.
    let is_part = |(size, literal): (u64, &[u8])| {
        (1..=block.into()).contains(&size)
            && u64::from(compressed) <= 32 + size + size / 6
            && literal.first().is_some_and(|tag| tag & 3 == 0)
    };
    *a == 0 && compressed > 0 && snappy_size(part).is_some_and(is_part)
}

fn is_utf32_le(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, 0xfe, 0, 0, ..] | [1..=0x7f, 0, 0, 0, 1..=0x7f, 0, 0, 0, ..])
}

fn is_utf32_be(bytes: &[u8]) -> bool {
    matches!(bytes, [0, 0, 0xfe, 0xff, ..] | [0, 0, 0, 1..=0x7f, 0, 0, 0, 1..=0x7f, ..])
}

#[cfg(test)]
mod tests {
    use encoding_rs::WINDOWS_1252;

    use super::*;

    #[test]
    fn files_without_lines_are_recognized() {
        assert!(remedy(b"\x1f\x8b\x08").unwrap().contains("--input"));
        assert_eq!(remedy(b"{\"a"), None);
        for kind in &KINDS {
            if let Magic(magic) = kind.signature {
                assert_eq!(Packed::of(&[magic, b"..."].concat(), UTF_8), Some(kind));
                assert_ne!(Packed::of(&magic[1..], UTF_8), Some(kind), "{kind}");
            }
        }
    }

    #[test]
    fn formats_without_magic_bytes_are_recognized() {
        let named = |bytes: &[u8]| Packed::of(bytes, UTF_8).map(|kind| kind.name);
        assert_eq!(named(b"\xa3\x05\xf0\x3c{\"reviewText\": \"a\"}"), Some("raw snappy"));
        assert_eq!(named(b"\x90\x4e\x60a,b\n1,2,and the rest of it\n\x05\x08"), Some("raw snappy"));
        assert_eq!(named(b"\0\0\x02\xa3\0\0\x01\x54\xa3\x05\xf0\x3c{\"r"), Some("snappy in Hadoop's blocks"));
        for level in [0x01, 0x5e, 0x9c, 0xda] {
            assert_eq!(named(&[0x78, level, 0x85, 0x92, 0x41, 0x16, 0x6e, 0x84]), Some("a zlib stream"));
        }
        assert_eq!(named(b"\xff\xfe\0\0{\0\0\0"), Some("UTF-32"));
        assert_eq!(named(b"{\0\0\0\"\0\0\0"), Some("UTF-32"));
        assert_eq!(named(b"\0\0\0{\0\0\0\""), Some("UTF-32"));
        assert_eq!(named(b"\x80\x04\x95\x10\0"), Some("a Python pickle"));
        let workbook =
            b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\x13\0\0\0[Content_Types].xml";
        assert_eq!(named(workbook), Some("an xlsx workbook"));
        assert_eq!(
            Packed::named("a/reviews.json.BR").map(|kind| kind.name),
            Some("a brotli-compressed file")
        );
        assert_eq!(Packed::named("a.br/reviews"), None);
        // A user knows the encoding.
        assert_eq!(Packed::of(b"\xa3\x05\xf0\x3c{\"reviewText\": \"a\"}", WINDOWS_1252), None);
    }

    #[test]
    fn a_remedy_is_a_command_for_a_name_with_spaces_and_quotes() {
        let remedy =
            |bytes: &[u8]| Packed::of(bytes, UTF_8).map(|kind| kind.remedy("it's a.bin")).unwrap_or_default();
        assert_eq!(remedy(b"LZIP\x01"), r"decompress it first: lzip -dc 'it'\''s a.bin' > reviews.json");
        assert_eq!(
            remedy(b"\x80\x04\x95\x10\0"),
            "convert it with pandas: read_pickle(\"it's a.bin\").to_json('reviews.json', orient='records', lines=True)"
        );
    }

    #[test]
    fn text_in_any_encoding_is_no_packed_file() {
        for text in [
            &b"x^2 and more"[..],
            b"x^caf\xe9, na\xefve",
            b"\xba\xdc\xba\xc3\xb5\xc4,5",
            b"\xe9t\xe9 and so on, 5",
            b"\x83\x65\x83\x58\x83\x67 text,5",
            "xڀ text".as_bytes(),
            "très bon".as_bytes(),
            b"a great\0text",
            b"\xe0 la carte, a review of some length, 5",
            b"\xc0 la carte, a review of some length, 5",
            b"\xe9 pure",
            b"\xfc das ist gut",
            b"\xf6 pas",
            b"h^\x01",
            b"",
        ] {
            assert_eq!(Packed::of(text, UTF_8), None, "{}", text.escape_ascii());
        }
        assert!(
            !is_binary("a\0é".as_bytes()) && !is_binary(b"caf\xe9 \x1b[0m") && is_binary(b"\x8b\x02\x80\xff")
        );
        assert!(
            !is_binary("a\x01é".as_bytes().split_last().unwrap().1),
            "a character that the beginning cuts"
        );
    }
}
