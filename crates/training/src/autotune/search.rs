//! Chooses the settings of trials: defaults first, then random settings and changes of the best ones.
//!
//! A setting has few values, so that the best ones make a short command, and no settings are tried twice. The choice
//! depends on the seed and on the metrics of earlier trials, not on time.

use std::collections::{HashSet, VecDeque};

use batches::random::{Purpose, Random};

/// The flags of a trial that the user did not pass, with their values.
pub type Flags = Vec<(&'static str, String)>;

/// Settings that are searched together.
#[derive(Clone, Debug)]
pub struct Space {
    /// Flags of all trials of this space.
    pub flags: Flags,
    /// The settings that are searched.
    pub dimensions: Vec<Dimension>,
}

/// A setting with its values.
#[derive(Clone, Debug)]
pub struct Dimension {
    /// The flag.
    pub flag: &'static str,
    /// The values; that of the default is not passed.
    pub values: Vec<String>,
    /// Index of the default.
    pub default: usize,
    /// Whether the values increase, so that neighbours are alike.
    pub is_ordered: bool,
    /// A flag and the value of it with which this setting has no effect.
    pub without: Option<(&'static str, &'static str)>,
}

/// The settings of a trial: a space, and an index per dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    space: usize,
    values: Vec<usize>,
}

/// A search.
#[derive(Debug)]
pub struct Search {
    spaces: Vec<Space>,
    seed: u64,
    starts: VecDeque<Point>,
    tried: HashSet<Point>,
    /// Points and their scores; the best first, of equal scores the earlier one.
    measured: Vec<(f64, Point)>,
}

/// Of this number of trials after the defaults, one is random. The others change one of the best.
const ONE_RANDOM_OF: u64 = 6;
/// Number of draws before all settings are listed.
const DRAWS: usize = 300;

impl Dimension {
    /// Increasing values, among them the default.
    pub fn ordered(flag: &'static str, values: &[&str], default: &str) -> Self {
        let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
        let mut values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        if !values.iter().any(|value| value == default) {
            let at = values.iter().position(|value| number(value) > number(default)).unwrap_or(values.len());
            values.insert(at, default.to_owned());
        }
        let default = values.iter().position(|value| value == default).unwrap_or(0);
        Self { flag, values, default, is_ordered: true, without: None }
    }

    /// The default and other values, in no order.
    pub fn choice(flag: &'static str, others: &[&str]) -> Self {
        let values = std::iter::once("default").chain(others.iter().copied()).map(str::to_owned).collect();
        Self { flag, values, default: 0, is_ordered: false, without: None }
    }

    /// The setting has no effect with this value of another flag.
    pub fn without(self, flag: &'static str, value: &'static str) -> Self {
        Self { without: Some((flag, value)), ..self }
    }

    /// Name of the flag as in [`crate::arguments::Passed`].
    pub fn id(&self) -> String {
        self.flag.trim_start_matches('-').replace('-', "_")
    }
}

impl Search {
    /// A search that starts with the defaults of each space.
    pub fn new(spaces: Vec<Space>, seed: u64) -> Self {
        let starts = (0..spaces.len()).map(|space| default_of(&spaces, space)).collect();
        Self { spaces, seed, starts, tried: HashSet::new(), measured: Vec::new() }
    }

    /// The next settings; `None` if all were tried.
    pub(super) fn next(&mut self) -> Option<Point> {
        let point =
            self.starts.pop_front().or_else(|| self.draw_untried()).or_else(|| self.first_untried())?;
        self.tried.insert(point.clone());
        Some(point)
    }

    /// Notes the score of settings; higher is better.
    pub fn note(&mut self, point: &Point, score: f64) {
        let at = self.measured.partition_point(|(other, _)| *other >= score);
        self.measured.insert(at, (score, point.clone()));
    }

    /// The flags of settings. Defaults have none.
    pub fn flags(&self, point: &Point) -> Flags {
        let space = &self.spaces[point.space];
        let chosen = space.dimensions.iter().zip(&point.values);
        let changed = chosen.filter(|(dimension, value)| **value != dimension.default);
        let flags = changed.map(|(dimension, &value)| (dimension.flag, dimension.values[value].clone()));
        space.flags.iter().cloned().chain(flags).collect()
    }

    fn draw_untried(&self) -> Option<Point> {
        let mut random = Purpose::Trial.stream(&[self.seed, self.tried.len() as u64]);
        let is_random = self.measured.is_empty() || random.below(ONE_RANDOM_OF) == 0;
        (0..DRAWS).find_map(|_| {
            let point = if is_random { self.drawn(&mut random) } else { self.changed(&mut random) };
            let point = self.canonical(point);
            (!self.tried.contains(&point)).then_some(point)
        })
    }

    /// Half of the settings have their default, on average.
    fn drawn(&self, random: &mut Random) -> Point {
        // The space of the best settings is chosen more often.
        let best = self.measured.first().map(|(_, point)| point.space);
        let space = match best.filter(|_| random.below(2) == 0) {
            Some(space) => space,
            None => random.below(self.spaces.len() as u64) as usize,
        };
        let value = |dimension: &Dimension| match random.below(2) {
            0 => dimension.default,
            _ => random.below(dimension.values.len() as u64) as usize,
        };
        Point { space, values: self.spaces[space].dimensions.iter().map(value).collect() }
    }

    /// One of the best settings, with another value of one to three of them.
    fn changed(&self, random: &mut Random) -> Point {
        let rank = match random.below(8) {
            0..=4 => 0,
            5 | 6 => 1,
            _ => 2,
        };
        // The second and the third are good if there are several others.
        let (_, best) = &self.measured[rank.min(self.measured.len() / 4)];
        let mut point = best.clone();
        let dimensions = &self.spaces[point.space].dimensions;
        if dimensions.is_empty() {
            return point;
        }
        let n_changes = match random.below(8) {
            0..=4 => 1,
            5 | 6 => 2,
            _ => 3,
        };
        for _ in 0..n_changes {
            let at = random.below(dimensions.len() as u64) as usize;
            let Dimension { values, is_ordered, .. } = &dimensions[at];
            let value = &mut point.values[at];
            if *is_ordered {
                let step = if random.below(3) == 0 { 2 } else { 1 };
                *value = match random.below(2) {
                    0 => value.saturating_sub(step),
                    _ => (*value + step).min(values.len() - 1),
                };
            } else {
                *value = random.below(values.len() as u64) as usize;
            }
        }
        point
    }

    /// The first settings in order of their values that were not tried.
    fn first_untried(&self) -> Option<Point> {
        (0..self.spaces.len()).find_map(|space| {
            let dimensions = &self.spaces[space].dimensions;
            let mut values = vec![0; dimensions.len()];
            loop {
                let point = self.canonical(Point { space, values: values.clone() });
                if !self.tried.contains(&point) {
                    return Some(point);
                }
                // Counts up in the number system of the dimensions.
                let at = (0..values.len()).find(|&at| values[at] + 1 < dimensions[at].values.len())?;
                values[..at].fill(0);
                values[at] += 1;
            }
        })
    }

    /// The same settings with the defaults of those that have no effect.
    fn canonical(&self, mut point: Point) -> Point {
        let dimensions = &self.spaces[point.space].dimensions;
        for (at, dimension) in dimensions.iter().enumerate() {
            let Some((flag, value)) = dimension.without else { continue };
            let other = dimensions.iter().position(|other| other.flag == flag);
            if other.is_some_and(|other| dimensions[other].values[point.values[other]] == value) {
                point.values[at] = dimension.default;
            }
        }
        point
    }
}

fn default_of(spaces: &[Space], space: usize) -> Point {
    Point { space, values: spaces[space].dimensions.iter().map(|dimension| dimension.default).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaces() -> Vec<Space> {
        let rate = || Dimension::ordered("--rate", &["0.1", "0.3", "1", "3", "10"], "1");
        let length = Dimension::ordered("--ngrams", &["1", "2", "3"], "2");
        let buckets = Dimension::ordered("--buckets", &["1000", "2000"], "1000").without("--ngrams", "1");
        vec![
            Space { flags: vec![], dimensions: vec![rate()] },
            Space {
                flags: vec![("--model", "b".to_owned())],
                dimensions: vec![rate(), length, buckets, Dimension::choice("--words", &["spaces"])],
            },
        ]
    }

    fn text(flags: &Flags) -> String {
        flags.iter().map(|(flag, value)| format!("{flag} {value}")).collect::<Vec<_>>().join(" ")
    }

    /// Tries all settings; the score is a function of them.
    fn all(seed: u64, score: impl Fn(&str) -> f64) -> Vec<String> {
        let mut search = Search::new(spaces(), seed);
        let mut found = Vec::new();
        while let Some(point) = search.next() {
            let settings = text(&search.flags(&point));
            search.note(&point, score(&settings));
            found.push(settings);
        }
        found
    }

    #[test]
    fn defaults_come_first_and_all_settings_once() {
        let found = all(1, |_| 0.0);
        assert_eq!(found[..2], ["", "--model b"]);
        let distinct: HashSet<&String> = found.iter().collect();
        assert_eq!((found.len(), distinct.len()), (5 + 5 * (1 + 2 * 2) * 2, found.len()));
        assert!(!found.iter().any(|settings| settings.contains("--ngrams 1 --buckets")), "{found:?}");
    }

    #[test]
    fn a_seed_gives_the_same_trials_and_another_seed_gives_others() {
        let score = |settings: &str| settings.len() as f64;
        assert_eq!(all(1, score), all(1, score));
        assert_ne!(all(1, score), all(2, score));
    }

    #[test]
    fn the_best_settings_are_found_before_most_others() {
        let best = "--model b --rate 3 --ngrams 3 --words spaces";
        let score = |settings: &str| {
            best.split(" --").filter(|part| settings.contains(part.trim_start_matches("--"))).count() as f64
        };
        let places: Vec<usize> = (0..9)
            .map(|seed| all(seed, score).iter().position(|settings| settings == best).unwrap())
            .collect();
        let mut sorted = places.clone();
        sorted.sort_unstable();
        // Of 55 settings; in random order it would be the 28th.
        assert!(sorted[4] < 20, "{places:?}");
    }

    #[test]
    fn a_default_has_its_place_among_the_values() {
        let dimension = Dimension::ordered("--epochs", &["2", "10"], "6");
        assert_eq!((dimension.values, dimension.default), (vec!["2".into(), "6".into(), "10".into()], 1));
        let dimension = Dimension::ordered("--epochs", &["2", "10"], "10");
        assert_eq!((dimension.values.len(), dimension.default), (2, 1));
    }
}
