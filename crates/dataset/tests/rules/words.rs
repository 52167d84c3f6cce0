//! Files that break a rule of vocabularies and dictionaries.

use corpus::digest::Digest;

use crate::case::{Case as C, When};
use crate::fixture::Given;
use crate::fixture::reseal::{put_column, put_text};

/// Vocabularies and dictionaries.
pub fn of_words() -> Vec<C> {
    let offsets = |said, offsets: &'static [u64]| {
        C::altered("F17", said, move |file| put_column(file, "vocabulary/offsets", offsets))
    };
    let no_word = |said, word: &[u8]| C::words("F18", said, &[b"fit", word, b"good"]);
    vec![
        offsets("the first of vocabulary/offsets is 1, expected 0", &[1, 3, 7, 14]),
        offsets("the last of vocabulary/offsets is 13, expected 14", &[0, 3, 7, 13]),
        offsets("the length of vocabulary/offsets is 3, expected 4", &[0, 3, 14]),
        offsets("the end of word 1, which begins at byte 7, is 3, expected more", &[0, 7, 3, 14]),
        offsets("the end of word 0, which begins at byte 0, is 0, expected more", &[0, 0, 3, 14]),
        no_word("word 1 of the vocabulary is \"a\\nb\", expected a cleaned word", b"a\nb"),
        no_word("word 1 of the vocabulary is \"a\\tb\", expected a cleaned word", b"a\tb"),
        no_word("word 1 of the vocabulary is \"a\\0b\", expected a cleaned word", b"a\0b"),
        no_word("word 1 of the vocabulary is \"\\u{1b}[31mred\", expected a cleaned word", b"\x1b[31mred"),
        no_word("word 1 of the vocabulary is \"caf\u{fffd}\", expected a cleaned word", b"caf\xe9"),
        no_word("word 1 of the vocabulary is \"of course\", expected a cleaned word", b"of course"),
        no_word("word 1 of the vocabulary is \"Good\", expected a cleaned word", b"Good"),
        no_word("word 1 of the vocabulary is \"'tis\", expected a cleaned word", b"'tis"),
        no_word(
            "word 1 of the vocabulary is \"a\\u{202e}b\", expected a cleaned word",
            "a\u{202e}b".as_bytes(),
        ),
        C::shard(
            "F18",
            "word 0 of the dictionary is \"Fit\", expected a cleaned word",
            &[(b"Fit", 1), (b"good", 1)],
            Vec::new(),
        ),
        C::words(
            "F19",
            "word 1 of the vocabulary is \"the\", expected none of the stop words",
            &[b"fit", b"the"],
        ),
        C::shard(
            "F19",
            "word 1 of the dictionary is \"the\", expected none",
            &[(b"fit", 1), (b"the", 1)],
            Vec::new(),
        ),
        C::words(
            "F20",
            "word 2 of the vocabulary is \"fit\", expected a word that is listed once",
            &[b"fit", b"good", b"fit"],
        ),
        C::shard(
            "F20",
            "word 1 of the dictionary is \"fit\", expected a word after",
            &[(b"fit", 1), (b"fit", 1)],
            Vec::new(),
        ),
        C::shard(
            "F20",
            "word 1 of the dictionary is \"fit\", expected a word after",
            &[(b"good", 1), (b"fit", 1)],
            Vec::new(),
        ),
        C::given(
            "F21",
            "the count of word 1 of the vocabulary is 11, expected at most 10",
            When::Opened,
            |given| {
                given.counts = vec![10, 11, 8];
            },
        ),
        C::given(
            "F21",
            "the count of word 1 of the vocabulary is 10, expected at most 10",
            When::Opened,
            |given| {
                given.words.swap(0, 1);
                given.counts = vec![10, 10, 8];
            },
        ),
        C::given(
            "F22",
            "the count of word 2 of the vocabulary is 0, expected 1 or more",
            When::Opened,
            |given| {
                given.counts[2] = 0;
            },
        ),
        C::shard(
            "F22",
            "word 0 of the dictionary is \"fit\", expected a word with a count",
            &[(b"fit", 0)],
            Vec::new(),
        ),
        C::altered("F23", "the digest of the vocabulary is ", |file| {
            put_text::<32>(file, "vocabulary_digest", &Digest(5).to_string());
        }),
        C::altered("F23", "the digest of the vocabulary is ", |file| {
            put_column::<u64>(file, "vocabulary/count", &[11, 9, 8]);
        }),
        C::new(
            "F24",
            "the vocabulary is 80000016 bytes in memory, expected at most 67108864",
            When::Opened,
            |path| {
                Given::of(vec![vec![b'a'; 80_000_000]]).write(path);
            },
        ),
    ]
}
