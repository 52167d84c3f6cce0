//! Computes a Huffman code of limited length from symbol frequencies. As in deflate, the lengths determine
//! the code.

/// The bits of a symbol, and their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Code(u32);

impl Code {
    pub(super) const fn new(bits: u32, n_bits: u32) -> Self {
        Self(n_bits << 24 | bits)
    }

    #[inline(always)]
    pub(super) fn bits(self) -> u64 {
        u64::from(self.0 & 0x00ff_ffff)
    }

    #[inline(always)]
    pub(super) fn n_bits(self) -> u32 {
        self.0 >> 24
    }
}

/// The code length of each symbol, at most `longest`; 0 for a symbol that does not occur. At least two
/// symbols have a code, because some decoders refuse a code with one.
pub(super) fn lengths<const N: usize>(frequencies: &[u32; N], longest: u8) -> [u8; N] {
    let mut symbols: Vec<usize> = (0..N).filter(|&symbol| frequencies[symbol] > 0).collect();
    let others = (0..N).filter(|&symbol| frequencies[symbol] == 0);
    symbols.extend(others.take(2usize.saturating_sub(symbols.len())));
    symbols.sort_unstable_by_key(|&symbol| (frequencies[symbol], symbol));
    let sorted: Vec<u32> = symbols.iter().map(|&symbol| frequencies[symbol]).collect();
    let counts = limited(&depths(&sorted), longest);
    // The rarest symbols have the longest codes.
    let mut rarest = symbols.iter();
    let mut lengths = [0; N];
    for length in (1..=longest).rev() {
        for &symbol in rarest.by_ref().take(counts[usize::from(length)]) {
            lengths[symbol] = length;
        }
    }
    lengths
}

/// Depth in Huffman's tree for each of two or more ascending frequencies.
fn depths(ascending: &[u32]) -> Vec<u32> {
    let n = ascending.len();
    // Leaves, then inner nodes in the order of their creation, which is also the order of their frequency.
    let mut frequencies: Vec<u64> = ascending.iter().map(|&n| u64::from(n)).collect();
    let mut parents = vec![0; 2 * n - 1];
    let (mut leaf, mut inner) = (0, n);
    while frequencies.len() < 2 * n - 1 {
        let mut sum = 0;
        for _ in 0..2 {
            let takes_leaf =
                leaf < n && (inner == frequencies.len() || frequencies[leaf] <= frequencies[inner]);
            let rarest = if takes_leaf { &mut leaf } else { &mut inner };
            sum += frequencies[*rarest];
            parents[*rarest] = frequencies.len();
            *rarest += 1;
        }
        frequencies.push(sum);
    }
    let mut depths = vec![0; 2 * n - 1];
    for node in (0..2 * n - 2).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    depths.truncate(n);
    depths
}

/// Number of codes of each length up to `longest`.
fn limited(depths: &[u32], longest: u8) -> Vec<usize> {
    let longest = usize::from(longest);
    let mut counts = vec![0; longest + 1];
    depths.iter().for_each(|&depth| counts[(depth as usize).min(longest)] += 1);
    // Truncated codes exceed the code space, in which a code of length l has a share of 2^-l. Each step
    // lengthens a shorter code by one, and one of the longest codes becomes its sibling.
    let mut taken: usize = counts.iter().enumerate().map(|(length, n)| n << (longest - length)).sum();
    while taken > 1 << longest {
        let shorter = (1..longest).rev().find(|&length| counts[length] > 0);
        let shorter = shorter.expect("there are no more symbols than codes of the longest length");
        counts[longest] -= 1;
        counts[shorter] -= 1;
        counts[shorter + 1] += 2;
        taken -= 1;
    }
    counts
}

/// The code for these lengths: short codes before long ones, and codes of one length in the order of symbols.
/// The first bit of a code is the least significant.
pub(super) fn code<const N: usize>(lengths: &[u8; N]) -> [Code; N] {
    let mut next = [0u32; 16];
    for length in 1..next.len() {
        let shorter = lengths.iter().filter(|&&n| usize::from(n) == length - 1 && n > 0).count() as u32;
        next[length] = (next[length - 1] + shorter) << 1;
    }
    lengths.map(|length| {
        if length == 0 {
            return Code::default();
        }
        let bits = next[usize::from(length)];
        next[usize::from(length)] += 1;
        Code::new(bits.reverse_bits() >> (32 - u32::from(length)), u32::from(length))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Share of the code space that these lengths use, in units of 2^-15.
    fn taken(lengths: &[u8]) -> u32 {
        lengths.iter().filter(|&&length| length > 0).map(|&length| 1 << (15 - length)).sum()
    }

    #[test]
    fn frequent_symbols_have_short_codes() {
        assert_eq!(lengths(&[45, 13, 12, 16, 9, 5], 15), [1, 3, 3, 3, 4, 4]);
        assert_eq!(lengths(&[0, 7, 0, 0], 15), [1, 1, 0, 0]);
        assert_eq!(lengths(&[0, 0, 0, 0], 15), [1, 1, 0, 0]);
    }

    #[test]
    fn codes_equal_the_example_of_the_standard() {
        // The example of RFC 1951, 3.2.2. Codes are written with their first bit first.
        let written = ["010", "011", "100", "101", "110", "00", "1110", "1111"];
        let expected = written.map(|bits| {
            let reversed: String = bits.chars().rev().collect();
            Code::new(u32::from_str_radix(&reversed, 2).unwrap(), bits.len() as u32)
        });
        assert_eq!(code(&[3, 3, 3, 3, 3, 2, 4, 4]), expected);
    }

    proptest! {
        #[test]
        fn the_whole_code_space_is_used(frequencies in prop::array::uniform32(0u32..1000), shift in 0u32..20) {
            let frequencies = frequencies.map(|n| n >> (n % (shift + 1)));
            for longest in [5, 7, 14] {
                let lengths = lengths(&frequencies, longest);
                prop_assert_eq!(taken(&lengths), 1 << 15);
                prop_assert!(lengths.iter().all(|&length| length <= longest));
                for (symbol, &n) in frequencies.iter().enumerate() {
                    prop_assert!(n == 0 || lengths[symbol] > 0);
                }
            }
        }
    }
}
