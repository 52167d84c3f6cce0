//! Words to numbered characters.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The characters of a vocabulary, numbered by descending frequency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Characters {
    all: Vec<char>,
    numbers: HashMap<char, u32>,
}

/// Id of characters that are not numbered.
const UNKNOWN: i64 = 0;
/// Id of the mark before the first character.
const BEGIN: i64 = 1;
/// Id of the mark after the last character.
const END: i64 = 2;
/// Number of ids that are not characters.
const N_MARKS: usize = 3;
/// A character of fewer distinct words is unknown, so that the id of unknown characters is trained.
const WORDS_MIN: u64 = 2;

impl Characters {
    /// Maximum number of numbered characters; Unicode has fewer.
    pub const MAX: usize = 0x11_0000;
    /// Maximum number of numbered characters of a stream, whose embedding has this number from the beginning.
    pub const STREAM_MAX: usize = 8192;
    /// Characters of a word after this number are not read.
    pub const LENGTH_MAX: usize = 40;

    /// Numbers the characters of words with their counts: by descending count, then by code point.
    pub fn count<'a>(words: impl IntoIterator<Item = (&'a [u8], u64)>) -> Self {
        // Per character: the number of occurrences, and that of distinct words.
        let mut counts: HashMap<char, [u64; 2]> = HashMap::new();
        for (word, count) in words {
            let mut of_word: Vec<char> = characters(word).collect();
            for &character in &of_word {
                counts.entry(character).or_default()[0] += count;
            }
            of_word.sort_unstable();
            of_word.dedup();
            for character in of_word {
                counts.entry(character).or_default()[1] += 1;
            }
        }
        let mut all: Vec<(char, u64)> = counts
            .into_iter()
            .filter(|(_, [_, n_words])| *n_words >= WORDS_MIN)
            .map(|(character, [count, _])| (character, count))
            .collect();
        all.sort_unstable_by_key(|&(character, count)| (std::cmp::Reverse(count), character));
        let all: Vec<char> = all.into_iter().map(|(character, _)| character).collect();
        let numbers = all.iter().copied().zip(0..).collect();
        Self { all, numbers }
    }

    /// Characters in order of their numbers.
    ///
    /// # Errors
    /// The first character that occurs twice.
    pub fn of(all: Vec<char>) -> std::result::Result<Self, char> {
        let mut numbers = HashMap::new();
        for (number, &character) in (0..).zip(&all) {
            if numbers.insert(character, number).is_some() {
                return Err(character);
            }
        }
        Ok(Self { all, numbers })
    }

    /// The characters in order of their numbers.
    pub fn all(&self) -> &[char] {
        &self.all
    }

    /// C, the number of ids.
    pub fn n_ids(&self) -> usize {
        N_MARKS + self.all.len()
    }

    /// The ids of a word, between those of a begin mark and an end mark.
    pub fn ids(&self, word: &[u8]) -> Vec<i64> {
        let id = |character| match self.numbers.get(&character) {
            Some(&number) => N_MARKS as i64 + i64::from(number),
            None => UNKNOWN,
        };
        [BEGIN].into_iter().chain(characters(word).map(id)).chain([END]).collect()
    }
}

/// The characters of a stream. A character has a number as soon as two words have it.
#[derive(Debug, Default)]
pub(crate) struct GrowingCharacters {
    pub(crate) numbered: Characters,
    /// Other characters, with the number of their word.
    pub(crate) unknown: HashMap<char, u32>,
}

impl GrowingCharacters {
    /// C of the weights, with ids that no character has so far.
    pub(crate) const N_IDS: usize = N_MARKS + Characters::STREAM_MAX;

    /// Adds the characters of a word. Returns the other words whose ids have changed.
    pub(crate) fn add(&mut self, number: u32, word: &[u8]) -> Vec<u32> {
        let Self { numbered: Characters { all, numbers }, unknown } = self;
        let mut changed = Vec::new();
        for character in characters(word) {
            if numbers.contains_key(&character) || all.len() == Characters::STREAM_MAX {
                continue;
            }
            match unknown.entry(character) {
                Entry::Vacant(entry) => drop(entry.insert(number)),
                Entry::Occupied(entry) if *entry.get() == number => {}
                Entry::Occupied(entry) => {
                    changed.push(entry.remove());
                    numbers.insert(character, all.len() as u32);
                    all.push(character);
                }
            }
        }
        changed
    }
}

/// The first characters of a word. Bytes that are not UTF-8 become U+FFFD.
fn characters(word: &[u8]) -> impl Iterator<Item = char> {
    let chunks = word.utf8_chunks();
    chunks
        .flat_map(|chunk| chunk.valid().chars().chain((!chunk.invalid().is_empty()).then_some('\u{fffd}')))
        .take(Characters::LENGTH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(characters: &Characters, word: &str) -> Vec<i64> {
        characters.ids(word.as_bytes())
    }

    #[test]
    fn a_character_of_a_stream_is_numbered_by_its_second_word() {
        let mut characters = GrowingCharacters::default();
        let mut add = |number, word: &str| characters.add(number, word.as_bytes());
        assert_eq!((add(0, "été"), add(1, "дом"), add(1, "дом")), (vec![], vec![], vec![]));
        assert_eq!((add(2, "té"), add(3, "мода")), (vec![0, 0], vec![1, 1, 1]));
        assert_eq!(characters.numbered.all(), ['t', 'é', 'м', 'о', 'д']);
        assert_eq!(characters.unknown, [('а', 3)].into());
        // As many as the embedding has, and no more.
        for code in 0..2 * Characters::STREAM_MAX as u32 {
            let word = String::from(char::from_u32(0x2_0000 + code).unwrap());
            (10..12).for_each(|number| drop(characters.add(number, word.as_bytes())));
        }
        assert_eq!(characters.numbered.n_ids(), GrowingCharacters::N_IDS);
        assert_eq!(characters.unknown.len(), 1);
    }

    #[test]
    fn characters_are_numbered_by_count_whatever_their_script() {
        let words = [("été", 3), ("té", 1), ("дом", 9), ("мода", 1), ("ключ", 1), ("猫", 5), ("猫猫", 1)];
        let characters = Characters::count(words.map(|(word, count)| (word.as_bytes(), count)));
        // к, л, ю and ч occur in one word only, а too.
        assert_eq!(characters.all(), ['д', 'м', 'о', 'é', '猫', 't']);
        assert_eq!(characters.n_ids(), 9);
        assert_eq!(ids(&characters, "té猫x"), [1, 8, 6, 7, 0, 2]);
        assert_eq!(ids(&characters, ""), [1, 2]);
    }

    #[test]
    fn long_words_and_other_bytes_are_read_in_bounds() {
        let characters = Characters::of(vec!['a', '\u{fffd}']).unwrap();
        assert_eq!(ids(&characters, &"a".repeat(1000)).len(), Characters::LENGTH_MAX + 2);
        assert_eq!(characters.ids(b"a\xffa\xc3"), [1, 3, 4, 3, 4, 2]);
        assert_eq!(Characters::of(vec!['a', 'b', 'a']), Err('a'));
    }
}
