//! A deflate encoder (RFC 1951) for shuffled chunks. It is five times as fast as a general compressor, and
//! its output is at most as large.
//!
//! The first bytes of all elements, then their second bytes and so on, contain no repeated phrases, and a
//! general compressor searches for them in vain. They contain bytes of uneven frequency, and long runs of one
//! byte. A block therefore contains one byte position of all elements, and has its own code. Its matches are
//! runs, at distance 1. A block that a code would hardly shrink is stored. Every deflate decoder reads the
//! result, and its bytes depend only on the input.

mod bits;
mod huffman;

use libdeflater::adler32;

use self::bits::Bits;
use self::huffman::{Code, code, lengths};

/// The shortest run that is searched: a word of eight bytes equals the word that starts one byte earlier.
const RUN: usize = size_of::<u64>();
const MATCH_BYTES_MAX: usize = 258;
const MATCH_BYTES_MIN: usize = 3;
/// Minimum size of a block, since each block has the cost of its code.
const BLOCK_BYTES_MIN: usize = 4 << 10;
const STORED_BYTES_MAX: usize = u16::MAX as usize;

/// 256 literals, the end of a block, and the lengths of matches.
const SYMBOLS: usize = 286;
const END_OF_BLOCK: usize = 256;
/// Chosen so that four codes and up to seven pending bits fit in 64 bits.
const LITERAL_BITS_MAX: u8 = 14;
const DISTANCE_BITS: u32 = 1;

/// Number of symbols that encode code lengths. 0 to 15 are literal lengths. 16 repeats the previous length 3
/// to 6 times, 17 encodes 3 to 10 zeros, and 18 encodes 11 to 138 zeros.
const LENGTH_SYMBOLS: usize = 19;
const REPEAT: u8 = 16;
const ZEROS: u8 = 17;
const MANY_ZEROS: u8 = 18;
const LENGTH_BITS_MAX: u8 = 7;
/// The order of the lengths' own code lengths in the header of a block.
const LENGTH_ORDER: [usize; LENGTH_SYMBOLS] =
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Compresses and reuses its memory.
#[derive(Default)]
pub(crate) struct Deflater {
    pieces: Vec<Piece>,
}

/// Literal bytes, then a run of the last of them.
struct Piece {
    literals: usize,
    run: usize,
}

impl Deflater {
    /// Maximum compressed size of this number of bytes.
    pub(crate) fn bytes_max(bytes: usize) -> usize {
        bytes + bytes / 512 + 64
    }

    /// Writes a zlib frame of `bytes` to `out`, which has [`Deflater::bytes_max`] bytes. Returns the length
    /// of the frame. `block_bytes` is the best block size for these bytes.
    pub(crate) fn zlib(&mut self, bytes: &[u8], block_bytes: usize, out: &mut [u8]) -> usize {
        // Deflate with a window of 32 KiB, fastest compression level.
        const HEAD: [u8; 2] = [0x78, 0x01];
        out[..HEAD.len()].copy_from_slice(&HEAD);
        let mut bits = Bits::new(out, HEAD.len());
        let block_bytes = if block_bytes < BLOCK_BYTES_MIN { bytes.len() } else { block_bytes }.max(1);
        let mut from = 0;
        loop {
            let to = (from + block_bytes).min(bytes.len());
            self.block(bytes, from, to, &mut bits);
            from = to;
            if from == bytes.len() {
                break;
            }
        }
        let end = bits.align();
        out[end..][..4].copy_from_slice(&adler32(bytes).to_be_bytes());
        end + 4
    }

    fn block(&mut self, bytes: &[u8], from: usize, to: usize, bits: &mut Bits<'_>) {
        let is_last = to == bytes.len();
        let (block, stored_bits) = (&bytes[from..to], 8 * (to - from));
        find_runs(bytes, from, to, &mut self.pieces);
        let frequencies = self.frequencies(block);
        let lengths = lengths(&frequencies, LITERAL_BITS_MAX);
        let head = Head::of(&lengths);
        let bits_of = |(symbol, n): (usize, &u32)| {
            *n as usize * (usize::from(lengths[symbol]) + extra_bits_and_distance(symbol))
        };
        let coded_bits = head.n_bits + frequencies.iter().enumerate().map(bits_of).sum::<usize>();
        if coded_bits < stored_bits - stored_bits / 32 {
            head.write(is_last, bits);
            self.write(block, &code(&lengths), bits);
        } else {
            store(block, is_last, bits);
        }
    }

    /// Number of occurrences of each symbol.
    fn frequencies(&self, block: &[u8]) -> [u32; SYMBOLS] {
        // Four counters per byte, because in a run each increment of a single counter would wait for the
        // previous one.
        let mut counts = [[0u32; 256]; 4];
        let mut frequencies = [0; SYMBOLS];
        let mut at = 0;
        for piece in &self.pieces {
            let (fours, rest) = block[at..at + piece.literals].as_chunks::<4>();
            for four in fours {
                (0..4).for_each(|i| counts[i][usize::from(four[i])] += 1);
            }
            rest.iter().for_each(|&byte| counts[0][usize::from(byte)] += 1);
            matches(piece.run, |length| frequencies[LENGTHS[length].symbol] += 1);
            at += piece.literals + piece.run;
        }
        for (byte, frequency) in frequencies[..256].iter_mut().enumerate() {
            *frequency = counts.iter().map(|counts| counts[byte]).sum();
        }
        frequencies[END_OF_BLOCK] = 1;
        frequencies
    }

    /// Writes the symbols of a block.
    fn write(&self, block: &[u8], code: &[Code; SYMBOLS], bits: &mut Bits<'_>) {
        let literals: &[Code; 256] = code[..256].first_chunk().expect("there are 286");
        let mut at = 0;
        for piece in &self.pieces {
            let (fours, rest) = block[at..at + piece.literals].as_chunks::<4>();
            for four in fours {
                four.iter().for_each(|&byte| bits.add(literals[usize::from(byte)]));
                bits.flush();
            }
            for &byte in rest {
                bits.put(literals[usize::from(byte)]);
            }
            matches(piece.run, |length| {
                let Length { symbol, extra_bits, base } = LENGTHS[length];
                bits.add(code[symbol]);
                bits.add(Code::new((length - base) as u32, extra_bits));
                bits.put(Code::new(0, DISTANCE_BITS));
            });
            at += piece.literals + piece.run;
        }
        bits.put(code[END_OF_BLOCK]);
    }
}

/// Splits the bytes from `from` to `to` into pieces.
fn find_runs(bytes: &[u8], from: usize, to: usize, pieces: &mut Vec<Piece>) {
    let word = |at: usize| bytes[at..].first_chunk::<RUN>();
    // Whether `RUN` bytes from here equal the byte before.
    let is_run = |at: usize| at + RUN <= to && word(at) == word(at - 1);
    pieces.clear();
    // The first byte has no predecessor.
    let (mut literals_from, mut at) = (from, from.max(1));
    while at + RUN <= to {
        if !is_run(at) {
            at += RUN;
            continue;
        }
        let mut end = at + RUN;
        while at > literals_from.max(1) && bytes[at - 1] == bytes[at - 2] {
            at -= 1;
        }
        while is_run(end) {
            end += RUN;
        }
        while end < to && bytes[end] == bytes[end - 1] {
            end += 1;
        }
        pieces.push(Piece { literals: at - literals_from, run: end - at });
        (literals_from, at) = (end, end);
    }
    pieces.push(Piece { literals: to - literals_from, run: 0 });
}

/// Splits a run, which is 0 or at least [`RUN`], into valid match lengths.
fn matches(mut run: usize, mut each: impl FnMut(usize)) {
    while run > 0 {
        let mut length = run.min(MATCH_BYTES_MAX);
        if (1..MATCH_BYTES_MIN).contains(&(run - length)) {
            length -= MATCH_BYTES_MIN;
        }
        each(length);
        run -= length;
    }
}

/// Encoding of a match length.
#[derive(Clone, Copy)]
struct Length {
    symbol: usize,
    extra_bits: u32,
    /// The smallest length of this symbol. The extra bits are added to it.
    base: usize,
}

/// By length.
const LENGTHS: [Length; MATCH_BYTES_MAX + 1] = {
    let mut lengths = [Length { symbol: 0, extra_bits: 0, base: 0 }; MATCH_BYTES_MAX + 1];
    let (mut symbol, mut base) = (END_OF_BLOCK + 1, MATCH_BYTES_MIN);
    while base < MATCH_BYTES_MAX {
        let extra_bits = extra_bits(symbol);
        let mut length = base;
        while length < base + (1 << extra_bits) && length < MATCH_BYTES_MAX {
            lengths[length] = Length { symbol, extra_bits, base };
            length += 1;
        }
        (symbol, base) = (symbol + 1, base + (1 << extra_bits));
    }
    // The longest match has its own symbol.
    lengths[MATCH_BYTES_MAX] = Length { symbol: SYMBOLS - 1, extra_bits: 0, base: MATCH_BYTES_MAX };
    lengths
};

/// Number of extra bits of a length: from the ninth symbol, one more per four symbols.
const fn extra_bits(symbol: usize) -> u32 {
    let of_lengths = symbol - END_OF_BLOCK - 1;
    if of_lengths < 8 || symbol == SYMBOLS - 1 { 0 } else { of_lengths as u32 / 4 - 1 }
}

/// Number of bits after a symbol.
fn extra_bits_and_distance(symbol: usize) -> usize {
    if symbol > END_OF_BLOCK { (extra_bits(symbol) + DISTANCE_BITS) as usize } else { 0 }
}

/// The header of a block: the lengths of its codes, themselves encoded.
struct Head {
    n_symbols: usize,
    n_lengths: usize,
    own_lengths: [u8; LENGTH_SYMBOLS],
    /// Symbols of lengths, each with the value of its extra bits.
    length_symbols: Vec<(u8, u32)>,
    n_bits: usize,
}

impl Head {
    fn of(lengths: &[u8; SYMBOLS]) -> Self {
        let n_symbols = lengths.iter().rposition(|&length| length > 0).map_or(0, |last| last + 1);
        // There is one distance, with a code of one bit.
        let mut all = lengths[..n_symbols].to_vec();
        all.push(DISTANCE_BITS as u8);
        let length_symbols = length_symbols(&all);
        let mut frequencies = [0; LENGTH_SYMBOLS];
        length_symbols.iter().for_each(|&(symbol, _)| frequencies[usize::from(symbol)] += 1);
        let own_lengths = huffman::lengths(&frequencies, LENGTH_BITS_MAX);
        let n_lengths = LENGTH_ORDER.iter().rposition(|&symbol| own_lengths[symbol] > 0);
        let n_lengths = n_lengths.map_or(0, |last| last + 1).max(4);
        let told_bits = |&(symbol, _): &(u8, u32)| {
            usize::from(own_lengths[usize::from(symbol)]) + extra_bits_of_lengths(symbol) as usize
        };
        let n_bits = 3 + 5 + 5 + 4 + 3 * n_lengths + length_symbols.iter().map(told_bits).sum::<usize>();
        Self { n_symbols, n_lengths, own_lengths, length_symbols, n_bits }
    }

    fn write(&self, is_last: bool, bits: &mut Bits<'_>) {
        const DYNAMIC: u32 = 2;
        bits.put(Code::new(u32::from(is_last) | DYNAMIC << 1, 3));
        bits.put(Code::new((self.n_symbols - END_OF_BLOCK - 1) as u32, 5));
        bits.put(Code::new(0, 5));
        bits.put(Code::new((self.n_lengths - 4) as u32, 4));
        for &symbol in &LENGTH_ORDER[..self.n_lengths] {
            bits.put(Code::new(u32::from(self.own_lengths[symbol]), 3));
        }
        let code: [Code; LENGTH_SYMBOLS] = code(&self.own_lengths);
        for &(symbol, more) in &self.length_symbols {
            bits.put(code[usize::from(symbol)]);
            bits.put(Code::new(more, extra_bits_of_lengths(symbol)));
        }
    }
}

fn extra_bits_of_lengths(symbol: u8) -> u32 {
    match symbol {
        REPEAT => 2,
        ZEROS => 3,
        MANY_ZEROS => 7,
        _ => 0,
    }
}

/// Encodes code lengths.
fn length_symbols(lengths: &[u8]) -> Vec<(u8, u32)> {
    let mut length_symbols = Vec::with_capacity(lengths.len());
    for alike in lengths.chunk_by(|one, other| one == other) {
        let (length, mut n) = (alike[0], alike.len());
        if length > 0 {
            length_symbols.push((length, 0));
            n -= 1;
        }
        while n > 0 {
            let (symbol, least, most) = match (length, n) {
                (0, 11..) => (MANY_ZEROS, 11, 138),
                (0, 3..) => (ZEROS, 3, 10),
                (1.., 3..) => (REPEAT, 3, 6),
                _ => (length, 0, 1),
            };
            let now = n.min(most);
            length_symbols.push((symbol, if least > 0 { (now - least) as u32 } else { 0 }));
            n -= now;
        }
    }
    length_symbols
}

/// Writes a stored block.
fn store(block: &[u8], is_last: bool, bits: &mut Bits<'_>) {
    const STORED: u32 = 0;
    let mut left = block;
    loop {
        let (part, rest) = left.split_at(left.len().min(STORED_BYTES_MAX));
        let is_last = is_last && rest.is_empty();
        bits.put(Code::new(u32::from(is_last) | STORED << 1, 3));
        bits.align();
        let n = part.len() as u16;
        bits.bytes(&n.to_le_bytes());
        bits.bytes(&(!n).to_le_bytes());
        bits.bytes(part);
        if rest.is_empty() {
            return;
        }
        left = rest;
    }
}

#[cfg(test)]
mod tests {
    use libdeflater::{CompressionLvl, Compressor, Decompressor};
    use proptest::prelude::*;

    use super::*;

    fn compressed(bytes: &[u8], block_bytes: usize) -> Vec<u8> {
        let mut out = vec![0; Deflater::bytes_max(bytes.len())];
        let n = Deflater::default().zlib(bytes, block_bytes, &mut out);
        out.truncate(n);
        out
    }

    fn round_trip(bytes: &[u8], block_bytes: usize) -> usize {
        let compressed = compressed(bytes, block_bytes);
        let mut read = vec![0; bytes.len()];
        let n = Decompressor::new().zlib_decompress(&compressed, &mut read).unwrap();
        assert!(n == bytes.len() && read == bytes, "{} bytes in blocks of {block_bytes}", bytes.len());
        // zlib's decoder checks other properties than libdeflate's.
        let mut other = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&compressed[..]), &mut other).unwrap();
        assert!(other == bytes);
        compressed.len()
    }

    /// Bytes of several kinds: runs, few values, all values, and values of which each is half as frequent as
    /// the one before.
    fn stretches() -> impl Strategy<Value = Vec<u8>> {
        let skewed = (any::<u32>(), any::<u8>())
            .prop_map(|(n, base)| (n.trailing_zeros() as u8).wrapping_mul(7).wrapping_add(base & 1));
        let stretch = prop_oneof![
            (any::<u8>(), 0usize..3000).prop_map(|(byte, n)| vec![byte; n]),
            prop::collection::vec(0u8..4, 0..600),
            prop::collection::vec(any::<u8>(), 0..600),
            prop::collection::vec(skewed, 0..3000),
        ];
        prop::collection::vec(stretch, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn bytes_survive_the_round_trip(bytes in stretches(), block_bytes in 0usize..20_000) {
            round_trip(&bytes, block_bytes);
        }
    }

    #[test]
    fn runs_of_every_length_survive() {
        for n in (0..600).chain([65_534, 65_535, 65_536, 131_071]) {
            for bytes in [vec![0; n], [vec![1, 2, 3], vec![7; n], vec![8]].concat()] {
                round_trip(&bytes, 64 << 10);
            }
        }
    }

    #[test]
    fn incompressible_bytes_are_stored() {
        let mut n = 1u64;
        let mut random = || {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (n >> 56) as u8
        };
        for length in [1, 5_000, 65_535, 65_536, 200_000] {
            let bytes: Vec<u8> = (0..length).map(|_| random()).collect();
            let more = round_trip(&bytes, 64 << 10) - length;
            // A block is one byte longer than the maximum of a stored block.
            assert!(more <= 6 + 10 * length.div_ceil(64 << 10), "{more} bytes more than {length}");
        }
    }

    #[test]
    fn codes_longer_than_the_limit_are_shortened() {
        // Fibonacci frequencies produce the longest codes: for 22 values, up to 21 bits.
        let (mut bytes, mut one, mut other) = (Vec::new(), 1, 1);
        for value in 0..22u8 {
            bytes.extend(std::iter::repeat_n([value, 200 + value], one).flatten());
            (one, other) = (other, one + other);
        }
        round_trip(&bytes, bytes.len());
    }

    #[test]
    fn shuffled_ids_are_no_larger_than_those_of_the_library() {
        // Ids with the distribution of words: the n-th most frequent has a share of 1/n.
        let mut n = 1u64;
        let ids: Vec<u16> = (0..64 << 10)
            .map(|_| {
                n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (10_000f64.powf((n >> 11) as f64 / (1u64 << 53) as f64)) as u16
            })
            .collect();
        let mut shuffled = Vec::new();
        crate::chunk::shuffle(&ids, ids.len(), &mut shuffled);
        let ours = round_trip(&shuffled, ids.len());
        let mut out = vec![0; 2 * shuffled.len()];
        let librarys = Compressor::new(CompressionLvl::fastest()).zlib_compress(&shuffled, &mut out).unwrap();
        assert!(ours <= librarys, "{ours} bytes, {librarys} by the library");
    }
}
