//! Steps 3 and 4 for ASCII, and step 5: converts folded text into words joined by one space.
//!
//! Nearly every byte of a review is kept, so bytes are processed by blocks. Two `u64` masks mark the spaces
//! and apostrophes of a block, and shifts of the masks find the bytes to drop.

use super::Rules;
use super::masks::{BLOCK, Masks};

/// Appends the words of `text` to `out`. Returns false if there are none.
pub(super) fn join(rules: Rules, text: &[u8], spaced: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
    match rules {
        Rules::Letters => space_out(text, spaced),
        Rules::Punctuation => space_out_symbols(text, spaced),
    }
    let first = out.len();
    out.resize(first + spaced.len(), 0);
    let mut end = first;
    // The first word needs no space before it, so the start is treated as a space.
    let mut behind_space = 1;
    for start in (0..spaced.len() - BLOCK).step_by(BLOCK) {
        let mut masks = Masks::of(&spaced[start..]);
        let letters = !(masks.spaces | masks.apostrophes);
        // Most apostrophes are single, between two letters of one block. These are kept.
        let doubtful = masks.apostrophes & !(letters << 1 & letters >> 1);
        if doubtful != 0 {
            blank_edge_apostrophes(spaced, start, doubtful);
            masks = Masks::of(&spaced[start..]);
        }
        let gone = masks.spaces & (masks.spaces << 1 | behind_space);
        behind_space = masks.spaces >> (BLOCK - 1);
        end = copy_block(&spaced[start..], gone, out, end);
    }
    if end > first && out[end - 1] == b' ' {
        end -= 1;
    }
    out.truncate(end);
    end > first
}

/// Writes `text` to `spaced` in lower case, with a space in place of each byte that is not part of a word. At
/// least one block of spaces follows.
fn space_out(text: &[u8], spaced: &mut Vec<u8>) {
    let (blocks, tail) = text.as_chunks::<BLOCK>();
    let mut padded_tail = [b' '; BLOCK];
    padded_tail[..tail.len()].copy_from_slice(tail);
    spaced.clear();
    for block in blocks {
        spaced.extend_from_slice(&block.map(lower_or_space));
    }
    spaced.extend_from_slice(&padded_tail.map(lower_or_space));
    spaced.extend_from_slice(&[b' '; BLOCK]);
}

/// As [`space_out`], with digits in words, and punctuation and symbols between spaces.
fn space_out_symbols(text: &[u8], spaced: &mut Vec<u8>) {
    spaced.clear();
    for &byte in text {
        match byte {
            b'0'..=b'9' | b'\'' => spaced.push(byte),
            _ if byte.is_ascii_punctuation() => spaced.extend_from_slice(&[b' ', byte, b' ']),
            _ => spaced.push(lower_or_space(byte)),
        }
    }
    spaced.resize(spaced.len().next_multiple_of(BLOCK) + BLOCK, b' ');
}

/// Bytes beyond ASCII belong to characters that stay, and are kept.
fn lower_or_space(byte: u8) -> u8 {
    let lower = byte | 0x20;
    if lower.is_ascii_lowercase() {
        lower
    } else if byte == b'\'' || !byte.is_ascii() {
        byte
    } else {
        b' '
    }
}

/// Replaces runs of apostrophes that start in the block at `start` and lack a letter before or after.
fn blank_edge_apostrophes(spaced: &mut [u8], start: usize, apostrophes: u64) {
    let mut begins = apostrophes & !(apostrophes << 1);
    while begins != 0 {
        let begin = start + begins.trailing_zeros() as usize;
        begins &= begins - 1;
        let before = begin.checked_sub(1).map_or(b' ', |before| spaced[before]);
        // The run started in an earlier block and was handled there. Following a long run to its end from
        // each block would take quadratic time.
        if before == b'\'' {
            continue;
        }
        let end = begin + spaced[begin..].iter().take_while(|&&byte| byte == b'\'').count();
        if before == b' ' || spaced[end] == b' ' {
            spaced[begin..end].fill(b' ');
        }
    }
}

/// Writes the first block of `spaced` without the bytes marked in `gone` to `out` at `end`. Returns the new
/// end.
///
/// Copies whole blocks, each over the excess of the previous copy, because a copy of constant length is
/// cheap.
fn copy_block(spaced: &[u8], mut gone: u64, out: &mut [u8], mut end: usize) -> usize {
    let mut from = 0;
    loop {
        out[end..end + BLOCK].copy_from_slice(&spaced[from..from + BLOCK]);
        let to = gone.trailing_zeros() as usize;
        end += to - from;
        if to == BLOCK {
            return end;
        }
        from = to + (gone >> to).trailing_ones() as usize;
        if from == BLOCK {
            return end;
        }
        gone &= u64::MAX << from;
    }
}
