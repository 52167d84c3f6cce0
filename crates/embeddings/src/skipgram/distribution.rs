//! The distribution of negative samples, and the shares with which frequent words are kept. Both follow from the counts
//! of words.

use program::random::Random;

/// Draws words with probabilities proportional to powers of their counts, by Walker's alias method in Vose's form (1991):
/// a word is drawn uniformly and, with a probability, replaced by its alias.
#[derive(Clone, Debug)]
pub struct Distribution {
    cells: Vec<Cell>,
    /// Per word: the probability that an occurrence is kept, times 2^32.
    keeps: Vec<u32>,
}

/// A word, which is kept with probability `limit` / 2^32 and otherwise replaced.
#[derive(Clone, Copy, Debug)]
struct Cell {
    limit: u32,
    alias: u32,
}

impl Distribution {
    /// The distribution of words with these counts. Words below the minimum are never drawn.
    pub fn new(counts: &[u64], min_count: u64, power: f64, sample: f64) -> Self {
        let weight = |&count: &u64| if count < min_count { 0.0 } else { (count as f64).powf(power) };
        let total: u64 = counts.iter().filter(|&&count| count >= min_count).sum();
        let keeps = counts.iter().map(|&count| share_kept(count, total, sample)).collect();
        Self { cells: cells(counts.iter().map(weight).collect()), keeps }
    }

    /// Whether no word can be drawn.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Draws a word. The distribution is not empty.
    #[inline(always)]
    pub fn draw(&self, random: &mut Random) -> u32 {
        let bits = random.bits();
        let word = (((bits >> 32) * self.cells.len() as u64) >> 32) as u32;
        let Cell { limit, alias } = self.cells[word as usize];
        if bits as u32 <= limit { word } else { alias }
    }

    /// Whether an occurrence of a word is kept, for 32 random bits. Words that are newer than the distribution are rare, and
    /// always kept.
    #[inline(always)]
    pub fn keeps(&self, word: u32, bits: u32) -> bool {
        self.keeps.get(word as usize).is_none_or(|&limit| bits <= limit)
    }
}

/// word2vec's share: √(t / f) + t / f, where f is the share of the word in all tokens and t is the threshold.
fn share_kept(count: u64, total: u64, sample: f64) -> u32 {
    let relative = sample * total as f64 / count.max(1) as f64;
    if sample == 0.0 || relative >= 1.0 {
        return u32::MAX;
    }
    ((relative.sqrt() + relative).min(1.0) * f64::from(u32::MAX)) as u32
}

fn cells(mut weights: Vec<f64>) -> Vec<Cell> {
    let sum: f64 = weights.iter().sum();
    if sum <= 0.0 {
        return Vec::new();
    }
    let scale = weights.len() as f64 / sum;
    weights.iter_mut().for_each(|weight| *weight *= scale);
    let (mut small, mut large): (Vec<u32>, Vec<u32>) =
        (0..weights.len() as u32).partition(|&word| weights[word as usize] < 1.0);
    // A word that no step below replaces keeps its cell: its weight is 1 up to rounding.
    let mut cells: Vec<Cell> =
        (0..weights.len() as u32).map(|alias| Cell { limit: u32::MAX, alias }).collect();
    while let (Some(&from), Some(to)) = (large.last(), small.pop()) {
        let weight = weights[to as usize];
        cells[to as usize] = Cell { limit: (weight * f64::from(u32::MAX)) as u32, alias: from };
        let rest = &mut weights[from as usize];
        *rest -= 1.0 - weight;
        if *rest < 1.0 {
            large.pop();
            small.push(from);
        }
    }
    // Rounding can leave words without weight, whose cells must not keep them.
    if let Some(most) = (0..weights.len()).max_by(|&a, &b| weights[a].total_cmp(&weights[b])) {
        for word in small.into_iter().filter(|&word| weights[word as usize] < 0.5) {
            cells[word as usize] = Cell { limit: 0, alias: most as u32 };
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_drawn_in_proportion_to_the_powers_of_their_counts() {
        let counts = [400, 100, 25, 4, 0, 900];
        let distribution = Distribution::new(&counts, 5, 0.5, 0.0);
        let mut random = Random::of(&[1]);
        let mut drawn = [0u32; 6];
        const N: u32 = 200_000;
        for _ in 0..N {
            drawn[distribution.draw(&mut random) as usize] += 1;
        }
        assert_eq!(drawn[3..5], [0, 0], "words below the minimum count");
        for (word, root) in [(0, 20.0), (1, 10.0), (2, 5.0), (5, 30.0)] {
            let expected = f64::from(N) * root / 65.0;
            let deviation = expected.sqrt();
            assert!((f64::from(drawn[word]) - expected).abs() < 5.0 * deviation, "{word}: {drawn:?}");
        }
    }

    #[test]
    fn frequent_words_are_kept_with_the_share_of_word2vec() {
        let counts = [900_000, 99_000, 1000];
        let distribution = Distribution::new(&counts, 1, 0.75, 1e-3);
        let mut random = Random::of(&[2]);
        let mut kept = |word| {
            let kept = (0..100_000).filter(|_| distribution.keeps(word, random.bits() as u32)).count();
            kept as f64 / 1e5
        };
        // √(0.001 / 0.9) + 0.001 / 0.9 and √(0.001 / 0.099) + 0.001 / 0.099
        assert!((kept(0) - 0.0344).abs() < 0.003);
        assert!((kept(1) - 0.1106).abs() < 0.005);
        assert!((kept(2) - 1.0).abs() < 1e-9);
        assert!((kept(7) - 1.0).abs() < 1e-9, "a word that is newer than the distribution");
        let all = Distribution::new(&counts, 1, 0.75, 0.0);
        assert!(all.keeps(0, u32::MAX));
    }

    #[test]
    fn without_words_nothing_can_be_drawn() {
        assert!(Distribution::new(&[], 1, 0.75, 0.0).is_empty());
        assert!(Distribution::new(&[3, 4], 5, 0.75, 0.0).is_empty());
        assert!(!Distribution::new(&[3, 5], 5, 0.75, 0.0).is_empty());
    }
}
