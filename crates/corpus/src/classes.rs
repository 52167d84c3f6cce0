//! Counts the values that are no ratings, and suggests the flag that gives them one: `--class-ratings`, `--rating-scale`
//! or `--unrated`.

use std::collections::BTreeMap;

use crate::class_ratings::{ClassRatings, escaped};
use crate::entry::{Rating, RatingValue};
use crate::format::{FieldPath, Fields, Format};
use crate::scale::Spelled;
use crate::shape::Shapes;
use crate::shell;

/// Maximum number of distinct classes that are counted by name.
const HELD: usize = 64;
/// Maximum number of classes in a message.
const SHOWN: usize = 8;
/// Maximum length of a class name in a message, in characters.
const NAME_CHARS_MAX: usize = 24;
/// Maximum number of labels of a dataset.
const LABELS_MAX: usize = 5;
/// In place of a number of stars that a user knows.
const PLACEHOLDER: &str = "STARS";
/// How labels are learned that are not stars.
const BY_NAME: &str = "by their names with --label-field NAME of ngrams train";

/// Values without a rating, with the number of their lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundValues {
    /// Texts, and numbers as they are written.
    lines: BTreeMap<String, u64>,
    /// Lines of values beyond the first [`HELD`] distinct ones.
    n_others: u64,
    /// Lines whose rating is null or absent.
    n_nulls: u64,
    /// Lines whose rating is NaN or infinite.
    n_nans: u64,
    /// Lines whose rating is 0, if no classes are listed.
    n_zeros: u64,
    /// One bit per number of stars that was found, if no classes are listed.
    stars: u8,
    /// The numbers among the values.
    numbers: Option<Numbers>,
    /// What rejected lines contain in place of a text or a rating.
    pub(crate) shapes: Shapes,
}

/// The range of numbers that may be of a scale.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Numbers {
    n_lines: u64,
    least: f64,
    /// The greatest of the numbers, and of the tops of their scales.
    most: f64,
    are_whole: bool,
}

/// Usual scales: their tops, each with the numbers at which they start, the most usual one first.
const SCALES: [(f64, &[f64]); 5] =
    [(1.0, &[0.0]), (5.0, &[1.0, 0.5, 0.0]), (10.0, &[1.0, 0.0]), (20.0, &[0.0]), (100.0, &[0.0])];

impl FoundValues {
    /// Counts a line of this class.
    #[cold]
    pub(crate) fn count(&mut self, class: &str) {
        self.add(class.chars().take(NAME_CHARS_MAX).collect(), 1);
    }

    /// Counts a line of this value. `may_be_class`: no classes are listed, so that 0 may be one beside stars.
    #[cold]
    pub(crate) fn add_value(&mut self, value: RatingValue<'_>, may_be_class: bool) {
        let text = match value {
            RatingValue::Missing => String::new(),
            // The shortest form, without a fraction for a whole number.
            RatingValue::Number(number) if number.is_finite() => number.to_string(),
            RatingValue::Number(_) => {
                self.n_nans += 1;
                return;
            }
            RatingValue::Text(text) => String::from_utf8_lossy(text).into_owned(),
        };
        let trimmed = text.trim();
        if trimmed.is_empty() {
            self.n_nulls += 1;
            return;
        }
        if let RatingValue::Missing = value {
            self.n_nulls += 1;
            return;
        }
        self.count(if may_be_class { trimmed } else { &text });
        if let Some(Spelled { number, top }) = Spelled::of(trimmed) {
            self.n_zeros += u64::from(may_be_class && trimmed.parse() == Ok(0.0));
            let most = number.max(top.unwrap_or(number));
            self.add_numbers(Numbers { n_lines: 1, least: number, most, are_whole: number.fract() == 0.0 });
        }
    }

    fn add_numbers(&mut self, more: Numbers) {
        let so_far = self.numbers.get_or_insert(Numbers { n_lines: 0, ..more });
        so_far.n_lines += more.n_lines;
        so_far.least = so_far.least.min(more.least);
        so_far.most = so_far.most.max(more.most);
        so_far.are_whole &= more.are_whole;
    }

    /// Notes a value that is a number of stars.
    #[inline]
    pub(crate) fn see(&mut self, rating: Rating) {
        self.stars |= 1 << rating.stars();
    }

    /// The cause and the remedy if the values are classes from 0, which are no stars: 0 is one of them, and 5 and greater
    /// numbers are not.
    pub fn from_zero(&self) -> Option<String> {
        let has = |stars: u8| self.stars & (1 << stars) != 0;
        let is_other = |numbers: Numbers| numbers.most > 5.0 || !numbers.are_whole;
        if self.n_zeros == 0 || has(5) || self.numbers.is_some_and(is_other) {
            return None;
        }
        let is_signed = self.lines.contains_key("-1");
        let at_most_one = self.stars & !(1 << 1) == 0;
        let ratings = match (is_signed, at_most_one) {
            (true, true) => "-1=1,0=3,1=5",
            (false, true) => "0=1,1=5",
            _ => "0=1,1=2,2=3,3=4,4=5",
        };
        let below = is_signed.then(|| "-1".to_owned()).into_iter().chain(["0".to_owned()]);
        let found = (1..5).filter(|&stars| has(stars)).map(|stars| stars.to_string());
        let values = below.chain(found).collect::<Vec<_>>().join(", ");
        Some(format!(
            "the values {values} are classes and not stars; set their stars with --class-ratings={ratings}, or pass \
             --unrated=0 if 0 means unrated"
        ))
    }

    /// Number of lines whose rating is 0.
    pub(crate) fn n_zeros(&self) -> u64 {
        self.n_zeros
    }

    /// Adds the counts of another thread.
    pub fn merge(&mut self, other: &Self) {
        self.n_zeros += other.n_zeros;
        self.n_nulls += other.n_nulls;
        self.n_nans += other.n_nans;
        other.numbers.into_iter().for_each(|numbers| self.add_numbers(numbers));
        self.shapes.merge(&other.shapes);
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
        let more =
            if self.lines.len() > LABELS_MAX && self.numbers.is_none() && suggested.contains(PLACEHOLDER) {
                format!(", or learn more than five labels {BY_NAME}")
            } else {
                String::new()
            };
        let apart = if self.n_nulls > 0 { ", and count null apart with --unrated=null" } else { "" };
        Some(format!(
            "classes without a rating: {}; set their stars with {}{apart}{more}",
            self.shown(),
            flag(&suggested)
        ))
    }

    /// The values of a field that are no ratings, and the flag that gives them one, if there is a usual one. `None` if they
    /// are not those of most of these lines without a rating, or probably no classes.
    pub fn found(&self, n_unrated: u64, fields: &Fields) -> Option<(String, Option<String>)> {
        let n_named: u64 = self.lines.values().sum();
        let n_values = n_named + self.n_others + self.n_nulls + self.n_nans;
        let n_numbers = self.numbers.map_or(0, |numbers| numbers.n_lines);
        let n_words = n_named + self.n_others - n_numbers;
        if 2 * n_values <= n_unrated {
            return None;
        }
        if n_words > 0 && !self.can_be_listed() {
            // Labels are repeated; texts and ids are not.
            let are_labels = self.n_others == 0 && n_named >= 3 * self.lines.len() as u64;
            let n_labels = self.lines.len();
            let them = if n_labels > LABELS_MAX { "more than five labels" } else { "the labels" };
            return are_labels
                .then(|| (format!("{n_labels} values"), Some(format!("learn {them} {BY_NAME}"))));
        }
        let remedy = match self.numbers {
            // They were read with the flag.
            _ if fields.scale.is_some() && n_words == 0 && n_numbers > 0 => None,
            Some(numbers) if n_words == 0 && n_numbers > self.n_zeros => self.scale_of(numbers),
            // A field without any rating is another field.
            _ if n_words == 0 && self.stars == 0 && fields.classes.is_none() && fields.scale.is_none() => {
                None
            }
            _ if n_words == 0 => Some(format!("count them apart with --unrated={}", self.unrated_listed())),
            _ if self.words().count() > LABELS_MAX => Some(format!("learn more than five labels {BY_NAME}")),
            _ => {
                let listed = self.words().map(placeholder).collect::<Vec<_>>().join(",");
                let apart = match &self.unrated_listed()[..] {
                    "" | "0" => String::new(),
                    listed => format!(", and count {listed} apart with --unrated={listed}"),
                };
                Some(format!("set their stars with {}{apart}", flag(&listed)))
            }
        };
        Some((self.shown(), remedy))
    }

    /// The values of a field that are no labels.
    pub(crate) fn without_label(&self, field: &FieldPath) -> String {
        let found = match self.shapes.without_rating() {
            Some(shape) => shape,
            None if self.lines.is_empty() && self.n_nulls == 0 && self.n_nans == 0 => {
                "other values".to_owned()
            }
            None => self.shown(),
        };
        let apart = match &self.unrated_listed()[..] {
            "" => String::new(),
            listed => format!(", or count these lines apart with --unrated={listed}"),
        };
        format!(
            "lines have no label in the field {}: {found}, expected texts, or whole numbers below 2^53; name another field \
             with --label-field{apart}",
            field.quoted()
        )
    }

    /// The flag of the usual scale that has these numbers; `None` if they are probably something else.
    fn scale_of(&self, numbers: Numbers) -> Option<String> {
        // Stars may be numbers of the scale, too.
        let stars = (1..=5).filter(|&stars| self.stars & (1 << stars) != 0).map(f64::from);
        let most = stars.clone().fold(numbers.most, f64::max);
        let least = stars.fold(numbers.least, f64::min);
        let &(top, lows) = SCALES.iter().find(|(top, _)| most <= *top)?;
        let low = lows.iter().find(|&&low| low <= least)?;
        let null = if self.n_nulls > 0 { " --unrated=null" } else { "" };
        // The scale 0-1 has a zero.
        let zero = match self.n_zeros {
            _ if top == 1.0 => String::new(),
            0 => String::new(),
            _ => {
                format!(", or --rating-scale=1-{top} --unrated={} if 0 means unrated", self.unrated_listed())
            }
        };
        Some(format!("map them to stars with --rating-scale={low}-{top}{null}{zero}"))
    }

    /// The list for `--unrated`.
    fn unrated_listed(&self) -> String {
        let null = (self.n_nulls > 0).then_some("null");
        let nan = (self.n_nans > 0).then_some("NaN");
        let zero = (self.n_zeros > 0).then_some("0");
        null.into_iter().chain(nan).chain(zero).collect::<Vec<_>>().join(",")
    }

    /// Whether all values can be listed in a flag.
    fn can_be_listed(&self) -> bool {
        let is_listed = |class: &String| !class.contains(|c: char| c == '=' || c.is_control());
        self.are_classes() && self.n_others == 0 && self.lines.keys().all(is_listed)
    }

    /// The first values with their numbers of lines, most frequent first.
    fn shown(&self) -> String {
        let mut values: Vec<_> = self.lines.iter().map(|(class, n)| (format!("{class:?}"), *n)).collect();
        let unnamed = [("null", self.n_nulls), ("NaN", self.n_nans)];
        values.extend(unnamed.into_iter().filter(|(_, n)| *n > 0).map(|(name, n)| (name.to_owned(), n)));
        values.sort_by(|(one, n_one), (other, n_other)| n_other.cmp(n_one).then(one.cmp(other)));
        let more = if values.len() > SHOWN { ", …" } else { "" };
        let values: Vec<_> = values.iter().take(SHOWN).map(|(value, n)| format!("{value} {n}")).collect();
        values.join(", ") + more
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
        self.lines.keys().map(|class| placeholder(class))
    }

    /// The values that are no numbers.
    fn words(&self) -> impl Iterator<Item = &str> {
        self.lines.keys().map(String::as_str).filter(|class| Spelled::of(class).is_none())
    }

    fn is_within(&self, least: i64, most: i64) -> bool {
        self.lines.keys().all(|class| class.parse().is_ok_and(|n: i64| (least..=most).contains(&n)))
    }
}

/// A class with its stars, if they are known.
fn placeholder(class: &str) -> String {
    let stars = match class {
        "true" | "True" | "TRUE" => "5",
        "false" | "False" | "FALSE" => "1",
        _ => PLACEHOLDER,
    };
    format!("{}={stars}", escaped(class))
}

/// The flag with these ratings, quoted for a shell.
fn flag(ratings: &str) -> String {
    format!("--class-ratings={}", shell::word(ratings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rating_rule::RatingRule;

    /// The values of a field whose classes are not listed.
    fn values(numbers: &[f64], texts: &[&str], n_nulls: usize) -> FoundValues {
        let mut rule = RatingRule::default();
        numbers.iter().for_each(|&number| _ = rule.of_number(number));
        texts.iter().for_each(|text| _ = rule.of_text(text));
        (0..n_nulls).for_each(|_| _ = rule.of_name(b'n'));
        rule.unrated
    }

    fn found(values: &FoundValues, n_unrated: u64) -> Option<String> {
        let (values, remedy) = values.found(n_unrated, &Fields::default())?;
        Some(remedy.map_or(values.clone(), |remedy| format!("{values}; {remedy}")))
    }

    #[test]
    fn the_values_of_a_field_are_named_with_the_flag_that_rates_them() {
        for (numbers, texts, n_nulls, expected) in [
            (&[][..], &["good"][..], 0, "\"good\" 1; set their stars with --class-ratings=good=STARS"),
            (
                &[],
                &["so, so", "it's"],
                0,
                r#""it's" 1, "so, so" 1; set their stars with --class-ratings='it'\''s=STARS,so\, so=STARS'"#,
            ),
            (
                &[],
                &["true", "false", "true"],
                0,
                "\"true\" 2, \"false\" 1; set their stars with --class-ratings=false=1,true=5",
            ),
            (&[5.0, 2.0], &[], 2, "null 2; count them apart with --unrated=null"),
            (&[5.0, 0.0, 0.0], &[], 0, "\"0\" 2; count them apart with --unrated=0"),
            (&[5.0, 0.0], &[], 1, "\"0\" 1, null 1; count them apart with --unrated=null,0"),
            (&[1.0, 7.0, 10.0, 7.0], &[], 0, "\"7\" 2, \"10\" 1; map them to stars with --rating-scale=1-10"),
            (
                &[7.0, 0.0],
                &[],
                1,
                "\"0\" 1, \"7\" 1, null 1; map them to stars with --rating-scale=0-10 --unrated=null, or \
                 --rating-scale=1-10 --unrated=null,0 if 0 means unrated",
            ),
            (&[80.0, 15.0], &[], 0, "\"15\" 1, \"80\" 1; map them to stars with --rating-scale=0-100"),
            (&[4.5, 0.5], &[], 0, "\"0.5\" 1, \"4.5\" 1; map them to stars with --rating-scale=0.5-5"),
            (&[], &["7/10", "8/10"], 0, "\"7/10\" 1, \"8/10\" 1; map them to stars with --rating-scale=1-10"),
            (&[], &["80 %"], 0, "\"80 %\" 1; map them to stars with --rating-scale=0-100"),
            (&[], &["5,0", "★★★★☆"], 0, "\"5,0\" 1, \"★★★★☆\" 1; map them to stars with --rating-scale=1-5"),
            (&[1234.0], &[], 0, "\"1234\" 1"),
            (&[f64::INFINITY], &[], 0, "NaN 1"),
            (&[f64::INFINITY, 4.0], &[], 0, "NaN 1; count them apart with --unrated=NaN"),
            (&[0.1, 0.9], &[], 0, "\"0.1\" 1, \"0.9\" 1; map them to stars with --rating-scale=0-1"),
            (
                &[0.0, 0.25, 0.5, 1.0],
                &[],
                0,
                "\"0\" 1, \"0.25\" 1, \"0.5\" 1; map them to stars with --rating-scale=0-1",
            ),
            (&[0.5, 5.0], &[], 0, "\"0.5\" 1; map them to stars with --rating-scale=0.5-5"),
            (&[], &[], 3, "null 3"),
            (
                &[],
                &["bug", "billing", "praise", "question", "feature", "spam"],
                0,
                "\"billing\" 1, \"bug\" 1, \"feature\" 1, \"praise\" 1, \"question\" 1, \"spam\" 1; learn more than five labels \
                 by their names with --label-field NAME of ngrams train",
            ),
        ] {
            let values = values(numbers, texts, n_nulls);
            assert_eq!(found(&values, 1).as_deref(), Some(expected), "{numbers:?} {texts:?}");
        }
        let one = values(&[], &["good"], 0);
        assert_eq!((found(&one, 2), one.described(&Format::default())), (None, None));
        for no_class in ["two\nlines", "A fine, long film about a house"] {
            assert_eq!(found(&values(&[], &[no_class], 0), 1), None, "{no_class}");
        }
        // Many labels that are repeated.
        let labels: Vec<_> =
            (0..60).map(|n| ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"][n % 10]).collect();
        let many = found(&values(&[], &labels, 0), 60).unwrap();
        assert!(many.starts_with("10 values; learn more than five labels"), "{many}");
        let two = found(&values(&[], &["a=b", "c=d"].repeat(3), 0), 6).unwrap();
        assert_eq!(two, "2 values; learn the labels by their names with --label-field NAME of ngrams train");
        assert_eq!(found(&values(&[], &labels[..10], 0), 10), None);
    }

    #[test]
    fn an_empty_value_is_null_beside_a_scale_and_classes() {
        let of_scale = Fields { scale: "1-10".parse().ok(), ..Fields::default() };
        let of_classes = Fields { classes: "good=5".parse().ok(), ..Fields::default() };
        for (fields, text) in [(of_scale, "7"), (of_classes, "good")] {
            let mut rule = RatingRule::of(&fields);
            _ = (rule.of_text(text), rule.of_text(" "));
            let remedy = "count them apart with --unrated=null".to_owned();
            assert_eq!(rule.unrated.found(1, &fields), Some(("null 1".to_owned(), Some(remedy))));
            _ = rule.of_text("x");
            let told = rule.unrated.described(&Format::Json(fields)).unwrap_or_default();
            assert!(
                told.is_empty() || told.ends_with(", and count null apart with --unrated=null"),
                "{told}"
            );
        }
    }

    #[test]
    fn classes_from_zero_are_recognized_unless_there_are_five_stars() {
        assert_eq!(values(&[0.0, 0.5, 1.0], &[], 0).from_zero(), None);
        let found = |numbers: &[f64]| {
            let texts: Vec<_> = numbers.iter().map(|number| format!(" {number:.1}")).collect();
            let texts: Vec<_> = texts.iter().map(String::as_str).collect();
            let (of_numbers, of_texts) = (values(numbers, &[], 0), values(&[], &texts, 0));
            assert_eq!(of_numbers.from_zero().is_some(), of_texts.from_zero().is_some());
            of_numbers.from_zero()
        };
        let expected = "the values 0, 1 are classes and not stars; set their stars with --class-ratings=0=1,1=5, or pass \
                        --unrated=0 if 0 means unrated";
        assert_eq!(found(&[1.0, 0.0, 1.0]).as_deref(), Some(expected));
        let of_five = found(&[3.0, 4.0, 0.0]).unwrap();
        assert!(
            of_five.contains("values 0, 3, 4 are") && of_five.contains("=0=1,1=2,2=3,3=4,4=5, or"),
            "{of_five}"
        );
        let signed = found(&[0.0, -1.0, 1.0]).unwrap();
        assert!(signed.contains("values -1, 0, 1 are") && signed.contains("=-1=1,0=3,1=5, or"), "{signed}");
        assert_eq!(
            [found(&[0.0, 5.0]), found(&[1.0, 2.0]), found(&[]), found(&[0.0, 20.0])],
            [const { None }; 4]
        );
    }

    fn of(classes: &[&str]) -> FoundValues {
        let mut counted = FoundValues::default();
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
