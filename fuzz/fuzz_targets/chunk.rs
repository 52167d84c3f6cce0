//! Stored chunks: elements must equal those of another implementation of deflate, or both must refuse the chunk.
//! Written elements must read back.
//!
//! The first bytes of the input select the number of elements and the kind of the rest: a chunk, a zlib frame without
//! its checksum, a deflate stream without its frame, or elements.
#![no_main]

use std::fmt::Debug;

use dataset::chunk::{Decoder, Encoder, Scalar, shuffle};
use flate2::{Decompress, FlushDecompress, Status};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[element, kind, low, high], rest)) = data.split_first_chunk() else { return };
    let capacity = usize::from(u16::from_le_bytes([low, high])) % 4096 + 1;
    match element % 4 {
        0 => check::<u8, _>(kind, capacity, rest, u8::from_le_bytes),
        1 => check::<u16, _>(kind, capacity, rest, u16::from_le_bytes),
        2 => check::<u32, _>(kind, capacity, rest, u32::from_le_bytes),
        _ => check::<u64, _>(kind, capacity, rest, u64::from_le_bytes),
    }
});

fn check<T: Scalar + Debug + PartialEq, const N: usize>(
    kind: u8,
    capacity: usize,
    rest: &[u8],
    of: fn([u8; N]) -> T,
) {
    let may_have_any_checksum = kind.is_multiple_of(4);
    let stored = match kind % 4 {
        0 => rest.to_vec(),
        1 => with_checksum(rest.to_vec()),
        2 => with_checksum(framed(rest, capacity * N)),
        _ => {
            let mut elements: Vec<T> = rest.as_chunks().0.iter().take(capacity).copied().map(of).collect();
            let stored = encode(&elements, capacity);
            elements.resize(capacity, T::default());
            assert_eq!(decode(&stored, capacity), Some(elements));
            stored
        }
    };
    let decoded: Option<Vec<T>> = decode(&stored, capacity);
    // A chunk may be refused for its checksum, which the other implementation does not check.
    if decoded.is_some() || !may_have_any_checksum {
        assert_eq!(decoded, naive(&stored, capacity, of));
    }
}

fn encode<T: Scalar>(elements: &[T], capacity: usize) -> Vec<u8> {
    let mut shuffled = Vec::new();
    shuffle(elements, capacity, &mut shuffled);
    let mut stored = vec![0; Encoder::stored_bytes_max(shuffled.len())];
    Encoder::default().encode(&shuffled, capacity, &mut stored);
    stored
}

fn decode<T: Scalar>(stored: &[u8], capacity: usize) -> Option<Vec<T>> {
    let mut elements = vec![T::default(); capacity];
    Decoder::default().decode(stored, capacity, &mut elements).map(|()| elements)
}

fn naive<T, const N: usize>(stored: &[u8], capacity: usize, of: fn([u8; N]) -> T) -> Option<Vec<T>> {
    let frame = &stored[..stored.len().checked_sub(4)?];
    let (shuffled, _) = inflate(&mut Decompress::new(true), frame, capacity * N)?;
    Some((0..capacity).map(|at| of(std::array::from_fn(|byte| shuffled[byte * capacity + at]))).collect())
}

/// Returns the decompressed bytes of a stream, if there are this many, and the length of the stream.
fn inflate(decompress: &mut Decompress, stream: &[u8], bytes: usize) -> Option<(Vec<u8>, usize)> {
    let mut inflated = vec![0; bytes + 1];
    let status = decompress.decompress(stream, &mut inflated, FlushDecompress::Finish).ok()?;
    inflated.truncate(bytes);
    let is_whole = status == Status::StreamEnd && decompress.total_out() == bytes as u64;
    is_whole.then_some((inflated, decompress.total_in() as usize))
}

/// Returns the zlib frame of a deflate stream, with the checksum of its content if that has this many bytes.
fn framed(stream: &[u8], bytes: usize) -> Vec<u8> {
    let (inflated, length) =
        inflate(&mut Decompress::new(false), stream, bytes).unwrap_or((vec![], stream.len()));
    let add =
        |(a, b): (u32, u32), &byte: &u8| ((a + u32::from(byte)) % 65521, (a + u32::from(byte) + b) % 65521);
    let (a, b) = inflated.iter().fold((1, 0), add);
    [&[0x78, 0x01], &stream[..length], &(b << 16 | a).to_be_bytes()].concat()
}

/// Returns a frame followed by the checksum of the format.
fn with_checksum(mut frame: Vec<u8>) -> Vec<u8> {
    let (mut a, mut b) = (0u64, 0u64);
    for word in frame.chunks(2) {
        a += u64::from(word[0]) << 8 | word.get(1).copied().map_or(0, u64::from);
        b += a;
    }
    let folded = |mut sum: u64| {
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u32
    };
    frame.extend((folded(b) << 16 | folded(a)).to_le_bytes());
    frame
}
