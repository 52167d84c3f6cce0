//! Compresses bytes with gzip, bzip2 and zstd.

use std::io::Write;

use flate2::Crc;
use flate2::write::{DeflateEncoder, GzEncoder};

const MEMORY: &str = "memory takes all";

/// One gzip member.
pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).and_then(|()| encoder.finish()).expect(MEMORY)
}

/// One bzip2 stream.
pub fn bzip2(content: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(content).and_then(|()| encoder.finish()).expect(MEMORY)
}

/// One zstd frame.
pub fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 1).expect(MEMORY)
}

/// One BGZF member: gzip with the size of the member in its header. The size of a member is limited to 64
/// KiB.
pub fn bgzf(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    let deflated = encoder.write_all(content).and_then(|()| encoder.finish()).expect(MEMORY);
    let mut crc = Crc::new();
    crc.update(content);
    let header = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0";
    let last_byte =
        u16::try_from(header.len() + 2 + deflated.len() + 8 - 1).expect("a member of 64 KiB at most");
    let (last_byte, crc) = (last_byte.to_le_bytes(), crc.sum().to_le_bytes());
    let content_bytes = (content.len() as u32).to_le_bytes();
    [&header[..], &last_byte, &deflated, &crc, &content_bytes].concat()
}

/// Consecutive members of `bytes` bytes each.
pub fn in_members(content: &[u8], bytes: usize, member: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    content.chunks(bytes).flat_map(member).collect()
}
