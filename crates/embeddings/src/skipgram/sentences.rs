//! Sentences of numbered words.

use std::io::{self, Read};

/// Some consecutive sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentences {
    words: Vec<u32>,
    /// The end of each sentence in `words`.
    ends: Vec<u32>,
    /// Number of tokens, including those that are not in the vocabulary.
    n_tokens: u64,
}

impl Sentences {
    /// Appends a sentence. `n_tokens` counts its words before those that are not in the vocabulary were removed.
    ///
    /// # Panics
    /// If the sentences have 2^32 words or more.
    pub fn push(&mut self, words: impl IntoIterator<Item = u32>, n_tokens: u64) {
        self.words.extend(words);
        self.ends.push(u32::try_from(self.words.len()).expect("few sentences at a time"));
        self.n_tokens += n_tokens;
    }

    /// Replaces the words by `number`; those without one are removed.
    pub fn renumber(&mut self, number: impl Fn(u32) -> Option<u32>) {
        let (mut from, mut kept) = (0, 0);
        for end in &mut self.ends {
            for at in from..*end as usize {
                if let Some(word) = number(self.words[at]) {
                    self.words[kept] = word;
                    kept += 1;
                }
            }
            from = std::mem::replace(end, kept as u32) as usize;
        }
        self.words.truncate(kept);
        self.words.shrink_to_fit();
    }

    /// The sentences as bytes, for [`Sentences::read`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let lengths = [self.n_tokens, self.words.len() as u64, self.ends.len() as u64];
        let numbers = self.words.iter().chain(&self.ends).flat_map(|number| number.to_le_bytes());
        lengths.into_iter().flat_map(u64::to_le_bytes).chain(numbers).collect()
    }

    /// Reads sentences that [`Sentences::to_bytes`] made.
    pub fn read(input: &mut impl Read) -> io::Result<Self> {
        let mut lengths = [[0; 8]; 3];
        lengths.iter_mut().try_for_each(|length| input.read_exact(length))?;
        let [n_tokens, n_words, n_sentences] = lengths.map(u64::from_le_bytes);
        let mut numbers = |n: u64| {
            let mut bytes = vec![0; 4 * n as usize];
            input.read_exact(&mut bytes)?;
            Ok::<_, io::Error>(bytes.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect())
        };
        Ok(Self { words: numbers(n_words)?, ends: numbers(n_sentences)?, n_tokens })
    }

    /// The sentences.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.words[begin as usize..end as usize])
    }

    /// Number of tokens, including those that are not in the vocabulary.
    pub fn n_tokens(&self) -> u64 {
        self.n_tokens
    }

    /// Number of words.
    pub fn n_words(&self) -> usize {
        self.words.len()
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        4 * (self.words.capacity() + self.ends.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_renumbered_within_their_sentences() {
        let mut sentences = Sentences::default();
        sentences.push([5, 6, 7], 4);
        sentences.push([], 0);
        sentences.push([7], 1);
        sentences.push([6, 5], 2);
        sentences.renumber(|word| (word != 7).then_some(word + 10));
        let found: Vec<&[u32]> = sentences.iter().collect();
        assert_eq!(found, [&[15, 16][..], &[], &[], &[16, 15]]);
        assert_eq!((sentences.n_tokens(), sentences.n_words()), (7, 4));
    }
}
