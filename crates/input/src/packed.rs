//! Recognizes files that hold no lines by their first bytes, and names what unpacks or reads them.

use std::fmt;

use crate::Compression;

/// A kind of file that contains no lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// A zip archive.
    Zip,
    /// A 7z archive.
    SevenZip,
    /// A file compressed by xz.
    Xz,
    /// A file compressed by lz4.
    Lz4,
    /// A Parquet file.
    Parquet,
    /// An Arrow file or stream.
    Arrow,
    /// An HDF5 file, such as a dataset.
    Hdf5,
}

/// The magic bytes of each kind.
const MAGIC: [(&[u8], Packed); 8] = [
    (b"PK\x03\x04", Packed::Zip),
    (b"7z\xbc\xaf\x27\x1c", Packed::SevenZip),
    (b"\xfd7zXZ\0", Packed::Xz),
    (b"\x04\x22\x4d\x18", Packed::Lz4),
    (b"PAR1", Packed::Parquet),
    (b"ARROW1", Packed::Arrow),
    (b"\xff\xff\xff\xff", Packed::Arrow),
    (b"\x89HDF\r\n\x1a\n", Packed::Hdf5),
];

impl Packed {
    /// The kind of input with this beginning; `None` if it may contain lines.
    pub fn of(beginning: &[u8]) -> Option<Self> {
        MAGIC.iter().find(|(magic, _)| beginning.starts_with(magic)).map(|&(_, packed)| packed)
    }

    /// The remedy for a file with this name.
    pub(crate) fn remedy(self, file: &str) -> String {
        let unpack = |command: &str| format!("decompress it first: {command} {file} > reviews.json");
        match self {
            Self::Zip => unpack("unzip -p"),
            Self::SevenZip => unpack("7z x -so"),
            Self::Xz => unpack("xz -dc"),
            Self::Lz4 => unpack("lz4 -dc"),
            Self::Parquet => "pass the file to sentimill, which reads Parquet".to_owned(),
            Self::Arrow => "pass the file to sentimill, which reads Arrow".to_owned(),
            Self::Hdf5 => format!("pass reviews; merge --describe {file} prints the data card of a dataset"),
        }
    }
}

impl fmt::Display for Packed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Zip => "a zip archive",
            Self::SevenZip => "a 7z archive",
            Self::Xz => "an xz-compressed file",
            Self::Lz4 => "an lz4-compressed file",
            Self::Parquet => "a Parquet file",
            Self::Arrow => "an Arrow file",
            Self::Hdf5 => "an HDF5 file",
        })
    }
}

/// The remedy for a Hadoop task whose input is compressed; `None` if the input may contain lines.
pub fn remedy(beginning: &[u8]) -> Option<String> {
    let remedy = "the input is compressed; pass it as a file by --input, or decompress it before the mapper";
    Compression::of(beginning).map(|_| remedy.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_lines_are_recognized() {
        assert!(remedy(b"\x1f\x8b\x08").unwrap().contains("--input"));
        assert_eq!(remedy(b"{\"a"), None);
        for (magic, packed) in MAGIC {
            assert_eq!(Packed::of(&[magic, b"..."].concat()), Some(packed));
            assert_eq!(Packed::of(&magic[1..]), None);
        }
    }
}
