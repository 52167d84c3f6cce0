//! Numbers byte strings in order of first appearance, and counts them.

use corpus::words::Span;
use corpus::words::keys::{Key, Keys, SHORT_BYTES, Seed};

use crate::names::Names;

/// A table of distinct byte strings.
///
/// Cache misses dominate the cost of a search. Short words are therefore compared within the table, and words are
/// searched in batches, whose slots are read before they are needed.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    names: Names,
    /// Open addressing: a search starts at the slot of the hash. The length is a power of two.
    slots: Vec<WordSlot>,
    /// Random, so that crafted lines cannot make all words collide. It does not affect the numbers.
    seed: Seed,
    /// Maximum number of names.
    max: usize,
    /// Maximum total length of names in bytes.
    bytes_max: usize,
    /// Whether a name was refused. All new names after it are refused too.
    is_over: bool,
}

/// A slot with the default key, which no word has, is empty.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct WordSlot {
    key: Key,
    count: u64,
    number: u32,
}

/// Number of words per batch.
const TOGETHER: usize = 128;
const SLOTS_MIN: usize = 1 << 10;

impl Numbers {
    /// An empty table of at most `max` names of `bytes_max` bytes in total.
    pub fn new(max: usize, bytes_max: usize) -> Self {
        let max = max.min(u32::MAX as usize - 1);
        let slots = vec![WordSlot::default(); SLOTS_MIN];
        Self { names: Names::default(), slots, seed: Seed::random(), max, bytes_max, is_over: false }
    }

    /// A table of these names. Their numbers are their positions; of equal names only the first is found.
    pub fn of(names: &Names) -> Self {
        let mut numbers = Self::new(names.len(), usize::MAX);
        numbers.reserve(names.len());
        numbers.names = names.clone();
        for (number, name) in (0..).zip(names.iter()) {
            let key = numbers.key(name);
            if let Err(at) = numbers.search(key, numbers.expected(key), name) {
                numbers.slots[at] = WordSlot { key, count: 0, number };
            }
        }
        numbers
    }

    /// The table, accepting all names.
    pub fn without_limits(self) -> Self {
        Self { max: u32::MAX as usize - 1, bytes_max: usize::MAX, is_over: false, ..self }
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Whether a name did not fit.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Count of each name, by number.
    pub fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.names.len()];
        for slot in self.slots.iter().filter(|slot| slot.key != Key::default()) {
            counts[slot.number as usize] = slot.count;
        }
        counts
    }

    /// Adds to the count of a name and returns its number. Returns `None` if it is new and the table is full.
    pub fn count(&mut self, name: &[u8], by: u64) -> Option<u32> {
        let key = self.key(name);
        self.reserve(1);
        let slot = self.find_or_insert(key, self.expected(key), name)?;
        self.slots[slot].count += by;
        Some(self.slots[slot].number)
    }

    /// Adds to the counts of names, by number.
    pub fn add_counts(&mut self, counts: &[u64]) {
        for slot in self.slots.iter_mut().filter(|slot| slot.key != Key::default()) {
            slot.count += counts.get(slot.number as usize).copied().unwrap_or(0);
        }
    }

    /// The number of a name.
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        let key = self.key(name);
        self.search(key, self.expected(key), name).ok().map(|slot| self.slots[slot].number)
    }

    /// Counts the words at these spans of a text, which are not empty, and calls `each` with the number of each. A word
    /// that is new while the table is full has none.
    pub fn count_all(&mut self, text: &[u8], spans: &[Span], mut each: impl FnMut(Option<u32>, Span)) {
        let (mut keys, mut slots, mut firsts) = ([Key::default(); TOGETHER], [0; TOGETHER], [0; TOGETHER]);
        let seed = self.seed;
        let keys_of = Keys::of(text, seed);
        for spans in spans.chunks(TOGETHER) {
            self.reserve(spans.len());
            for (i, &span) in spans.iter().enumerate() {
                let key = keys_of.key(span);
                keys[i] = key;
                slots[i] = self.expected(key);
            }
            // A loop of few instructions, so that the processor waits for many slots at once.
            for (first, &slot) in firsts.iter_mut().zip(&slots[..spans.len()]) {
                *first = self.slots[slot].key.first;
            }
            for (i, &span) in spans.iter().enumerate() {
                let (key, mut slot) = (keys[i], slots[i]);
                let is_there = firsts[i] == key.first && self.slots[slot].key.last == key.last;
                if !is_there || span.length as usize > SHORT_BYTES {
                    match self.find_or_insert(key, slot, span.of(text)) {
                        Some(found) => slot = found,
                        None => {
                            each(None, span);
                            continue;
                        }
                    }
                }
                let slot = &mut self.slots[slot];
                slot.count += 1;
                each(Some(slot.number), span);
            }
        }
    }

    #[inline]
    fn key(&self, name: &[u8]) -> Key {
        Keys::of(name, self.seed).key(Span { from: 0, length: name.len() as u32 })
    }

    #[inline]
    fn expected(&self, key: Key) -> usize {
        key.hash(self.seed) as usize & (self.slots.len() - 1)
    }

    /// The slot of a name, or the empty slot at which the search ended.
    #[inline]
    fn search(&self, key: Key, from: usize, name: &[u8]) -> Result<usize, usize> {
        let mut at = from;
        loop {
            let slot = &self.slots[at];
            if slot.key == Key::default() {
                return Err(at);
            }
            if slot.key == key && (name.len() <= SHORT_BYTES || self.names.get(slot.number) == name) {
                return Ok(at);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    #[inline(never)]
    fn find_or_insert(&mut self, key: Key, from: usize, name: &[u8]) -> Option<usize> {
        let at = match self.search(key, from, name) {
            Ok(at) => return Some(at),
            Err(at) => at,
        };
        let has_room = self.names.len() < self.max && self.names.n_bytes() + name.len() <= self.bytes_max;
        if self.is_over || !has_room {
            self.is_over = true;
            return None;
        }
        self.slots[at] = WordSlot { key, count: 0, number: self.names.len() as u32 };
        self.names.push(name);
        Some(at)
    }

    /// Makes space for `n` new names. At most half of the slots are used.
    fn reserve(&mut self, n: usize) {
        let needed = (self.names.len() + n).min(self.max);
        if needed <= self.slots.len() / 2 {
            return;
        }
        let larger = vec![WordSlot::default(); (2 * needed).next_power_of_two()];
        for slot in std::mem::replace(&mut self.slots, larger) {
            if slot.key != Key::default() {
                let mut at = self.expected(slot.key);
                while self.slots[at].key != Key::default() {
                    at = (at + 1) & (self.slots.len() - 1);
                }
                self.slots[at] = slot;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_in_order_of_first_appearance_and_counted() {
        let mut numbers = Numbers::new(10, usize::MAX);
        let text = b"good notwithstandingness good a notwithstandingnesses notwithstandingness";
        let mut spans = Vec::new();
        let mut from = 0;
        for word in text.split(|&byte| byte == b' ') {
            spans.push(Span { from, length: word.len() as u32 });
            from += word.len() as u32 + 1;
        }
        let mut found = Vec::new();
        numbers.count_all(text, &spans, |number, _| found.push(number.unwrap()));
        assert_eq!(found, [0, 1, 0, 2, 3, 1]);
        assert_eq!(numbers.counts(), [2, 2, 1, 1]);
        assert_eq!(numbers.find(b"notwithstandingnesses"), Some(3));
        assert_eq!(numbers.find(b"notwithstandingnesse"), None);
    }

    #[test]
    fn a_full_table_refuses_new_names_and_still_counts_the_others() {
        let mut numbers = Numbers::new(2000, usize::MAX);
        for round in 0..2 {
            for n in 0..3000u32 {
                let number = numbers.count(format!("word{n}").as_bytes(), 1);
                assert_eq!(number, (n < 2000).then_some(n), "round {round}");
            }
        }
        assert!(numbers.is_over());
        assert_eq!((numbers.names().len(), numbers.counts()), (2000, vec![2; 2000]));
    }

    #[test]
    fn a_name_that_exceeds_the_bytes_closes_the_table() {
        let mut numbers = Numbers::new(100, 10);
        let counted = ["four", "five", "seven77", "a", "five"].map(|name| numbers.count(name.as_bytes(), 1));
        assert_eq!(counted, [Some(0), Some(1), None, None, Some(1)]);
    }
}
