//! Finds the end of a member of a compressed file without decompressing it, if the format allows that.
//!
//! - gzip: BGZF, as written by `bgzip`, has the size of each member in its header (SAMv1, 4.1). Other gzip
//!   members have no size; only decompressing one finds its end.
//! - zstd: each block of a frame is preceded by its size (RFC 8878, 3.1.1), whichever program wrote the
//!   frame.
//! - bzip2: there are no sizes, and blocks start at any bit. But a stream starts at a byte, with ten bytes
//!   that are constant except for one digit, and the previous stream ends in six constant bytes. These
//!   patterns find the streams that `pbzip2` writes.
//!
//! A crafted BGZF or bzip2 file can mislead this search. Decompressing the member then detects that it ends
//! elsewhere ([`Members::pause_at`](crate::Members::pause_at)).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memchr::memmem;

use crate::{BZIP2_BLOCK, BZIP2_END, Compression};

/// Maximum distance from the start of a member that is searched for its end. A longer search would read the
/// file twice, for members so large that there are few of them.
const MEMBER_BYTES_MAX: u64 = 64 << 20;

/// The end of the member that starts at byte `at`, if it can be found. There may be no member at `at`.
pub fn end_of_member(file: &File, by: Compression, at: u64) -> io::Result<Option<u64>> {
    match by {
        Compression::Gzip => end_of_bgzf(file, at),
        Compression::Zstd => end_of_frame(file, at),
        Compression::Bzip2 => end_of_stream(file, at),
    }
}

fn end_of_bgzf(file: &File, at: u64) -> io::Result<Option<u64>> {
    const HEADER_BYTES: usize = 12;
    const FLAG_EXTRA: u8 = 4;
    let mut header = [0; HEADER_BYTES];
    let extra_bytes = match (read(file, &mut header, at)?, header) {
        (HEADER_BYTES, [0x1f, 0x8b, 8, flags, _, _, _, _, _, _, low, high]) if flags & FLAG_EXTRA != 0 => {
            u16::from_le_bytes([low, high])
        }
        _ => return Ok(None),
    };
    let mut extra = vec![0; extra_bytes.into()];
    if read(file, &mut extra, at + HEADER_BYTES as u64)? < extra.len() {
        return Ok(None);
    }
    let mut rest = &extra[..];
    while let [one, other, low, high, fields @ ..] = rest {
        let length = u16::from_le_bytes([*low, *high]).into();
        match (fields.get(..length), [*one, *other]) {
            (Some(&[low, high]), [b'B', b'C']) => {
                return Ok(Some(at + u64::from(u16::from_le_bytes([low, high])) + 1));
            }
            (Some(_), _) => rest = &fields[length..],
            (None, _) => break,
        }
    }
    Ok(None)
}

fn end_of_frame(file: &File, at: u64) -> io::Result<Option<u64>> {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let mut bytes = Window { file, bytes: Vec::new(), from: 0 };
    let after = match bytes.get(at)? {
        Some([0x50..=0x5f, 0x2a, 0x4d, 0x18]) => {
            let size = bytes.get(at + 4)?;
            return Ok(size.map(|size| at + 8 + u64::from(u32::from_le_bytes(size))));
        }
        Some(MAGIC) => at + 4,
        _ => return Ok(None),
    };
    let Some([descriptor]) = bytes.get(after)? else { return Ok(None) };
    let is_one_segment = descriptor >> 5 & 1 == 1;
    let window_bytes = u64::from(!is_one_segment);
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_bytes = [u64::from(is_one_segment), 2, 4, 8][usize::from(descriptor >> 6)];
    let checksum_bytes = if descriptor >> 2 & 1 == 1 { 4 } else { 0 };
    let mut block = after + 1 + window_bytes + dictionary_bytes + size_bytes;
    while block < at + MEMBER_BYTES_MAX {
        let Some([low, middle, high]) = bytes.get(block)? else { return Ok(None) };
        let header = u32::from_le_bytes([low, middle, high, 0]);
        let size = match header >> 1 & 3 {
            // One byte, which is repeated.
            1 => 1,
            3 => return Ok(None),
            _ => header >> 3,
        };
        block += 3 + u64::from(size);
        if header & 1 == 1 {
            return Ok(Some(block + checksum_bytes));
        }
    }
    Ok(None)
}

fn end_of_stream(file: &File, at: u64) -> io::Result<Option<u64>> {
    const SEARCHED_BYTES: usize = 256 << 10;
    // The bytes before the start of the first block: the end of another stream and the first bytes of this
    // one.
    let before_block = ENDING_BYTES + STREAM_MAGIC_BYTES;
    let mut bytes = vec![0; SEARCHED_BYTES];
    let mut from = at;
    while from < at + MEMBER_BYTES_MAX {
        let n = read(file, &mut bytes, from)?;
        for found in memmem::find_iter(&bytes[..n], BZIP2_BLOCK) {
            let before =
                found.checked_sub(before_block).map(|start| bytes[start..found].split_at(ENDING_BYTES));
            if let Some((ending, [b'B', b'Z', b'h', b'1'..=b'9'])) = before
                && is_ending(ending)
            {
                return Ok(Some(from + (found - STREAM_MAGIC_BYTES) as u64));
            }
        }
        if n < SEARCHED_BYTES {
            break;
        }
        // A match that the end of this read cuts is found at the start of the next.
        from += (n - before_block - BZIP2_BLOCK.len() + 1) as u64;
    }
    Ok(None)
}

const STREAM_MAGIC_BYTES: usize = b"BZh9".len();
/// The end of a stream: six magic bytes and a checksum of four, starting at any bit, and up to seven bits of
/// padding.
const ENDING_BYTES: usize = 11;

fn is_ending(bytes: &[u8]) -> bool {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, &byte| number << 8 | u128::from(byte));
    let (found, magic) = (number(bytes), number(BZIP2_END));
    (0..8).any(|unused| found >> (unused + u32::BITS) & ((1 << 48) - 1) == magic)
}

/// A window over a file, for reading a few bytes at increasing offsets.
struct Window<'a> {
    file: &'a File,
    bytes: Vec<u8>,
    from: u64,
}

impl Window<'_> {
    /// The bytes from `at`; `None` if the file ends before.
    fn get<const N: usize>(&mut self, at: u64) -> io::Result<Option<[u8; N]>> {
        /// Minimum size of a read from disk.
        const BYTES: usize = 4 << 10;
        let found = |bytes: &[u8], from: u64| {
            bytes.get(usize::try_from(at.checked_sub(from)?).ok()?..)?.first_chunk().copied()
        };
        if let Some(found) = found(&self.bytes, self.from) {
            return Ok(Some(found));
        }
        self.bytes.resize(BYTES, 0);
        let n = read(self.file, &mut self.bytes, at)?;
        self.bytes.truncate(n);
        self.from = at;
        Ok(found(&self.bytes, self.from))
    }
}

/// Fills `bytes` as far as the file has bytes.
fn read(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut n = 0;
    while n < bytes.len() {
        match file.read_at(&mut bytes[n..], at + n as u64) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n)
}
