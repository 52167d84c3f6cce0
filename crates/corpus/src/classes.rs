//! Counts the lines of polarity-csv and fastText whose class has no rating, and suggests `--class-ratings` for these
//! classes.

use std::collections::BTreeMap;

use crate::format::ClassRatings;

/// Maximum number of distinct classes that are counted by name.
const HELD: usize = 64;
/// Maximum number of classes in a message.
const SHOWN: usize = 8;
/// Maximum length of a class name in a message, in characters.
const NAME_CHARS_MAX: usize = 24;

/// Classes without a rating, with the number of their lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnratedClasses {
    lines: BTreeMap<String, u64>,
    /// Lines of classes beyond the first [`HELD`] distinct ones.
    n_others: u64,
}

impl UnratedClasses {
    /// Counts a line of this class.
    #[cold]
    pub(crate) fn count(&mut self, class: &str) {
        self.add(class.chars().take(NAME_CHARS_MAX).collect(), 1);
    }

    /// Adds the counts of another thread.
    pub fn merge(&mut self, other: &Self) {
        other.lines.iter().for_each(|(class, &n)| self.add(class.clone(), n));
        self.n_others += other.n_others;
    }

    fn add(&mut self, class: String, n: u64) {
        if self.lines.len() == HELD && !self.lines.contains_key(&class) {
            self.n_others += n;
        } else {
            *self.lines.entry(class).or_default() += n;
        }
    }

    /// The classes with their numbers of lines, most frequent first, and the flag that gives them ratings; `None` without
    /// any class.
    pub fn described(&self, ratings: &ClassRatings) -> Option<String> {
        if self.lines.is_empty() {
            return None;
        }
        let mut classes: Vec<_> = self.lines.iter().collect();
        classes.sort_by_key(|&(class, n)| (std::cmp::Reverse(n), class));
        // Texts and ids are not classes: the columns have another order.
        let are_classes =
            classes.len() <= SHOWN && classes.iter().all(|(class, _)| class.chars().count() < NAME_CHARS_MAX);
        if !are_classes {
            // The values may be texts of reviews, which are not written to logs.
            let n: u64 = self.lines.values().sum::<u64>() + self.n_others;
            return Some(format!(
                "{n} lines start with a text or an id in place of a class; write the class first and the text last in \
                 each line"
            ));
        }
        let shown: Vec<_> = classes.iter().map(|(class, n)| format!("{class:?} {n}")).collect();
        Some(format!(
            "classes without a rating: {}; set their stars with --class-ratings={}",
            shown.join(", "),
            self.suggested(ratings)
        ))
    }

    /// Example ratings. Numbered classes get the stars that most datasets give to these numbers; any other
    /// class gets a placeholder.
    fn suggested(&self, ratings: &ClassRatings) -> String {
        let numbers: Option<Vec<i64>> = self.lines.keys().map(|class| class.parse().ok()).collect();
        match numbers.as_deref() {
            Some([-1]) | Some([-1, 1]) => "-1=1,1=5".to_owned(),
            Some([0]) | Some([0, 1]) => "0=1,1=5".to_owned(),
            Some([0, ..]) if self.is_within(0, 4) => "0=1,1=2,2=3,3=4,4=5".to_owned(),
            Some(_) if self.is_within(1, 5) => "1=1,2=2,3=3,4=4,5=5".to_owned(),
            _ => {
                let unrated = self.lines.keys().map(|class| format!("{class}=STARS"));
                let all: Vec<_> = std::iter::once(ratings.to_string()).chain(unrated).collect();
                all.join(",")
            }
        }
    }

    fn is_within(&self, least: i64, most: i64) -> bool {
        self.lines.keys().all(|class| class.parse().is_ok_and(|n: i64| (least..=most).contains(&n)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(classes: &[&str]) -> UnratedClasses {
        let mut counted = UnratedClasses::default();
        classes.iter().for_each(|class| counted.count(class));
        counted
    }

    #[test]
    fn classes_are_listed_with_counts_and_the_flag_that_rates_them() {
        let ratings = ClassRatings::default();
        for (classes, expected) in [
            (
                &["3", "5", "3"][..],
                "classes without a rating: \"3\" 2, \"5\" 1; set their stars with --class-ratings=1=1,2=2,3=3,4=4,5=5",
            ),
            (&["0"], "classes without a rating: \"0\" 1; set their stars with --class-ratings=0=1,1=5"),
            (
                &["neutral", "good"],
                "classes without a rating: \"good\" 1, \"neutral\" 1; set their stars with --class-ratings=\
                 1=1,2=5,good=STARS,neutral=STARS",
            ),
        ] {
            assert_eq!(of(classes).described(&ratings).as_deref(), Some(expected));
        }
        assert_eq!(of(&[]).described(&ratings), None);
    }

    #[test]
    fn memory_and_message_are_bounded_whatever_the_classes() {
        let classes: Vec<String> = (0..1000).map(|n| format!("c{n:03}{}", "x".repeat(1000))).collect();
        let mut all = of(&classes.iter().map(String::as_str).collect::<Vec<_>>());
        all.merge(&of(&["another"]));
        assert_eq!((all.lines.len(), all.n_others), (HELD, 1000 - HELD as u64 + 1));
        let message = all.described(&ClassRatings::default()).unwrap();
        assert!(
            message.starts_with("1001 lines start with a text or an id in place of a class; "),
            "{message}"
        );
    }

    #[test]
    fn texts_and_ids_in_place_of_classes_are_reported_as_a_wrong_order_of_columns() {
        let ids: Vec<String> = (100..120).map(|n| n.to_string()).collect();
        for found in
            [&["A fine, long film about a house"][..], &ids.iter().map(String::as_str).collect::<Vec<_>>()]
        {
            let message = of(found).described(&ClassRatings::default()).unwrap();
            assert!(message.ends_with("; write the class first and the text last in each line"), "{message}");
            assert!(
                !message.contains("STARS") && found.iter().all(|text| !message.contains(text)),
                "{message}"
            );
        }
    }
}
