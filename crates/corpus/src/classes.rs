//! Counts the lines whose class has no rating, and suggests `--class-ratings` for these
//! classes.

use std::collections::BTreeMap;

use crate::format::{ClassRatings, Format};
use crate::review::Rating;

/// Maximum number of distinct classes that are counted by name.
const HELD: usize = 64;
/// Maximum number of classes in a message.
const SHOWN: usize = 8;
/// Maximum length of a class name in a message, in characters.
const NAME_CHARS_MAX: usize = 24;

/// Converts the values of a rating field or column to ratings. A class that is listed has its listed rating. Any other
/// value is a number of stars, unless a listed class is a number: then numbers are classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct RatingRule {
    classes: Option<ClassRatings>,
    has_stars: bool,
    /// The values without a rating.
    pub unrated: UnratedClasses,
}

impl RatingRule {
    pub fn new(classes: Option<ClassRatings>) -> Self {
        let has_stars = !classes.as_ref().is_some_and(ClassRatings::have_numbers);
        Self { classes, has_stars, unrated: UnratedClasses::default() }
    }

    /// The rating of a text.
    #[inline]
    pub fn of_text(&mut self, text: &str) -> Option<Rating> {
        match &self.classes {
            None => {
                let rating = Rating::from_text(text);
                self.unrated.see(rating, || text.trim().parse() == Ok(0.0));
                if rating.is_none() {
                    self.unrated.count_word(text);
                }
                rating
            }
            Some(classes) => {
                let stars = || self.has_stars.then(|| Rating::from_text(text)).flatten();
                let rating = classes.rating(text).or_else(stars);
                if rating.is_none() {
                    self.unrated.count(text);
                }
                rating
            }
        }
    }

    /// The rating of a JSON value that starts with this character and is neither a text nor a number: only `true` and
    /// `false` are classes.
    #[cold]
    pub fn of_name(&mut self, first: u8) -> Option<Rating> {
        let class = match first {
            b't' => "true",
            b'f' => "false",
            _ => return None,
        };
        self.classes.is_some().then(|| self.of_text(class)).flatten()
    }

    /// The rating of a number. A whole number is the class that is written without a fraction.
    #[inline]
    pub fn of_number(&mut self, number: f64) -> Option<Rating> {
        let Some(classes) = &self.classes else {
            let rating = Rating::from_number(number);
            self.unrated.see(rating, || number == 0.0);
            return rating;
        };
        // The shortest form, without a fraction for a whole number.
        let class = number.to_string();
        let stars = || self.has_stars.then(|| Rating::from_number(number)).flatten();
        let rating = classes.rating(&class).or_else(stars);
        if rating.is_none() {
            self.unrated.count(&class);
        }
        rating
    }
}

/// Classes without a rating, with the number of their lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnratedClasses {
    lines: BTreeMap<String, u64>,
    /// Lines of classes beyond the first [`HELD`] distinct ones.
    n_others: u64,
    /// Lines whose rating is 0, if no classes are listed.
    n_zeros: u64,
    /// One bit per number of stars that was found, if no classes are listed.
    stars: u8,
}

impl UnratedClasses {
    /// Counts a line of this class.
    #[cold]
    pub(crate) fn count(&mut self, class: &str) {
        self.add(class.chars().take(NAME_CHARS_MAX).collect(), 1);
    }

    /// Counts a line of this value, if it can be a class beside stars: with a number among the listed classes, the other
    /// numbers would no longer be stars.
    #[cold]
    fn count_word(&mut self, value: &str) {
        let value = value.trim();
        if !value.is_empty() && value.parse::<f64>().is_err() {
            self.count(value);
        }
    }

    /// Notes a value that is a number of stars, or 0.
    #[inline]
    fn see(&mut self, rating: Option<Rating>, is_zero: impl FnOnce() -> bool) {
        match rating {
            Some(rating) => self.stars |= 1 << rating.stars(),
            None => self.n_zeros += u64::from(is_zero()),
        }
    }

    /// The cause and the remedy if the values are classes from 0, which are no stars: 0 is one of them, and 5 is not.
    pub fn from_zero(&self) -> Option<String> {
        let has = |stars: u8| self.stars & (1 << stars) != 0;
        if self.n_zeros == 0 || has(5) {
            return None;
        }
        let found: Vec<_> = (1..5).filter(|&stars| has(stars)).map(|stars| stars.to_string()).collect();
        let ratings = if self.stars & !(1 << 1) == 0 { "0=1,1=5" } else { "0=1,1=2,2=3,3=4,4=5" };
        let values = [&["0".to_owned()][..], &found].concat().join(", ");
        Some(format!(
            "the values {values} are classes and not stars; set their stars with --class-ratings={ratings}"
        ))
    }

    /// Adds the counts of another thread.
    pub fn merge(&mut self, other: &Self) {
        self.n_zeros += other.n_zeros;
        self.stars |= other.stars;
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

    /// Whether these values may be classes, and not texts or ids.
    fn are_classes(&self) -> bool {
        self.lines.len() <= SHOWN && self.lines.keys().all(|class| class.chars().count() < NAME_CHARS_MAX)
    }

    /// The classes with their numbers of lines, most frequent first, and the flag that gives them ratings. `None` without
    /// any class, and for values of a field or a column that are probably not classes.
    pub fn described(&self, format: &Format) -> Option<String> {
        let ratings = format.class_ratings()?;
        if self.lines.is_empty() {
            return None;
        }
        // Texts and ids are not classes: the columns have another order, or the field is another one.
        if !self.are_classes() {
            // The values may be texts of reviews, which are not written to logs.
            let n: u64 = self.lines.values().sum::<u64>() + self.n_others;
            let advice = "start with a text or an id in place of a class; write the class first and the text last in \
                          each line";
            return (!format.has_fields()).then(|| format!("{n} lines {advice}"));
        }
        // In a field, numbers may be stars.
        let suggested = if format.has_fields() { self.added_to(ratings) } else { self.suggested(ratings) };
        Some(format!("classes without a rating: {}", self.with_flag(&suggested)))
    }

    /// The values of a field whose classes are not listed, and the flag that gives them ratings. `None` if they are not those
    /// of most of these lines without a rating, or probably no classes.
    pub fn found(&self, n_unrated: u64) -> Option<String> {
        let are_most = 2 * self.lines.values().sum::<u64>() > n_unrated;
        let can_be_listed =
            |class: &String| !class.contains(|c: char| c == ',' || c == '=' || c.is_control());
        let are_found = are_most && self.are_classes() && self.lines.keys().all(can_be_listed);
        are_found.then(|| self.with_flag(&self.placeholders().collect::<Vec<_>>().join(",")))
    }

    /// The classes with their numbers of lines, most frequent first, and the flag with these ratings.
    fn with_flag(&self, suggested: &str) -> String {
        let mut classes: Vec<_> = self.lines.iter().collect();
        classes.sort_by_key(|&(class, n)| (std::cmp::Reverse(n), class));
        let shown: Vec<_> = classes.iter().map(|(class, n)| format!("{class:?} {n}")).collect();
        // A shell takes these characters as they are.
        let is_plain =
            |character: char| character.is_ascii_alphanumeric() || "=,.-_+:/@%".contains(character);
        let quote = if suggested.chars().all(is_plain) { "" } else { "'" };
        format!(
            "{}; set their stars with --class-ratings={quote}{}{quote}",
            shown.join(", "),
            suggested.replace('\'', r"'\''")
        )
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
            _ => self.added_to(ratings),
        }
    }

    /// These ratings and a placeholder for each class.
    fn added_to(&self, ratings: &ClassRatings) -> String {
        std::iter::once(ratings.to_string()).chain(self.placeholders()).collect::<Vec<_>>().join(",")
    }

    fn placeholders(&self) -> impl Iterator<Item = String> {
        self.lines.keys().map(|class| format!("{class}=STARS"))
    }

    fn is_within(&self, least: i64, most: i64) -> bool {
        self.lines.keys().all(|class| class.parse().is_ok_and(|n: i64| (least..=most).contains(&n)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Fields;

    #[test]
    fn a_listed_class_has_its_rating_and_other_values_are_stars() {
        let mut rule = RatingRule::new("good=5,bad=1".parse().ok());
        let stars = |rating: Option<Rating>| rating.map(Rating::stars);
        for (text, expected) in
            [("good", Some(5)), ("bad", Some(1)), ("1.0", Some(1)), (" 4 ", Some(4)), ("Good", None)]
        {
            assert_eq!(stars(rule.of_text(text)), expected, "{text:?}");
        }
        assert_eq!([3.0, 0.5].map(|number| stars(rule.of_number(number))), [Some(3), None]);
        assert_eq!(rule.unrated, of(&["Good", "0.5"]));
        // Numbers are classes if one of them is listed.
        let mut rule = RatingRule::new("good=5,0=1,1=5,-1=2".parse().ok());
        for (number, expected) in [(0.0, Some(1)), (1.0, Some(5)), (-1.0, Some(2)), (3.0, None)] {
            assert_eq!(stars(rule.of_number(number)), expected, "{number}");
        }
        assert_eq!(["good", "1", "4"].map(|text| stars(rule.of_text(text))), [Some(5), Some(5), None]);
        assert_eq!(rule.unrated, of(&["3", "4"]));
        let mut none = RatingRule::default();
        assert_eq!([stars(none.of_text("good")), stars(none.of_number(1.0))], [None, Some(1)]);
        assert_eq!(none.unrated.described(&Format::default()), None);
        let found = "\"good\" 1; set their stars with --class-ratings=good=STARS";
        assert_eq!(none.unrated.found(1).as_deref(), Some(found));
        assert_eq!(none.unrated.found(2), None);
        // With a number among the classes, 1 to 5 would be no stars.
        assert_eq!([" ", "7", "4.5"].map(|text| stars(none.of_text(text))), [None; 3]);
        assert_eq!(none.unrated.found(1).as_deref(), Some(found));
        for no_class in ["so, so", "two\nlines", "A fine, long film about a house"] {
            let mut rule = RatingRule::default();
            assert_eq!((stars(rule.of_text(no_class)), rule.unrated.found(1)), (None, None), "{no_class}");
        }
    }

    #[test]
    fn classes_from_zero_are_recognized_unless_there_are_five_stars() {
        let found = |numbers: &[f64]| {
            let mut rule = RatingRule::default();
            numbers.iter().for_each(|&number| _ = rule.of_number(number));
            let mut texts = RatingRule::default();
            numbers.iter().for_each(|number| _ = texts.of_text(&format!(" {number:.1}")));
            assert_eq!(rule.unrated.from_zero(), texts.unrated.from_zero());
            rule.unrated.from_zero()
        };
        let expected =
            "the values 0, 1 are classes and not stars; set their stars with --class-ratings=0=1,1=5";
        assert_eq!(found(&[1.0, 0.0, 1.0]).as_deref(), Some(expected));
        let of_five = found(&[3.0, 4.0, 0.0]).unwrap();
        assert!(
            of_five.contains("values 0, 3, 4 are") && of_five.ends_with("0=1,1=2,2=3,3=4,4=5"),
            "{of_five}"
        );
        assert_eq!([found(&[0.0, 5.0]), found(&[1.0, 2.0]), found(&[])], [None, None, None]);
    }

    fn of(classes: &[&str]) -> UnratedClasses {
        let mut counted = UnratedClasses::default();
        classes.iter().for_each(|class| counted.count(class));
        counted
    }

    fn lines() -> Format {
        Format::FastText { ratings: ClassRatings::default() }
    }

    #[test]
    fn the_advice_for_a_field_is_not_that_for_lines_of_classes() {
        let fields = Fields { classes: "good=5".parse().ok(), ..Fields::default() };
        let format = Format::Json(fields);
        for (classes, expected) in [
            (&["0"][..], "\"0\" 1; set their stars with --class-ratings=good=5,0=STARS"),
            (
                &["-1", "meh"],
                "\"-1\" 1, \"meh\" 1; set their stars with --class-ratings=good=5,-1=STARS,meh=STARS",
            ),
        ] {
            let message = of(classes).described(&format).unwrap();
            assert_eq!(message.strip_prefix("classes without a rating: "), Some(expected));
        }
        assert_eq!(of(&["A fine, long film about a house"]).described(&format), None);
        assert_eq!(of(&["0"]).described(&Format::default()), None);
    }

    #[test]
    fn classes_are_listed_with_counts_and_the_flag_that_rates_them() {
        let format = lines();
        for (classes, expected) in [
            (
                &["3", "5", "3"][..],
                "classes without a rating: \"3\" 2, \"5\" 1; set their stars with --class-ratings=1=1,2=2,3=3,4=4,5=5",
            ),
            (&["0"], "classes without a rating: \"0\" 1; set their stars with --class-ratings=0=1,1=5"),
            (
                &["so so", "it's"],
                "classes without a rating: \"it's\" 1, \"so so\" 1; set their stars with --class-ratings=\
                 '1=1,2=5,it'\\''s=STARS,so so=STARS'",
            ),
            (
                &["neutral", "good"],
                "classes without a rating: \"good\" 1, \"neutral\" 1; set their stars with --class-ratings=\
                 1=1,2=5,good=STARS,neutral=STARS",
            ),
        ] {
            assert_eq!(of(classes).described(&format).as_deref(), Some(expected));
        }
        assert_eq!(of(&[]).described(&format), None);
    }

    #[test]
    fn memory_and_message_are_bounded_whatever_the_classes() {
        let classes: Vec<String> = (0..1000).map(|n| format!("c{n:03}{}", "x".repeat(1000))).collect();
        let mut all = of(&classes.iter().map(String::as_str).collect::<Vec<_>>());
        all.merge(&of(&["another"]));
        assert_eq!((all.lines.len(), all.n_others), (HELD, 1000 - HELD as u64 + 1));
        let message = all.described(&lines()).unwrap();
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
            let message = of(found).described(&lines()).unwrap();
            assert!(message.ends_with("; write the class first and the text last in each line"), "{message}");
            assert!(
                !message.contains("STARS") && found.iter().all(|text| !message.contains(text)),
                "{message}"
            );
        }
    }
}
