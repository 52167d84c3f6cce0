//! The codebook: assigns codes to the words at the start of the input, smaller codes to more frequent words.
//!
//! Between reading and writing, reviews are stored in memory or on disk. They consist mostly of frequent
//! words, which short codes replace. All threads therefore first agree on one codebook. Each thread collects
//! texts and counts their words, and the last thread to finish builds the codebook from all counts. It is
//! never changed after that. A word without a code is stored as text. A codebook therefore affects only the
//! speed, never the content of a dataset.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use corpus::words::keys::{Key, Keys, SHORT_BYTES, Seed};
use corpus::words::{Dictionary, Span};
use dataset::KeptWords;

use crate::encoded::{Coded, Word, each_word, short_codes};
use program::threads::locked;

/// Interval at which a waiting thread checks whether to stop.
const TICK: Duration = Duration::from_millis(100);

/// Maximum number of codes. Further words are rare, and codes for them would only enlarge the tables.
const WORDS_MAX: usize = 1 << 19;

/// Words with codes, which are their indexes by descending frequency.
pub struct Codebook {
    /// Words by code, followed by the stop words, which have no code.
    words: KeptWords,
    n_codes: usize,
    /// Keys of the words, followed by one that no word has.
    keys: Vec<Key>,
    /// Open addressing: the search for a word starts at the slot of its hash. A slot has a word's index in
    /// its lower bits and bits of its hash in the upper ones. Many slots therefore fit into a processor's
    /// cache, and an absent word is seldom compared with a present one.
    slots: Vec<u32>,
    place_bits: u32,
    seed: Seed,
    /// Words that texts contain and rows omit. If texts are not written, they have no code, and this is empty.
    omitted: Omitted,
}

/// Words that texts contain and rows omit.
#[derive(Default)]
struct Omitted {
    /// For each code, whether it is such a word. Empty if there are none.
    codes: Vec<bool>,
    words: HashSet<Vec<u8>>,
}

/// The words of a text that a stored row contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredWords {
    /// The kept tokens. Stop words are dropped when texts are encoded.
    Kept,
    /// All, because texts are written beside the dataset. Stop words are encoded like other words, and rows of the dataset
    /// omit them.
    All,
}

/// Number of words looked up together, so that the processor waits for several at once.
const TOGETHER: usize = 128;

impl Codebook {
    /// Builds a codebook from the most frequent of the counted words.
    fn of(counted: &Dictionary, stop_words: &[String], stored: StoredWords) -> Self {
        let (dropped, omitted) = match stored {
            StoredWords::Kept => (stop_words, &[][..]),
            StoredWords::All => (&[][..], stop_words),
        };
        let omitted: HashSet<Vec<u8>> = omitted.iter().map(|word| word.as_bytes().to_vec()).collect();
        let mut counts: Vec<_> = counted.counts().into_iter().zip(0..).collect();
        counts.sort_unstable_by_key(|&(count, number)| (Reverse(count), number));
        counts.truncate(WORDS_MAX);
        let n_codes = counts.len();
        let mut words = KeptWords::with_capacity(n_codes + dropped.len());
        counts.iter().for_each(|&(_, number)| words.push(counted.get(number)));
        let codes = (0..n_codes).map(|code| omitted.contains(words.get(code)));
        let codes = if omitted.is_empty() { Vec::new() } else { codes.collect() };
        dropped.iter().for_each(|word| words.push(word.as_bytes()));
        let seed = Seed::random();
        let key = |word: &[u8]| Keys::of(word, seed).key(Span { from: 0, length: word.len() as u32 });
        let keys = (0..words.len()).map(|place| key(words.get(place))).chain([Key::default()]).collect();
        let mut codebook = Self {
            n_codes,
            slots: vec![words.len() as u32; (words.len() / 2 * 3).next_power_of_two().max(2)],
            place_bits: (words.len() as u32 + 1).next_power_of_two().ilog2(),
            words,
            keys,
            seed,
            omitted: Omitted { codes, words: omitted },
        };
        // The most frequent words first, so that they get the slots of their hashes.
        let places = (n_codes..codebook.words.len()).chain(0..n_codes);
        places.for_each(|place| codebook.insert(place));
        codebook
    }

    fn insert(&mut self, place: usize) {
        let hash = self.keys[place].hash(self.seed);
        let mut at = self.slot_of(hash);
        while self.place_in(self.slots[at]) != self.words.len() {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = place as u32 | self.tag_of(hash);
    }

    #[inline]
    fn slot_of(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn tag_of(&self, hash: u64) -> u32 {
        (hash >> 32) as u32 >> self.place_bits << self.place_bits
    }

    #[inline]
    fn place_in(&self, slot: u32) -> usize {
        (slot & ((1 << self.place_bits) - 1)) as usize
    }

    /// Looks up these words of `text`. Writes those that are not stop words to the start of `found`, and
    /// returns their number.
    pub fn look_up(&self, text: &[u8], words: &[Span], found: &mut Vec<Coded>) -> usize {
        /// The index of a word without a code. Its lower bits are [`SPELT`].
        const NOWHERE: usize = usize::MAX;
        if found.len() < words.len() {
            found.resize(words.len(), Coded::default());
        }
        let texts_keys = Keys::of(text, self.seed);
        let (mut keys, mut hashes) = ([Key::default(); TOGETHER], [0; TOGETHER]);
        let (mut slots, mut firsts) = ([0; TOGETHER], [0; TOGETHER]);
        let mut n_found = 0;
        for words in words.chunks(TOGETHER) {
            for (i, &span) in words.iter().enumerate() {
                keys[i] = texts_keys.key(span);
                hashes[i] = keys[i].hash(self.seed);
            }
            for (slot, &hash) in slots.iter_mut().zip(&hashes[..words.len()]) {
                *slot = self.slots[self.slot_of(hash)];
            }
            for (first, &slot) in firsts.iter_mut().zip(&slots[..words.len()]) {
                *first = self.keys[self.place_in(slot)].first;
            }
            for (i, &span) in words.iter().enumerate() {
                let (key, mut place) = (keys[i], self.place_in(slots[i]));
                let is_there = firsts[i] == key.first && self.keys[place].last == key.last;
                if !is_there || span.length as usize > SHORT_BYTES {
                    place = self.find(key, hashes[i], span.of(text)).unwrap_or(NOWHERE);
                }
                // Branch-free, because a branch on stop words would be unpredictable.
                found[n_found] = Coded { code: place as u32, span };
                n_found += usize::from((place < self.n_codes) | (place == NOWHERE));
            }
        }
        n_found
    }

    /// The index of a word.
    #[inline(never)]
    fn find(&self, key: Key, hash: u64, word: &[u8]) -> Option<usize> {
        let mut at = self.slot_of(hash);
        loop {
            let slot = self.slots[at];
            let place = self.place_in(slot);
            if place == self.words.len() {
                return None;
            }
            let may_be = slot ^ place as u32 == self.tag_of(hash) && self.keys[place] == key;
            if may_be && (word.len() <= SHORT_BYTES || self.words.get(place) == word) {
                return Some(place);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Number of codes.
    pub fn n_words(&self) -> usize {
        self.n_codes
    }

    /// The word with this code.
    pub fn word(&self, code: u32) -> &[u8] {
        self.words.get(code as usize)
    }

    /// Whether encoded texts contain words that rows omit.
    pub fn omits_words(&self) -> bool {
        !self.omitted.words.is_empty()
    }

    /// Whether rows omit the word with this code.
    #[inline]
    pub fn omits_code(&self, code: u32) -> bool {
        self.omitted.codes.get(code as usize).is_some_and(|&is_omitted| is_omitted)
    }

    /// Whether rows omit this word, which has no code.
    pub fn omits_word(&self, word: &[u8]) -> bool {
        self.omits_words() && self.omitted.words.contains(word)
    }

    /// Writes the text of encoded words to `text`. `places` is a buffer.
    pub fn decode(&self, words: &[u8], places: &mut Vec<u32>, text: &mut Vec<u8>) {
        if let Some(codes) = short_codes(words) {
            places.clear();
            places.extend(codes);
            self.words.join(places, text);
            return;
        }
        text.clear();
        each_word(words, |word| {
            text.extend_from_slice(match word {
                Word::Coded(code) => self.word(code),
                Word::Spelt(word) => word,
            });
            text.push(b' ');
        });
        text.pop();
    }

    /// All words by code, for joining.
    pub fn to_words(&self) -> KeptWords {
        let mut words = self.words.clone();
        words.truncate(self.n_codes);
        words
    }
}

/// Time for which a thread waits for the counts of the others.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// How all threads agree on one codebook.
pub struct Agreement<'a> {
    stop_words: &'a [String],
    stored: StoredWords,
    /// Whether a thread for which the others wait may have ended.
    stopped: &'a AtomicBool,
    state: Mutex<CodebookState>,
    agreed: Condvar,
}

struct CodebookState {
    /// Number of threads that are still counting.
    counting: usize,
    counted: Dictionary,
    codebook: Option<Arc<Codebook>>,
}

impl<'a> Agreement<'a> {
    /// Creates the agreement of this number of threads.
    pub fn among(
        threads: usize,
        stop_words: &'a [String],
        stored: StoredWords,
        stopped: &'a AtomicBool,
    ) -> Self {
        let state = CodebookState { counting: threads, counted: Dictionary::new(&[]), codebook: None };
        Self { stop_words, stored, stopped, state: Mutex::new(state), agreed: Condvar::new() }
    }

    /// The words that a thread does not count.
    pub fn dropped(&self) -> &'a [String] {
        match self.stored {
            StoredWords::Kept => self.stop_words,
            StoredWords::All => &[],
        }
    }

    /// Adds the counts of one thread and waits for those of all others, but not for longer than `WAIT_MAX`: another thread may
    /// wait for memory that this one holds while it reads. Each thread calls this once. Any codebook is right; that of all counts
    /// is the smallest. If all threads must stop, the returned one is arbitrary.
    pub fn join(&self, counted: &Dictionary) -> Arc<Codebook> {
        let began = Instant::now();
        let mut state = locked(&self.state);
        state.counted.add(counted);
        state.counting -= 1;
        loop {
            if let Some(codebook) = &state.codebook {
                return codebook.clone();
            }
            if state.counting == 0 || began.elapsed() >= WAIT_MAX {
                let counted = std::mem::replace(&mut state.counted, Dictionary::new(&[]));
                let codebook = Arc::new(Codebook::of(&counted, self.stop_words, self.stored));
                state.codebook = Some(codebook);
                self.agreed.notify_all();
                continue;
            }
            if self.stopped.load(Ordering::Relaxed) {
                return Arc::new(Codebook::of(&state.counted, self.stop_words, self.stored));
            }
            state = self.agreed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use corpus::words::{find_words, room};

    use super::*;
    use crate::encoded::{SPELT, read_review, words_bytes, write_review};

    fn spans(text: &str) -> Vec<Span> {
        let mut words = vec![Span::default(); room(text.len())];
        let n_words = find_words(text.as_bytes(), &mut words);
        words.truncate(n_words);
        words
    }

    #[test]
    fn a_thread_does_not_wait_for_another_that_waits_for_its_memory() {
        let stopped = AtomicBool::new(false);
        let agreement = Agreement::among(2, &[], StoredWords::Kept, &stopped);
        let first = agreement.join(&Dictionary::new(&[]));
        assert!(Arc::ptr_eq(&first, &agreement.join(&Dictionary::new(&[]))));
    }

    #[test]
    fn threads_agree_on_codes_by_descending_frequency() {
        let (stop_words, stopped) = (["the".to_owned()], AtomicBool::new(false));
        let agreement = Agreement::among(2, &stop_words, StoredWords::Kept, &stopped);
        let join = |text: &str| {
            let mut counted = Dictionary::new(&["the".to_owned()]);
            counted.count(text.as_bytes(), &spans(text), &mut Vec::new());
            agreement.join(&counted)
        };
        let (one, other) = thread::scope(|scope| {
            let other = scope.spawn(|| join("b the c b a"));
            (join("the a b"), other.join().unwrap())
        });
        assert!(Arc::ptr_eq(&one, &other));
        assert_eq!((0..3).map(|code| one.word(code)).collect::<Vec<_>>(), [b"b", b"a", b"c"]);
        let text = "x the c b";
        let mut found = Vec::new();
        let n_found = one.look_up(text.as_bytes(), &spans(text), &mut found);
        found.truncate(n_found);
        assert_eq!(found.into_iter().map(|word| word.code).collect::<Vec<_>>(), [SPELT, 2, 0]);
    }

    #[test]
    fn encoded_stop_words_are_decoded_and_omitted_from_rows() {
        let (stop_words, stopped) = (["the".to_owned(), "rare".to_owned()], AtomicBool::new(false));
        let agreement = Agreement::among(1, &stop_words, StoredWords::All, &stopped);
        let mut counted = Dictionary::new(agreement.dropped());
        let sample = "the the b";
        counted.count(sample.as_bytes(), &spans(sample), &mut Vec::new());
        let codebook = agreement.join(&counted);
        assert_eq!((codebook.n_words(), codebook.word(0)), (2, &b"the"[..]));
        assert!(codebook.omits_words() && codebook.omits_code(0) && !codebook.omits_code(1));
        assert!(codebook.omits_word(b"rare") && !codebook.omits_word(b"b"));

        for text in ["the b", "b rare the unknownword", ""] {
            let mut found = Vec::new();
            let n_found = codebook.look_up(text.as_bytes(), &spans(text), &mut found);
            let (found, mut bytes) = (&found[..n_found], Vec::new());
            write_review(&mut bytes, (1, 2, 3), text.as_bytes(), found, words_bytes(found));
            let mut decoded = b"what was there before".to_vec();
            codebook.decode(read_review(&mut &bytes[..]).words, &mut vec![9], &mut decoded);
            assert_eq!(decoded, text.as_bytes());
        }
    }
}
