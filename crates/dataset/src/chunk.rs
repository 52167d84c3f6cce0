//! Encodes the elements of one chunk into the bytes in the file, and decodes them.
//!
//! The filters are HDF5's, in pipeline order: shuffle (the first bytes of all elements, then the second bytes
//! …), deflate in a zlib frame, and Fletcher's checksum of the compressed bytes after them. They are applied
//! here instead of in the library for three reasons: the bytes then depend only on the elements, the digest
//! table requires the stored bytes, and no lock is required. The library and h5py can read the result.

use std::array;

use libdeflater::Decompressor;

use crate::deflate::Deflater;

/// An element type. Files are little-endian on every machine.
pub trait Scalar: hdf5::H5Type + Copy + Default + Send + Sync {
    /// Size in bytes.
    const BYTES: usize;
    /// Name in the digest table.
    const NAME: &'static str;
    /// Byte `i` of the element, the least significant first.
    fn byte(self, i: usize) -> u8;
    /// Fills `elements` with the first elements of a chunk of `capacity` elements, from its shuffled bytes.
    fn unshuffle(shuffled: &[u8], capacity: usize, elements: &mut [Self]);
}

macro_rules! scalar {
    ($type:ty) => {
        impl Scalar for $type {
            const BYTES: usize = size_of::<$type>();
            const NAME: &'static str = stringify!($type);
            #[inline(always)]
            fn byte(self, i: usize) -> u8 {
                (self >> (8 * i)) as u8
            }
            fn unshuffle(shuffled: &[u8], capacity: usize, elements: &mut [Self]) {
                let planes: [&[u8]; size_of::<$type>()] =
                    array::from_fn(|i| &shuffled[i * capacity..][..elements.len()]);
                for (at, element) in elements.iter_mut().enumerate() {
                    *element = Self::from_le_bytes(array::from_fn(|i| planes[i][at]));
                }
            }
        }
    };
}
scalar!(u8);
scalar!(u16);
scalar!(u32);
scalar!(u64);

#[cfg(target_endian = "big")]
compile_error!("HDF5's native types are taken for little-endian ones");

/// Size of the checksum after each chunk.
const CHECKSUM_BYTES: usize = 4;

/// Writes the shuffled bytes of a chunk of `capacity` elements, which are `elements` followed by zeros.
pub fn shuffle<T: Scalar>(elements: &[T], capacity: usize, shuffled: &mut Vec<u8>) {
    shuffled.clear();
    shuffled.resize(capacity * T::BYTES, 0);
    for (i, plane) in shuffled.chunks_exact_mut(capacity).enumerate() {
        for (to, element) in plane.iter_mut().zip(elements) {
            *to = element.byte(i);
        }
    }
}

/// Shuffles as [`shuffle`] does, from the little-endian bytes of elements of this size.
pub(crate) fn shuffle_bytes(bytes: &[u8], element_bytes: usize, capacity: usize, shuffled: &mut Vec<u8>) {
    shuffled.clear();
    shuffled.resize(capacity * element_bytes, 0);
    for (i, plane) in shuffled.chunks_exact_mut(capacity).enumerate() {
        for (to, element) in plane.iter_mut().zip(bytes.chunks_exact(element_bytes)) {
            *to = element[i];
        }
    }
}

/// Appends the little-endian bytes of elements.
pub(crate) fn append_bytes<T: Scalar>(elements: &[T], bytes: &mut Vec<u8>) {
    bytes.extend(elements.iter().flat_map(|element| (0..T::BYTES).map(|i| element.byte(i))));
}

/// Encodes shuffled bytes into stored chunks.
#[derive(Default)]
pub struct Encoder {
    deflater: Deflater,
}

impl Encoder {
    /// Maximum size of a stored chunk of this number of shuffled bytes.
    pub fn stored_bytes_max(shuffled_bytes: usize) -> usize {
        Deflater::bytes_max(shuffled_bytes) + CHECKSUM_BYTES
    }

    /// Writes the stored bytes of a chunk of `capacity` elements to `stored`, which has
    /// [`Encoder::stored_bytes_max`] bytes.
    pub fn encode(&mut self, shuffled: &[u8], capacity: usize, stored: &mut Vec<u8>) {
        let n = self.deflater.zlib(shuffled, capacity, stored);
        let checksum = fletcher32(&stored[..n]);
        stored.truncate(n);
        stored.extend_from_slice(&checksum.to_le_bytes());
    }
}

/// Decodes stored chunks and reuses its buffer.
pub struct Decoder {
    decompressor: Decompressor,
    shuffled: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { decompressor: Decompressor::new(), shuffled: Vec::new() }
    }
}

impl Decoder {
    /// Fills `elements` with the first of the `capacity` elements of a chunk. Returns `None` if the bytes are
    /// not such a chunk.
    ///
    /// The checksum is for other programs and is not computed again: the caller has already verified all
    /// stored bytes, including the checksum, against a digest of 128 bits. (Computing the checksum would take
    /// a fifth of the time of decompression.)
    pub fn decode<T: Scalar>(&mut self, stored: &[u8], capacity: usize, elements: &mut [T]) -> Option<()> {
        let compressed = &stored[..stored.len().checked_sub(CHECKSUM_BYTES)?];
        self.shuffled.resize(capacity * T::BYTES, 0);
        let n = self.decompressor.zlib_decompress(compressed, &mut self.shuffled).ok()?;
        if n != self.shuffled.len() {
            return None;
        }
        T::unshuffle(&self.shuffled, capacity, elements);
        Some(())
    }

    /// Whether all elements after the first `n` are zero in the last decoded chunk, which has `capacity`
    /// elements.
    pub fn is_zero_behind<T: Scalar>(&self, capacity: usize, n: usize) -> bool {
        let planes = self.shuffled.chunks_exact(capacity.max(1));
        n == capacity || planes.take(T::BYTES).all(|plane| plane[n..].iter().all(|&byte| byte == 0))
    }
}

/// HDF5's variant of Fletcher's checksum. In 16-bit words the first byte is the more significant one, and an
/// odd last byte is the upper half of a word.
fn fletcher32(bytes: &[u8]) -> u32 {
    // The 32-bit sums of sums cannot overflow within 360 words.
    const WORDS_BETWEEN_FOLDS: usize = 360;
    let (mut low, mut high) = (0u32, 0u32);
    for block in bytes.chunks(2 * WORDS_BETWEEN_FOLDS) {
        for word in block.chunks(2) {
            low += u32::from(word[0]) << 8 | word.get(1).copied().map_or(0, u32::from);
            high += low;
        }
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded<T: Scalar>(elements: &[T], capacity: usize) -> Vec<u8> {
        let mut shuffled = Vec::new();
        shuffle(elements, capacity, &mut shuffled);
        let mut stored = vec![0; Encoder::stored_bytes_max(shuffled.len())];
        Encoder::default().encode(&shuffled, capacity, &mut stored);
        stored
    }

    fn round_trip<T: Scalar + PartialEq + std::fmt::Debug>(elements: &[T], spare: usize) {
        let capacity = elements.len() + spare;
        let (mut bytes, mut by_element, mut by_byte) = (Vec::new(), Vec::new(), Vec::new());
        append_bytes(elements, &mut bytes);
        shuffle(elements, capacity, &mut by_element);
        shuffle_bytes(&bytes, T::BYTES, capacity, &mut by_byte);
        assert_eq!(by_byte, by_element);
        let stored = encoded(elements, capacity);
        let mut read = vec![T::default(); capacity];
        Decoder::default().decode(&stored, capacity, &mut read).unwrap();
        assert_eq!(&read[..elements.len()], elements);
        assert!(read[elements.len()..].iter().all(|&element| element == T::default()));
        let mut first = vec![T::default(); elements.len() / 2];
        Decoder::default().decode(&stored, capacity, &mut first).unwrap();
        assert_eq!(first, elements[..first.len()]);
        assert_eq!(Decoder::default().decode(&stored, capacity + 1, &mut read), None);
    }

    proptest! {
        #[test]
        fn chunks_survive_the_round_trip(
            small in prop::collection::vec(any::<u8>(), 1..300),
            large in prop::collection::vec(any::<u64>(), 1..300),
            spare in 0usize..5,
        ) {
            round_trip(&small, spare);
            round_trip(&large, spare);
        }

        /// The decoder alone cannot promise this: Adler's checksum in the zlib frame is equal for some chunks
        /// that differ in three elements, which one flipped bit of a back reference can cause.
        #[test]
        fn a_flipped_bit_changes_the_checksum(
            elements in prop::collection::vec(0u32..100, 1..300),
            bit in any::<usize>(),
        ) {
            let mut stored = encoded(&elements, elements.len());
            let bit = bit % (8 * stored.len());
            stored[bit / 8] ^= 1 << (bit % 8);
            let (compressed, checksum) = stored.split_at(stored.len() - CHECKSUM_BYTES);
            prop_assert_ne!(&fletcher32(compressed).to_le_bytes(), checksum);
            // Without the caller's digest the bytes are hostile: an answer or a refusal, but an end.
            let mut read = vec![0u32; elements.len()];
            let _ = Decoder::default().decode(&stored, elements.len(), &mut read);
        }
    }

    /// Reads a chunk that the HDF5 library compressed, and compares its checksum with the one computed by this crate.
    fn as_the_library<T: Scalar + PartialEq + std::fmt::Debug>(elements: &[T]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        let file = hdf5::File::create(&path).unwrap();
        let column = file.new_dataset::<T>().shape(elements.len()).chunk(elements.len());
        let column = column.shuffle().deflate(4).fletcher32().create("column").unwrap();
        column.write_raw(elements).unwrap();
        file.flush().unwrap();
        let chunk = column.chunk_info(0).unwrap();
        let stored = &std::fs::read(&path).unwrap()[chunk.addr as usize..][..chunk.size as usize];
        let mut read = vec![T::default(); elements.len()];
        Decoder::default().decode(stored, elements.len(), &mut read).unwrap();
        assert_eq!(read, elements);
        let (compressed, checksum) = stored.split_at(stored.len() - CHECKSUM_BYTES);
        assert_eq!(fletcher32(compressed).to_le_bytes(), checksum, "{} bytes", compressed.len());
    }

    #[test]
    fn chunks_of_the_library_are_decoded_with_equal_checksums() {
        // The compressed sizes are odd and even, and both longer and shorter than a block of sums.
        for n in [1, 2, 3, 100, 101, 5000, 5001] {
            let mixed = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            as_the_library(&(0..n).map(|at| mixed(at) as u8).collect::<Vec<_>>());
            as_the_library(&(0..n).map(|at| mixed(at) as u16).collect::<Vec<_>>());
            as_the_library(&(0..n).map(|at| mixed(at) as u32).collect::<Vec<_>>());
            as_the_library(&(0..n).map(mixed).collect::<Vec<_>>());
        }
    }

    #[test]
    fn hostile_bytes_are_refused_as_a_chunk() {
        let mut read = [0u16; 8];
        for stored in [&b""[..], b"abc", b"\0\0\0\0", b"garbage and more garbage"] {
            assert_eq!(Decoder::default().decode(stored, 8, &mut read), None);
        }
    }
}
