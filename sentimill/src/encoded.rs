//! Encodes reviews and rows as bytes, in which form they are stored in blocks of memory or on disk.
//!
//! Little-endian. A review: hash u64, check u64, rating u8, length of its words in bytes u32, its words. A
//! row: hash u64, votes (the rating as u8 if the text has one review, or 0 and five u32), split u16, size of the
//! text u32, length of its words in bytes u32, its words. A word: its code as u16; for a larger code [`FAR`] and the
//! code as u32; for a word without a code [`NONE`], its length as u32, its bytes. Stop words are
//! excluded, unless texts are written: then a row has all words of its text.
//!
//! The check is a second hash with a random seed. Two reviews have the same text if both hash and check are
//! equal.

use corpus::record::Votes;
use corpus::words::Span;

/// Codes below this are stored in two bytes.
const FAR: u16 = u16::MAX - 1;
const NONE: u16 = u16::MAX;

/// In place of the code of a word without one.
pub const SPELT: u32 = u32::MAX;

/// A word of a text that is not a stop word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coded {
    /// Its code, or [`SPELT`].
    pub code: u32,
    /// Its span in the text.
    pub span: Span,
}

/// An encoded review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedReview<'a> {
    /// XXH3-64 of the cleaned text.
    pub hash: u64,
    /// The check: a hash of the cleaned text with a random seed.
    pub check: u64,
    /// The rating.
    pub rating: u8,
    /// The words that are not stop words.
    pub words: &'a [u8],
}

impl EncodedReview<'_> {
    /// Whether `bytes` starts with a complete review.
    pub fn is_whole(bytes: &[u8]) -> bool {
        match bytes.get(REVIEW_BYTES - 4..).and_then(|rest| rest.split_first_chunk()) {
            Some((&length, words)) => words.len() >= u32::from_le_bytes(length) as usize,
            None => false,
        }
    }
}

/// Size of a review without its words.
pub const REVIEW_BYTES: usize = 8 + 8 + 1 + 4;

/// Encoded size of these words.
pub fn words_bytes(words: &[Coded]) -> usize {
    let long = words.iter().filter(|word| word.code >= u32::from(FAR));
    let more = |word: &Coded| if word.code == SPELT { 4 + word.span.length as usize } else { 4 };
    2 * words.len() + long.map(more).sum::<usize>()
}

/// Appends a review with these words of `text`, whose encoded size is passed too.
pub fn write_review(
    out: &mut Vec<u8>,
    (hash, check, rating): (u64, u64, u8),
    text: &[u8],
    words: &[Coded],
    words_bytes: usize,
) {
    out.extend_from_slice(&hash.to_le_bytes());
    out.extend_from_slice(&check.to_le_bytes());
    out.push(rating);
    out.extend_from_slice(&(words_bytes as u32).to_le_bytes());
    if words_bytes == 2 * words.len() {
        let from = out.len();
        out.resize(from + words_bytes, 0);
        let (codes, _) = out[from..].as_chunks_mut();
        codes.iter_mut().zip(words).for_each(|(code, word)| *code = (word.code as u16).to_le_bytes());
        return;
    }
    for &Coded { code, span } in words {
        if code < u32::from(FAR) {
            out.extend_from_slice(&(code as u16).to_le_bytes());
        } else if code == SPELT {
            out.extend_from_slice(&NONE.to_le_bytes());
            out.extend_from_slice(&span.length.to_le_bytes());
            out.extend_from_slice(span.of(text));
        } else {
            out.extend_from_slice(&FAR.to_le_bytes());
            out.extend_from_slice(&code.to_le_bytes());
        }
    }
}

/// Reads the next review from the start of `bytes`, which are not empty.
pub fn read_review<'a>(bytes: &mut &'a [u8]) -> EncodedReview<'a> {
    let hash = u64::from_le_bytes(take(bytes));
    let check = u64::from_le_bytes(take(bytes));
    let [rating] = take(bytes);
    let length = u32::from_le_bytes(take(bytes)) as usize;
    EncodedReview { hash, check, rating, words: take_slice(bytes, length) }
}

/// A row before the vocabulary is known, with codes in place of token ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedRow<'a> {
    /// XXH3-64 of the cleaned text.
    pub hash: u64,
    /// All votes.
    pub votes: Votes,
    /// The split value.
    pub split: u16,
    /// The size of the text if texts are written, otherwise 0.
    pub text_bytes: u32,
    /// The kept tokens; if texts are written, all words of the text.
    pub words: &'a [u8],
}

/// Appends a row whose words are in two slices.
pub fn write_row(
    out: &mut Vec<u8>,
    (hash, votes, split): (u64, Votes, u16),
    text_bytes: u32,
    words: [&[u8]; 2],
) {
    out.extend_from_slice(&hash.to_le_bytes());
    let rating = votes.mode();
    if votes == Votes::one(rating) {
        out.push(rating);
    } else {
        out.push(0);
        out.extend(votes.0.iter().flat_map(|n| n.to_le_bytes()));
    }
    out.extend_from_slice(&split.to_le_bytes());
    out.extend_from_slice(&text_bytes.to_le_bytes());
    out.extend_from_slice(&(words.map(<[u8]>::len).iter().sum::<usize>() as u32).to_le_bytes());
    words.iter().for_each(|words| out.extend_from_slice(words));
}

/// Reads the next row from the start of `bytes`, which are not empty.
pub fn read_row<'a>(bytes: &mut &'a [u8]) -> EncodedRow<'a> {
    let hash = u64::from_le_bytes(take(bytes));
    let votes = match take(bytes) {
        [0] => Votes([(); 5].map(|()| u32::from_le_bytes(take(bytes)))),
        [rating] => Votes::one(rating),
    };
    let split = u16::from_le_bytes(take(bytes));
    let text_bytes = u32::from_le_bytes(take(bytes));
    let length = u32::from_le_bytes(take(bytes)) as usize;
    EncodedRow { hash, votes, split, text_bytes, words: take_slice(bytes, length) }
}

/// A word of a row or review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word<'a> {
    /// A code.
    Coded(u32),
    /// The bytes of a word without a code.
    Spelt(&'a [u8]),
}

impl Word<'_> {
    /// Encoded size.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Coded(code) if *code < u32::from(FAR) => 2,
            Self::Coded(_) => 2 + 4,
            Self::Spelt(word) => 2 + 4 + word.len(),
        }
    }
}

/// The codes in these bytes, if all of them have two bytes.
pub fn short_codes(bytes: &[u8]) -> Option<impl Iterator<Item = u32>> {
    let (codes, _) = bytes.as_chunks();
    let are_short = codes.iter().fold(true, |all, &code| all & (u16::from_le_bytes(code) < FAR));
    are_short.then(|| codes.iter().map(|&code| u32::from(u16::from_le_bytes(code))))
}

/// Visits the words in these bytes.
pub fn each_word<'a>(mut bytes: &'a [u8], mut visit: impl FnMut(Word<'a>)) {
    while !bytes.is_empty() {
        visit(match u16::from_le_bytes(take(&mut bytes)) {
            FAR => Word::Coded(u32::from_le_bytes(take(&mut bytes))),
            NONE => {
                let length = u32::from_le_bytes(take(&mut bytes)) as usize;
                Word::Spelt(take_slice(&mut bytes, length))
            }
            code => Word::Coded(u32::from(code)),
        });
    }
}

/// Takes the next `N` bytes.
#[inline]
pub fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (taken, rest) = bytes.split_first_chunk().expect("what was written here is whole");
    *bytes = rest;
    *taken
}

/// Takes this number of bytes.
#[inline]
pub fn take_slice<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_survive_the_round_trip_with_their_words() {
        let text = b"good notwithstanding fit";
        let word = |code, from, length| Coded { code, span: Span { from, length } };
        let words = [word(7, 0, 4), word(SPELT, 5, 15), word(65_533, 21, 3), word(65_534, 21, 3)];
        let mut out = Vec::new();
        write_review(&mut out, (1, 2, 5), text, &words, words_bytes(&words));
        write_review(&mut out, (3, 4, 1), text, &words[..1], words_bytes(&words[..1]));
        let mut bytes = &out[..];
        let first = read_review(&mut bytes);
        assert_eq!((first.hash, first.check, first.rating), (1, 2, 5));
        let mut found = Vec::new();
        each_word(first.words, |word| found.push(word));
        let expected =
            [Word::Coded(7), Word::Spelt(b"notwithstanding"), Word::Coded(65_533), Word::Coded(65_534)];
        assert_eq!(found, expected);
        assert_eq!(found.iter().map(Word::bytes).sum::<usize>(), words_bytes(&words));
        assert!(short_codes(first.words).is_none());
        let codes = short_codes(read_review(&mut bytes).words).unwrap();
        assert_eq!(codes.collect::<Vec<_>>(), [7]);
        assert!(bytes.is_empty());
    }

    #[test]
    fn rows_survive_the_round_trip_with_any_votes() {
        let mut out = Vec::new();
        for votes in [Votes::one(4), Votes([0, 2, 0, 0, 70_000])] {
            out.clear();
            write_row(&mut out, (u64::MAX, votes, 999), 7, [&[1, 0], &[2, 0]]);
            let expected =
                EncodedRow { hash: u64::MAX, votes, split: 999, text_bytes: 7, words: &[1, 0, 2, 0] };
            assert_eq!(read_row(&mut &out[..]), expected);
        }
    }
}
