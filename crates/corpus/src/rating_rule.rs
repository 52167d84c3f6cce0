//! Converts the values of a rating field or column to ratings, by one rule for all formats with fields.
//!
//! In this order: a value that is listed as unrated has no rating; a listed class has its stars; a number is a number of
//! stars, or one of the scale. If a listed class is a number, other numbers have no rating, unless there is a scale.
//! Values may also be labels in place of ratings.

use crate::class_ratings::ClassRatings;
use crate::classes::FoundValues;
use crate::entry::{BOOLEANS, Rating, RatingValue, Reject};
use crate::fields::Fields;
use crate::scale::Scale;
use crate::unrated::UnratedValues;

/// The rating of a value, or why it has none: [`Reject::BadRating`] or [`Reject::Unrated`].
pub(crate) type Rated = Result<Rating, Reject>;

/// The maximum of the integers that a double represents exactly and uniquely, 2⁵³ − 1.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0 - 1.0;

/// The settings of ratings, and the values without a rating.
#[derive(Clone, Debug)]
pub(crate) struct RatingRule {
    classes: Option<ClassRatings>,
    scale: Option<Scale>,
    unrated_values: UnratedValues,
    /// The label of the last value, without white space around it, if values are labels.
    label: Option<Vec<u8>>,
    /// Whether numbers are no classes.
    has_numbers: bool,
    /// Whether ratings are only 1 to 5 stars.
    is_plain: bool,
    /// The values without a rating.
    pub unrated: FoundValues,
}

impl RatingRule {
    pub fn of(fields: &Fields) -> Self {
        let Fields { classes, scale, unrated, has_labels, .. } = fields.clone();
        Self {
            has_numbers: scale.is_some() || !classes.as_ref().is_some_and(ClassRatings::have_numbers),
            is_plain: classes.is_none() && scale.is_none() && unrated.is_empty() && !has_labels,
            classes,
            scale,
            unrated_values: unrated,
            label: has_labels.then(Vec::new),
            unrated: FoundValues::default(),
        }
    }

    /// The label that was the last value, if values are labels. It is not empty if the value had a rating.
    pub fn label(&self) -> Option<&[u8]> {
        self.label.as_deref()
    }

    /// The rating of a text.
    #[inline]
    pub fn of_text(&mut self, text: &str) -> Rated {
        match Rating::from_text(text) {
            Some(rating) if self.is_plain => {
                self.unrated.see(rating);
                Ok(rating)
            }
            _ => self.of_value(RatingValue::Text(text.as_bytes())),
        }
    }

    /// The rating of a number.
    #[inline]
    pub fn of_number(&mut self, number: f64) -> Rated {
        match Rating::from_number(number) {
            Some(rating) if self.is_plain => {
                self.unrated.see(rating);
                Ok(rating)
            }
            _ => self.of_value(RatingValue::Number(number)),
        }
    }

    /// The rating of a JSON value that starts with this character and is neither a text nor a number.
    #[cold]
    pub fn of_name(&mut self, first: u8) -> Rated {
        match first {
            b't' => self.of_value(RatingValue::of_bool(true)),
            b'f' => self.of_value(RatingValue::of_bool(false)),
            b'n' => self.of_absent(),
            // A list or an object.
            _ => Err(Reject::BadRating),
        }
    }

    /// The rating of null and of a review without the field.
    #[cold]
    pub fn of_absent(&mut self) -> Rated {
        self.of_value(RatingValue::Missing)
    }

    /// The rating of any value.
    #[inline(never)]
    pub fn of_value(&mut self, value: RatingValue<'_>) -> Rated {
        if self.unrated_values.contains(value) {
            return Err(Reject::Unrated);
        }
        if let Some(label) = &mut self.label {
            // Any rating will do.
            if set_label(label, value) {
                return Ok(Rating::of(1));
            }
            self.unrated.add_value(value, true);
            return Err(Reject::BadRating);
        }
        let rating = self.of_class(value).or_else(|| match self.scale {
            _ if !self.has_numbers => None,
            Some(scale) => on_scale(scale, value),
            None => value.rating(),
        });
        match rating {
            Some(rating) => {
                if self.classes.is_none() && self.scale.is_none() {
                    self.unrated.see(rating);
                }
                Ok(rating)
            }
            None => {
                self.unrated.add_value(value, self.classes.is_none() && self.scale.is_none());
                Err(Reject::BadRating)
            }
        }
    }

    /// The rating of a listed class. A whole number is the class that is written without a fraction. A boolean has the
    /// spellings of JSON and of Python.
    fn of_class(&self, value: RatingValue<'_>) -> Option<Rating> {
        let classes = self.classes.as_ref()?;
        match value {
            RatingValue::Missing => None,
            RatingValue::Number(number) => classes.rating(&number.to_string()),
            RatingValue::Text(text) => {
                let text = str::from_utf8(text).unwrap_or_default();
                let of_boolean = || {
                    let spellings = BOOLEANS.iter().find(|spellings| spellings.contains(&text))?;
                    spellings.iter().find_map(|spelling| classes.rating(spelling))
                };
                classes.rating(text).or_else(of_boolean)
            }
        }
    }
}

/// Keeps a value as the label. Returns whether it is one: a text that is not empty, or a number that is exact.
fn set_label(label: &mut Vec<u8>, value: RatingValue<'_>) -> bool {
    label.clear();
    match value {
        RatingValue::Missing => {}
        // Others are no whole numbers any more.
        RatingValue::Number(number) if !number.is_finite() || number.abs() > EXACT_MAX => {}
        RatingValue::Number(number) => label.extend_from_slice(number.to_string().as_bytes()),
        RatingValue::Text(text) => label.extend_from_slice(text.trim_ascii()),
    }
    !label.is_empty()
}

impl Default for RatingRule {
    fn default() -> Self {
        Self::of(&Fields::default())
    }
}

fn on_scale(scale: Scale, value: RatingValue<'_>) -> Option<Rating> {
    match value {
        RatingValue::Missing => None,
        RatingValue::Number(number) => scale.of_number(number),
        RatingValue::Text(text) => scale.of_text(str::from_utf8(text).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule_of(classes: &str, scale: &str, unrated: &str) -> RatingRule {
        let (classes, scale) = (classes.parse().ok(), scale.parse().ok());
        let unrated = unrated.parse().unwrap_or_default();
        RatingRule::of(&Fields { classes, scale, unrated, ..Fields::default() })
    }

    fn stars(rated: Rated) -> Option<u8> {
        rated.ok().map(Rating::stars)
    }

    #[test]
    fn a_listed_class_has_its_rating_and_other_values_are_stars() {
        let mut of_words = rule_of("good=5,bad=1", "", "");
        for (text, expected) in
            [("good", Some(5)), ("bad", Some(1)), ("1.0", Some(1)), (" 4 ", Some(4)), ("Good", None)]
        {
            assert_eq!(stars(of_words.of_text(text)), expected, "{text:?}");
        }
        assert_eq!([3.0, 0.5].map(|number| stars(of_words.of_number(number))), [Some(3), None]);
        // Numbers are classes if one of them is listed.
        let mut of_numbers = rule_of("good=5,0=1,1=5,-1=2", "", "");
        for (number, expected) in [(0.0, Some(1)), (1.0, Some(5)), (-1.0, Some(2)), (3.0, None)] {
            assert_eq!(stars(of_numbers.of_number(number)), expected, "{number}");
        }
        assert_eq!(["good", "1", "4"].map(|text| stars(of_numbers.of_text(text))), [Some(5), Some(5), None]);
        let mut none = RatingRule::default();
        assert_eq!([stars(none.of_text("good")), stars(none.of_number(1.0))], [None, Some(1)]);
    }

    #[test]
    fn booleans_are_classes_in_each_spelling() {
        let mut json = rule_of("true=5,false=1", "", "");
        let found = ["true", "True", "TRUE", "False", "tRUE"].map(|text| stars(json.of_text(text)));
        assert_eq!(found, [Some(5), Some(5), Some(5), Some(1), None]);
        assert_eq!(
            [b't', b'f', b'n', b'['].map(|first| stars(json.of_name(first))),
            [Some(5), Some(1), None, None]
        );
        assert_eq!(stars(rule_of("True=5", "", "").of_name(b't')), Some(5));
        // What is listed exactly comes first.
        assert_eq!(stars(rule_of("True=4,true=5", "", "").of_text("true")), Some(5));
        assert_eq!(stars(RatingRule::default().of_name(b't')), None);
    }

    #[test]
    fn unrated_values_are_told_apart_from_bad_ones() {
        let mut none = RatingRule::default();
        assert_eq!([none.of_absent(), none.of_name(b'n'), none.of_number(0.0)], [Err(Reject::BadRating); 3]);
        let mut rule = rule_of("", "", "null,0");
        assert_eq!(
            [rule.of_absent(), rule.of_name(b'n'), rule.of_number(0.0), rule.of_text("")],
            [Err(Reject::Unrated); 4]
        );
        assert_eq!(rule.of_name(b'['), Err(Reject::BadRating));
        for listed in ["False", "false"] {
            let mut of_booleans = rule_of("", "", listed);
            assert_eq!([of_booleans.of_name(b'f'), of_booleans.of_text("False")], [Err(Reject::Unrated); 2]);
            assert_eq!(of_booleans.of_name(b't'), Err(Reject::BadRating));
        }
        assert_eq!([rule.of_number(6.0), rule.of_text("x")], [Err(Reject::BadRating); 2]);
        assert_eq!([stars(rule.of_number(4.0)), stars(rule.of_text("3"))], [Some(4), Some(3)]);
    }

    #[test]
    fn a_scale_maps_numbers_and_classes_come_first() {
        let mut of_ten = rule_of("none=1,0=1", "1-10", "");
        let found = [10.0, 1.0, 0.0, 11.0].map(|number| stars(of_ten.of_number(number)));
        assert_eq!(found, [Some(5), Some(1), Some(1), None]);
        assert_eq!(["7/10", "none", "x"].map(|text| stars(of_ten.of_text(text))), [Some(4), Some(1), None]);
    }
}
