//! Ratings of classes, as a list that a flag takes, and such lists.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::entry::Rating;

/// Maps classes to ratings. Other classes have no rating.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRatings(Vec<(String, Rating)>);

impl ClassRatings {
    /// The rating of a class, if it has one.
    pub fn rating(&self, class: &str) -> Option<Rating> {
        self.0.iter().find(|(named, _)| named == class).map(|&(_, rating)| rating)
    }

    /// Whether a class is a number.
    pub fn have_numbers(&self) -> bool {
        self.0.iter().any(|(class, _)| class.parse::<f64>().is_ok())
    }
}

impl Default for ClassRatings {
    /// The classes of the Yelp and Amazon polarity files: 1 is negative, 2 is positive.
    fn default() -> Self {
        Self([(1, 1), (2, 5)].map(|(class, stars)| (class.to_string(), Rating::of(stars))).to_vec())
    }
}

/// `1=1,2=5`: class, `=`, stars. A class may contain `=`; `\,` is a comma in a class.
impl FromStr for ClassRatings {
    type Err = NoClassRatings;

    fn from_str(list: &str) -> Result<Self, NoClassRatings> {
        let mut ratings = Self(Vec::new());
        for pair in split_list(list) {
            let is_more = |stars: &str| stars.parse().is_ok_and(|stars: u32| stars > 5);
            let (class, stars) = pair.rsplit_once('=').ok_or_else(|| NoClassRatings::Pair(pair.clone()))?;
            let rating = match stars.parse().ok().and_then(Rating::new) {
                Some(rating) => rating,
                None if is_more(stars) => return Err(NoClassRatings::More(pair.clone())),
                None => return Err(NoClassRatings::Pair(pair.clone())),
            };
            if ratings.rating(class).is_some() {
                return Err(NoClassRatings::Twice(class.to_owned()));
            }
            ratings.0.push((class.to_owned(), rating));
        }
        Ok(ratings)
    }
}

impl fmt::Display for ClassRatings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<_> =
            self.0.iter().map(|(class, rating)| format!("{}={}", escaped(class), rating.stars())).collect();
        out.write_str(&pairs.join(","))
    }
}

/// The parts of a list that is separated by commas; `\,` is a comma in a part.
pub(crate) fn split_list(list: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut rest = list;
    while let Some(at) = rest.find(',') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        let part = parts.last_mut().expect("there is one part from the start");
        match before.strip_suffix('\\') {
            Some(before) => part.extend([before, ","]),
            None => {
                part.push_str(before);
                parts.push(String::new());
            }
        }
        rest = after;
    }
    parts.last_mut().expect("there is one part from the start").push_str(rest);
    parts
}

/// A part of such a list, as it is written there.
pub(crate) fn escaped(part: &str) -> String {
    part.replace(',', r"\,")
}

/// Why a text is not a list of classes and ratings.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoClassRatings {
    /// A pair is not a class and a number of stars.
    #[error("{0:?} is not CLASS=STARS, expected classes with 1 to 5 stars, as in 1=1,2=5")]
    Pair(String),
    /// A number of stars above 5.
    #[error(
        "{0:?} has more than 5 stars, expected classes with 1 to 5 stars, as in 1=1,2=5; to learn more than five labels, \
         pass --label-field NAME to ngrams train"
    )]
    More(String),
    /// A class has two ratings.
    #[error("the class {0:?} has two ratings, expected one")]
    Twice(String),
}
