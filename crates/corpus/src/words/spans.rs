//! Finds the words of a text: the start and the length of each.

/// A word in a text. A text is no longer than a record line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub from: u32,
    /// Length in bytes.
    pub length: u32,
}

impl Span {
    /// The bytes of the word.
    #[inline]
    pub fn of(self, text: &[u8]) -> &[u8] {
        &text[self.from as usize..][..self.length as usize]
    }
}

/// Number of bytes whose space mask fills one `u64`.
const BLOCK: usize = 64;
/// Number of spans written at once, whether used or not. Most blocks have no more words.
const STRIDE: usize = 12;

/// Capacity that the search needs for the words of a text of `text_bytes` bytes.
pub fn room(text_bytes: usize) -> usize {
    // Each word except the last is followed by a space.
    text_bytes / 2 + 1 + STRIDE
}

/// Writes the spans of the words of `text`, which are separated by spaces, to the start of `words`. `words`
/// has at least [`room`] elements. Returns the number of words.
pub fn find_words(text: &[u8], words: &mut [Span]) -> usize {
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    let mut found = FoundSpans { words, n_words: 0, from: 0 };
    for (block, begin) in blocks.iter().zip((0..).step_by(BLOCK)) {
        found.add(begin, spaces(block));
    }
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    found.add((BLOCK * blocks.len()) as u32, spaces(&last));
    found.n_words
}

struct FoundSpans<'a> {
    words: &'a mut [Span],
    n_words: usize,
    /// Offset of the next word.
    from: u32,
}

impl FoundSpans<'_> {
    /// Ends a word at each space of the block at `begin`.
    #[inline]
    fn add(&mut self, begin: u32, mut spaces: u64) {
        let n_spaces = spaces.count_ones() as usize;
        let mut done = 0;
        while done < n_spaces {
            for _ in 0..STRIDE {
                // After the last space the loop writes spans that are not counted.
                let is_space = spaces != 0;
                let to = begin + (spaces.trailing_zeros() & (BLOCK as u32 - 1));
                let length = to.wrapping_sub(self.from);
                self.words[self.n_words] = Span { from: self.from, length };
                self.n_words += usize::from(is_space & (length != 0));
                self.from = if is_space { to + 1 } else { self.from };
                spaces &= spaces.wrapping_sub(1);
            }
            done += STRIDE;
        }
    }
}

/// The spaces of a block, as a mask: bit i describes byte i. Processes eight bytes at a time.
#[inline]
fn spaces(block: &[u8; BLOCK]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    // The product moves the lowest bit of byte i to bit 56 + i, and no two bits collide.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    block.as_chunks::<8>().0.iter().rev().fold(0, |mask, &bytes| {
        let other = u64::from_le_bytes(bytes) ^ (ONES * b' ' as u64);
        // The highest bit of each byte that is not a space.
        let other = ((other & (ONES * 0x7f)) + (ONES * 0x7f)) | other;
        mask << 8 | (!other >> 7 & ONES).wrapping_mul(GATHER) >> 56
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spaces_separate_words(text in "( |!|a|é|aaaaaaaaaaaaaaa){0,40}|[a ]{0,300}") {
            let mut words = vec![Span { from: 7, length: 7 }; room(text.len())];
            let n_words = find_words(text.as_bytes(), &mut words);
            let found: Vec<&[u8]> = words[..n_words].iter().map(|word| word.of(text.as_bytes())).collect();
            let expected: Vec<&[u8]> =
                text.split(' ').filter(|word| !word.is_empty()).map(str::as_bytes).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn spaces_are_distinguished_from_all_other_bytes(block in prop::array::uniform32(any::<u8>()), spread in any::<u64>()) {
            let mut bytes = [0; BLOCK];
            for (i, byte) in bytes.iter_mut().enumerate() {
                *byte = if spread >> i & 1 == 1 { b' ' } else { block[i / 2] };
            }
            let found: Vec<bool> = (0..BLOCK).map(|i| spaces(&bytes) >> i & 1 == 1).collect();
            prop_assert_eq!(found, bytes.map(|byte| byte == b' '));
        }
    }
}
