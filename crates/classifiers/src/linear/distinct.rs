//! Lists the distinct numbers of a text with their counts, in order of first appearance.

/// A reusable set of numbers. A stamp marks the numbers of the current text, so that the set is not cleared.
#[derive(Clone, Debug, Default)]
pub(super) struct Distinct {
    slots: Vec<Slot>,
    stamp: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    stamp: u32,
    number: u32,
    position: u32,
}

const SLOTS_MIN: usize = 1 << 11;

impl Distinct {
    /// Prepares the set for a text of at most `n` numbers.
    pub fn begin(&mut self, n: usize) {
        let needed = (2 * n).next_power_of_two().max(SLOTS_MIN);
        if needed > self.slots.len() || self.stamp == u32::MAX {
            self.slots.clear();
            self.slots.resize(needed, Slot::default());
            self.stamp = 0;
        }
        self.stamp += 1;
    }

    /// The position of a number among those of the text, which is `next` if it is new.
    #[inline]
    pub fn position(&mut self, number: u32, next: u32) -> u32 {
        let mask = self.slots.len() - 1;
        // Numbers of the exact table are consecutive, so their bits are mixed.
        let mut at = (number.wrapping_mul(0x9e37_79b1) >> 7) as usize & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.stamp != self.stamp {
                *slot = Slot { stamp: self.stamp, number, position: next };
                return next;
            }
            if slot.number == number {
                return slot.position;
            }
            at = (at + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_first_appearance_in_each_text() {
        let mut distinct = Distinct::default();
        for text in [&[5, 7, 5, 0, 7, u32::MAX][..], &[7, 5], &(0..3000).collect::<Vec<u32>>(), &[]] {
            distinct.begin(text.len());
            let mut seen: Vec<u32> = Vec::new();
            for &number in text {
                let expected = seen.iter().position(|&other| other == number).unwrap_or(seen.len());
                assert_eq!(distinct.position(number, seen.len() as u32) as usize, expected);
                if expected == seen.len() {
                    seen.push(number);
                }
            }
        }
    }
}
