//! A review, and its line in the layouts of the dumps.

use std::fmt::Write;

use crate::encode::{NonAscii, write_json, write_python};
use crate::random::Random;
use crate::sentences::{Product, write_name};

const DAY_S: u64 = 86_400;

/// A review before it is written as a line.
pub(super) struct Review {
    pub(super) product: Product,
    pub(super) rating: usize,
    /// As the shop stored it, with references and tags.
    pub(super) text: String,
    pub(super) summary: String,
    pub(super) reviewer: u64,
    /// Days since 1970.
    pub(super) day: u64,
    pub(super) votes: usize,
    pub(super) non_ascii: NonAscii,
}

/// Writes a review in the format of the dumps of 2018.
pub(super) fn write_review(line: &mut Vec<u8>, review: &Review) {
    let mut text = String::with_capacity(review.text.len() + 64);
    write_json(&mut text, &review.text, review.non_ascii);
    write_object(line, review, Some(&format!("{}.0", review.rating)), Some(&text));
}

/// Writes a review as one JSON object. `rating` and `text`, if passed, are already JSON.
pub(super) fn write_object(line: &mut Vec<u8>, review: &Review, rating: Option<&str>, text: Option<&str>) {
    let mut object = String::with_capacity(512 + text.map_or(0, str::len));
    object.push('{');
    if let Some(rating) = rating {
        let _ = write!(object, "\"overall\": {rating}, ");
    }
    if review.votes > 0 {
        let _ = write!(object, "\"vote\": \"{}\", ", review.votes);
    }
    let verified = !review.reviewer.is_multiple_of(5);
    let _ = write!(object, "\"verified\": {verified}, \"reviewTime\": \"{}\", ", date(review.day));
    let _ = write!(object, "\"reviewerID\": \"{}\", \"asin\": \"{}\", ", reviewer_id(review), asin(review));
    if review.product.rank.is_multiple_of(3) {
        object.push_str("\"style\": {\"Size:\": \" Large\", \"reviewText\": \"not this one\"}, ");
    }
    let _ = write!(object, "\"reviewerName\": \"{}\", ", reviewer_name(review));
    if let Some(text) = text {
        let _ = write!(object, "\"reviewText\": {text}, ");
    }
    object.push_str("\"summary\": ");
    write_json(&mut object, &review.summary, NonAscii::Escaped);
    let _ = write!(object, ", \"unixReviewTime\": {}}}", review.day * DAY_S);
    line.extend_from_slice(object.as_bytes());
}

/// Writes a review in the format of the older dumps: Python's `repr` of a dict.
pub(super) fn write_dict(line: &mut Vec<u8>, review: &Review, text: &str, non_ascii: NonAscii) {
    let (mut literal, mut summary) = (String::new(), String::new());
    write_python(&mut literal, text, non_ascii);
    write_python(&mut summary, &review.summary, non_ascii);
    let dict = format!(
        "{{'reviewerID': '{}', 'asin': u'{}', 'reviewerName': '{}', 'helpful': [{votes}, {votes}], 'reviewText': {literal}, \
         'overall': {}.0, 'summary': {summary}, 'verified': True, 'style': None, 'unixReviewTime': {}, 'reviewTime': '{}'}}",
        reviewer_id(review),
        asin(review),
        reviewer_name(review),
        review.rating,
        review.day * DAY_S,
        date(review.day),
        votes = review.votes,
    );
    line.extend_from_slice(dict.as_bytes());
}

fn reviewer_id(review: &Review) -> String {
    format!("A{:012X}", Random::new(review.reviewer).next() >> 16)
}

fn asin(review: &Review) -> String {
    format!("B{:09X}", Random::new(review.product.rank).next() >> 28)
}

fn reviewer_name(review: &Review) -> String {
    let mut name = String::new();
    write_name(&mut name, review.reviewer);
    name.push_str([" J.", "", " & family", " M. D."][(review.reviewer % 4) as usize]);
    name
}

/// Formats a day since 1970 as the dumps do, `09 4, 2015` (month, day, year).
fn date(day: u64) -> String {
    // Years start in March, so that a leap day is the last day: Howard Hinnant's civil_from_days, within one
    // era.
    let day = day + 719_468 - 5 * 146_097;
    let year = (day - day / 1_460 + day / 36_524) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, year + 2_000) } else { (month - 9, year + 2_001) };
    format!("{month:02} {day_of_month}, {year}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_formatted_as_dates() {
        for (day, expected) in [
            (12_418, "01 1, 2004"),
            (12_477, "02 29, 2004"),
            (12_478, "03 1, 2004"),
            (15_399, "02 29, 2012"),
            (16_682, "09 4, 2015"),
            (17_530, "12 30, 2017"),
        ] {
            assert_eq!(date(day), expected);
        }
    }
}
