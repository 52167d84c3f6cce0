//! Settings that change the content of a dataset, and their effects: rating to label, text to kept tokens.

use program::exit::quoted;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::clean::{Cleaner, Rules, UNICODE_VERSION};
use crate::labels::Labels;
use crate::record::Votes;
use crate::sample::Sample;
use crate::stop_words;

/// All settings that determine which texts are rows, and the content of a row. Shards of one dataset have equal
/// settings. A saved model carries them, so that prediction prepares a text as training did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Version of the cleaning rules.
    pub cleaning_version: u32,
    /// Version of Unicode that defines letters.
    pub unicode_version: String,
    /// Words excluded from rows and dictionary, in byte order, without duplicates.
    pub stop_words: Vec<String>,
    /// Maximum number of tokens of a row; 0 is no limit.
    pub max_tokens: u32,
    /// Which tokens a longer row keeps.
    pub keep: Keep,
    /// The label of each rating.
    pub labels: Labels,
    /// The texts that become rows. It does not change the content of a row.
    pub sample: Sample,
}

impl Default for Settings {
    /// The profile `modern`: no stop words, so that "not good" and "good" differ, and up to 400 tokens from
    /// both ends.
    fn default() -> Self {
        Self {
            cleaning_version: Rules::default().version(),
            unicode_version: UNICODE_VERSION.to_owned(),
            stop_words: Vec::new(),
            max_tokens: 400,
            keep: Keep::Ends,
            labels: Labels::PositiveFrom(4),
            sample: Sample::ALL,
        }
    }
}

impl Settings {
    /// The profile `original`: the preparation of the original system, which drops "not" and reduces
    /// accuracy.
    pub fn original() -> Self {
        Self { stop_words: stop_words::nltk(), max_tokens: 100, keep: Keep::First, ..Self::default() }
    }

    /// The rules with which texts were cleaned. `None` if they are those of another version of this program.
    pub fn rules(&self) -> Option<Rules> {
        let is_known = |rules: &Rules| self.cleaning_version == rules.version();
        Rules::ALL.into_iter().find(is_known).filter(|_| self.unicode_version == UNICODE_VERSION)
    }

    /// The cleaning version and its flag, for messages.
    pub fn cleaning(&self) -> String {
        let flag = if self.rules() == Some(Rules::Punctuation) { " (--punctuation)" } else { "" };
        format!("{}{flag}", self.cleaning_version)
    }

    /// A cleaner for [`Self::is_word`].
    pub fn cleaner(&self) -> Cleaner {
        Cleaner::new(self.rules().unwrap_or_default())
    }

    /// The label of a text: that of the mode of its votes. `None` if this rating has no class.
    #[inline]
    pub fn label(&self, votes: Votes) -> Option<u8> {
        self.labels.label(votes.mode())
    }

    /// The tokens that a row keeps, from all its words that are not stop words: one slice from the start and
    /// one from the end, which do not overlap.
    pub fn kept<'a, T>(&self, words: &'a [T]) -> (&'a [T], &'a [T]) {
        let most = self.max_tokens as usize;
        if !self.cuts(words.len()) {
            return (words, &[]);
        }
        let (front, back) = match self.keep {
            Keep::First => (most, 0),
            Keep::Last => (0, most),
            Keep::Ends => (most.div_ceil(2), most / 2),
        };
        (&words[..front], &words[words.len() - back..])
    }

    /// Whether a row with this number of words keeps only some of them.
    #[inline]
    pub fn cuts(&self, n_words: usize) -> bool {
        self.max_tokens > 0 && n_words > self.max_tokens as usize
    }

    /// The settings of texts that rows of these settings do not describe completely: all words, whatever the rating.
    pub fn of_rest(&self) -> Self {
        let Self { labels, keep, .. } = Self::default();
        Self { stop_words: Vec::new(), max_tokens: 0, keep, labels, ..self.clone() }
    }

    /// The flags of `reducer` and `sentimill` with which a row has the same content. A custom list of stop words is
    /// shown as `FILE`.
    pub fn flags(&self) -> String {
        let named = [
            ("none", Vec::new()),
            ("nltk", stop_words::nltk()),
            ("nltk-negations", stop_words::nltk_negations()),
        ];
        let list = named.iter().find(|(_, words)| *words == self.stop_words).map_or("FILE", |(name, _)| name);
        let punctuation = if self.rules() == Some(Rules::Punctuation) { "--punctuation " } else { "" };
        let (keep, labels) = (self.keep.name(), self.labels.flag());
        format!("{punctuation}--stopwords {list} --max-tokens {} --keep {keep} {labels}", self.max_tokens)
    }

    /// Returns the first setting in which `other` differs, with both values; `None` if all are equal.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        self.row_difference(other).or_else(|| {
            let (ours, theirs) = (self.sample.to_string(), other.sample.to_string());
            (ours != theirs).then_some(Difference { setting: "sample", ours, theirs })
        })
    }

    /// Returns the first setting in which the content of a row differs, as [`Self::difference`] does. The sample is not
    /// compared: it selects rows and changes none.
    pub fn row_difference(&self, other: &Self) -> Option<Difference> {
        let labels = match (self.labels.positive_from(), other.labels.positive_from()) {
            (Some(ours), Some(theirs)) => ("positive-from", ours.to_string(), theirs.to_string()),
            _ => ("labels", self.labels.flag(), other.labels.flag()),
        };
        let pairs = [
            ("cleaning version", self.cleaning(), other.cleaning()),
            ("Unicode version", self.unicode_version.clone(), other.unicode_version.clone()),
            ("stop words", described(&self.stop_words), described(&other.stop_words)),
            ("max-tokens", self.max_tokens.to_string(), other.max_tokens.to_string()),
            ("keep", self.keep.name().to_owned(), other.keep.name().to_owned()),
            labels,
        ];
        let (setting, ours, theirs) = pairs.into_iter().find(|(_, ours, theirs)| ours != theirs)?;
        Some(Difference { setting, ours, theirs })
    }

    /// Checks settings from a file or a record: a reducer could have written them.
    pub fn check(&self) -> Result<(), Unsound> {
        let unsound = |setting, found, expected| Err(Unsound { setting, found, expected });
        if self.cleaning_version == 0 {
            return unsound("cleaning version", "0".to_owned(), "1 or more");
        }
        let numbers = self.unicode_version.split('.');
        if self.unicode_version.len() > UNICODE_VERSION_BYTES_MAX
            || !numbers.clone().all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        {
            return unsound(
                "Unicode version",
                quoted(self.unicode_version.as_bytes()),
                "numbers joined by dots",
            );
        }
        if let Some(found) = self.labels.positive_from().filter(|rating| !(1..=5).contains(rating)) {
            return unsound("positive-from", found.to_string(), "1 to 5");
        }
        let mut cleaner = self.cleaner();
        if let Some(word) = self.stop_words.iter().find(|word| !self.is_word(&mut cleaner, word.as_bytes())) {
            return unsound("stop words", quoted(word.as_bytes()), "a cleaned word");
        }
        if let Some(pair) = self.stop_words.windows(2).find(|pair| pair[0] >= pair[1]) {
            let found = format!("{} behind {}", quoted(pair[1].as_bytes()), quoted(pair[0].as_bytes()));
            return unsound("stop words", found, "words in byte order, each once");
        }
        Ok(())
    }

    /// Whether a text cleaned with these settings can contain this word. `cleaner` is [`Self::cleaner`]. If the
    /// settings have the rules of another version of this program, only checks that the word is UTF-8 without
    /// spaces and control characters.
    pub fn is_word(&self, cleaner: &mut Cleaner, word: &[u8]) -> bool {
        if self.rules().is_some() {
            return cleaner.is_word(word);
        }
        let is_other = |c: char| c.is_whitespace() || c.is_control();
        str::from_utf8(word).is_ok_and(|word| !word.is_empty() && !word.contains(is_other))
    }
}

/// Maximum length of a Unicode version, long enough for every version.
const UNICODE_VERSION_BYTES_MAX: usize = 32;

/// A setting whose value no reducer can have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{setting} is {found}, expected {expected}")]
pub struct Unsound {
    /// Name of the setting.
    pub setting: &'static str,
    /// Value of the setting, without control characters.
    pub found: String,
    /// The expected value.
    pub expected: &'static str,
}

/// Describes a list of stop words by its length and a digest, which distinguishes lists of equal length.
fn described(words: &[String]) -> String {
    let digest = xxhash_rust::xxh3::xxh3_64(words.join("\n").as_bytes());
    format!("{} words ({:08x})", words.len(), digest >> 32)
}

/// A setting in which two `Settings` differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Name of the setting.
    pub setting: &'static str,
    /// Value on this side.
    pub ours: String,
    /// Value on the other side.
    pub theirs: String,
}

/// Which tokens a row keeps if it has more than `max_tokens`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// The first.
    First,
    /// The last.
    Last,
    /// The first half, rounded up, and the last half.
    Ends,
}

impl Keep {
    /// The name in options and attributes.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
            Self::Ends => "ends",
        }
    }
}

/// The name is none of `first`, `last`, `ends`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("keep is {0:?}, expected first, last or ends")]
pub struct UnknownKeep(pub String);

impl std::str::FromStr for Keep {
    type Err = UnknownKeep;

    fn from_str(name: &str) -> Result<Self, UnknownKeep> {
        [Self::First, Self::Last, Self::Ends]
            .into_iter()
            .find(|keep| keep.name() == name)
            .ok_or_else(|| UnknownKeep(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(keep: Keep, max_tokens: u32, n: usize) -> Vec<usize> {
        let words: Vec<usize> = (0..n).collect();
        let settings = Settings { keep, max_tokens, ..Settings::default() };
        let (front, back) = settings.kept(&words);
        [front, back].concat()
    }

    #[test]
    fn a_long_row_keeps_the_chosen_end() {
        assert_eq!(kept(Keep::First, 3, 7), [0, 1, 2]);
        assert_eq!(kept(Keep::Last, 3, 7), [4, 5, 6]);
        assert_eq!(kept(Keep::Ends, 3, 7), [0, 1, 6]);
        assert_eq!(kept(Keep::Ends, 4, 7), [0, 1, 5, 6]);
        assert_eq!(kept(Keep::Ends, 1, 7), [0]);
    }

    #[test]
    fn a_short_row_keeps_all_and_zero_means_no_limit() {
        for keep in [Keep::First, Keep::Last, Keep::Ends] {
            assert_eq!(kept(keep, 3, 3), [0, 1, 2]);
            assert_eq!(kept(keep, 0, 5), [0, 1, 2, 3, 4]);
        }
    }

    fn classes(list: &str) -> Labels {
        Labels::Classes(list.parse().unwrap())
    }

    #[test]
    fn the_label_is_derived_from_the_mode() {
        let settings = Settings::default();
        assert_eq!(settings.label(Votes([1, 0, 0, 0, 2])), Some(1));
        assert_eq!(settings.label(Votes([0, 0, 1, 1, 0])), Some(0));
        let of_three = |labels| Settings { labels, ..Settings::default() }.label(Votes([0, 0, 1, 1, 0]));
        assert_eq!(of_three(Labels::PositiveFrom(3)), Some(1));
        assert_eq!(of_three(classes("1=bad,3=neutral,2=poor")), Some(1));
        assert_eq!(of_three(classes("1-2=bad,4-5=good")), None);
    }

    #[test]
    fn flags_show_the_name_of_a_known_stop_word_list() {
        let original = "--stopwords nltk --max-tokens 100 --keep first --positive-from 4";
        assert_eq!(Settings::original().flags(), original);
        let labels = Labels::PositiveFrom(3);
        let own = Settings { stop_words: vec!["soap".to_owned()], labels, ..Settings::default() };
        assert_eq!(own.flags(), "--stopwords FILE --max-tokens 400 --keep ends --positive-from 3");
        let three = Settings { labels: classes("1-2=bad,3=so so,4-5=good"), ..Settings::default() };
        let expected = "--stopwords none --max-tokens 400 --keep ends --labels '1-2=bad,3=so so,4-5=good'";
        assert_eq!(three.flags(), expected);
    }

    #[test]
    fn a_difference_is_named_with_both_values() {
        let ours = Settings::default();
        assert_eq!(ours.difference(&ours.clone()), None);
        let theirs = Settings { max_tokens: 100, ..ours.clone() };
        let expected = Difference { setting: "max-tokens", ours: "400".to_owned(), theirs: "100".to_owned() };
        assert_eq!(ours.difference(&theirs), Some(expected));
        let theirs = Settings { labels: classes("1-3=negative,4-5=positive"), ..ours.clone() };
        let (one, other) = ("--positive-from 4".to_owned(), "--labels 1-3=negative,4-5=positive".to_owned());
        let expected = Difference { setting: "labels", ours: one, theirs: other };
        assert_eq!(ours.difference(&theirs), Some(expected));
    }

    #[test]
    fn a_sample_is_a_difference_but_not_of_a_row() {
        let ours = Settings::default();
        let theirs = Settings { sample: "0.25".parse().unwrap(), ..ours.clone() };
        let expected = Difference { setting: "sample", ours: "1".to_owned(), theirs: "0.25".to_owned() };
        assert_eq!(ours.difference(&theirs), Some(expected));
        assert_eq!(ours.row_difference(&theirs), None);
        let other = Settings { max_tokens: 5, ..theirs.clone() };
        assert_eq!(other.difference(&ours).unwrap().setting, "max-tokens");
        assert_eq!(theirs.flags(), ours.flags());
    }

    #[track_caller]
    fn unsound(settings: &Settings) -> String {
        settings.check().unwrap_err().to_string()
    }

    #[test]
    fn impossible_settings_are_refused_by_name() {
        for sound in [Settings::default(), Settings::original()] {
            assert_eq!(sound.check(), Ok(()));
        }
        let with = |words: &[&str]| Settings {
            stop_words: words.iter().map(|&word| word.to_owned()).collect(),
            ..Settings::default()
        };
        let in_order = "expected words in byte order, each once";
        assert_eq!(unsound(&with(&["b", "a"])), format!("stop words is \"a\" behind \"b\", {in_order}"));
        assert_eq!(unsound(&with(&["a", "a"])), format!("stop words is \"a\" behind \"a\", {in_order}"));
        assert_eq!(unsound(&with(&["The"])), "stop words is \"The\", expected a cleaned word");
        let default = Settings::default;
        assert_eq!(
            unsound(&Settings { labels: Labels::PositiveFrom(0), ..default() }),
            "positive-from is 0, expected 1 to 5"
        );
        assert_eq!(
            unsound(&Settings { labels: Labels::PositiveFrom(6), ..default() }),
            "positive-from is 6, expected 1 to 5"
        );
        assert_eq!(
            unsound(&Settings { cleaning_version: 0, ..default() }),
            "cleaning version is 0, expected 1 or more"
        );
        for version in ["17..0", "", "\u{1b}[2J", "17.0.0 ", &"1".repeat(33)] {
            let said = unsound(&Settings { unicode_version: version.to_owned(), ..default() });
            assert!(said.starts_with("Unicode version is ") && !said.contains('\u{1b}'), "{said}");
        }
        assert_eq!(Settings { unicode_version: "1".repeat(32), ..default() }.check(), Ok(()));
    }

    #[test]
    fn words_are_those_of_the_rules() {
        let rules = |cleaning_version| Settings { cleaning_version, ..Settings::default() };
        for (settings, words, others) in [
            (rules(1), &["good", "it's"][..], &["!", "a1", "7"][..]),
            (
                rules(2),
                &["good", "it's", "!", "a1", "7", "<", "&", "½", "☃"],
                &["a!", "'a", "!!", "Good", "é\u{301}☃"],
            ),
        ] {
            let mut cleaner = settings.cleaner();
            let mut is_word = |word: &&str| settings.is_word(&mut cleaner, word.as_bytes());
            assert!(words.iter().all(&mut is_word));
            assert!(!others.iter().any(&mut is_word));
        }
        assert!(rules(2).flags().starts_with("--punctuation --stopwords none "));
        let difference = rules(1).row_difference(&rules(2)).unwrap();
        assert_eq!((&difference.ours[..], &difference.theirs[..]), ("1", "2 (--punctuation)"));
    }

    #[test]
    fn words_of_other_cleaning_versions_have_no_spaces_or_control_characters() {
        let others = [
            Settings { cleaning_version: 7, ..Settings::default() },
            Settings { unicode_version: "99.0.0".to_owned(), ..Settings::default() },
        ];
        let mut cleaner = Cleaner::default();
        assert!(!Settings::default().is_word(&mut cleaner, b"A1"));
        for settings in others {
            assert!(settings.is_word(&mut cleaner, b"A1"));
            for word in [&b""[..], b"a b", b"a\nb", b"a\0b", b"\x1b[2J", b"caf\xe9", "a\u{9b}2J".as_bytes()] {
                assert!(!settings.is_word(&mut cleaner, word), "{word:?}");
            }
        }
    }
}
