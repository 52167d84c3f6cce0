//! Converts ratings into labels: two labels split at a rating, or named classes of ratings.

use std::fmt;
use std::str::FromStr;

use program::exit::quoted;
use thiserror::Error;

use crate::shell;

/// The label of each rating.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Labels {
    /// Label 1 from this rating on, 1 to 5, label 0 below. A file may contain any other number until
    /// [`crate::settings::Settings::check`] refuses it.
    PositiveFrom(u8),
    /// Named classes. A rating may have no class.
    Classes(Classes),
}

impl Labels {
    /// The label of a rating from 1 to 5: 0, 1, and so on. `None` if the rating has no class.
    #[inline]
    pub fn label(&self, rating: u8) -> Option<u8> {
        match self {
            Self::PositiveFrom(positive_from) => Some(u8::from(rating >= *positive_from)),
            Self::Classes(classes) => classes.by_rating[usize::from(rating) - 1],
        }
    }

    /// The names of the classes, in the order of labels.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::PositiveFrom(_) => vec!["negative", "positive"],
            Self::Classes(classes) => classes.classes.iter().map(|class| &class.name[..]).collect(),
        }
    }

    /// The names of the classes if the user named them; none for a split at a rating.
    pub fn given_names(&self) -> Vec<String> {
        let each = self.classes().into_iter().flat_map(Classes::each);
        each.map(|(_, name)| name.to_owned()).collect()
    }

    /// Number of classes, 2 to 5.
    pub fn n_classes(&self) -> usize {
        match self {
            Self::PositiveFrom(_) => 2,
            Self::Classes(classes) => classes.classes.len(),
        }
    }

    /// The smallest rating with label 1; `None` for named classes.
    pub fn positive_from(&self) -> Option<u8> {
        match self {
            Self::PositiveFrom(positive_from) => Some(*positive_from),
            Self::Classes(_) => None,
        }
    }

    /// The named classes; `None` for a split at a rating.
    pub fn classes(&self) -> Option<&Classes> {
        match self {
            Self::PositiveFrom(_) => None,
            Self::Classes(classes) => Some(classes),
        }
    }

    /// The flag of `reducer` and `sentimill` that sets these labels, with its value quoted for a shell.
    pub fn flag(&self) -> String {
        match self {
            Self::PositiveFrom(positive_from) => format!("--positive-from {positive_from}"),
            Self::Classes(classes) => format!("--labels {}", shell::word(&classes.to_string())),
        }
    }
}

/// Two to five named classes. Each has a range of ratings, and no rating has two classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    classes: Vec<Class>,
    /// The label of each rating, from rating 1 on.
    by_rating: [Option<u8>; 5],
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Class {
    first: u8,
    last: u8,
    name: String,
}

/// Maximum length of the name of a class.
const NAME_BYTES_MAX: usize = 64;

impl Classes {
    /// Ratings and names of the classes in the order of labels, such as `("1-2", "negative")`.
    pub fn each(&self) -> impl Iterator<Item = (String, &str)> {
        self.classes.iter().map(|class| (class.range(), &class.name[..]))
    }

    /// Parses the text of a file or a record, which has the canonical form.
    pub fn canonical(text: &str) -> Result<Self, NoClasses> {
        let classes: Self = text.parse()?;
        if classes.to_string() == text { Ok(classes) } else { Err(NoClasses::Form(classes.to_string())) }
    }

    fn push(&mut self, class: Class) -> Result<(), NoClasses> {
        let label = self.classes.len() as u8;
        if self.classes.iter().any(|other| other.name == class.name) {
            return Err(NoClasses::Name(quoted(class.name.as_bytes())));
        }
        for rating in class.first..=class.last {
            let of_rating = &mut self.by_rating[usize::from(rating) - 1];
            if of_rating.replace(label).is_some() {
                return Err(NoClasses::Rating(rating));
            }
        }
        self.classes.push(class);
        Ok(())
    }
}

/// `1-2=negative,3=neutral,4-5=positive`: pairs of ratings and names. The labels are 0, 1, 2 in this order.
impl FromStr for Classes {
    type Err = NoClasses;

    fn from_str(list: &str) -> Result<Self, NoClasses> {
        let mut classes = Self { classes: Vec::new(), by_rating: [None; 5] };
        for pair in list.split(',') {
            classes.push(Class::parse(pair).ok_or_else(|| NoClasses::Pair(quoted(pair.as_bytes())))?)?;
        }
        // Five ratings cannot have more than five classes.
        if classes.classes.len() == 1 { Err(NoClasses::Single) } else { Ok(classes) }
    }
}

/// The canonical form, in which a range of one rating is that rating.
impl fmt::Display for Classes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<_> = self.each().map(|(range, name)| format!("{range}={name}")).collect();
        out.write_str(&pairs.join(","))
    }
}

impl Class {
    fn parse(pair: &str) -> Option<Self> {
        let (range, name) = pair.split_once('=')?;
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let rating = |digit: &str| match digit.as_bytes() {
            [digit @ b'1'..=b'5'] => Some(digit - b'0'),
            _ => None,
        };
        let (first, last) = (rating(first)?, rating(last)?);
        let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
            && !name.contains('=')
            && !name.contains(char::is_control);
        (first <= last && is_name).then(|| Self { first, last, name: name.to_owned() })
    }

    fn range(&self) -> String {
        let Self { first, last, .. } = self;
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    }
}

/// Why a text is not a list of classes.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoClasses {
    /// A pair is not a range of ratings and a name.
    #[error(
        "{0} is not RATINGS=NAME, expected ratings from 1 to 5 and names of 1 to 64 bytes without commas, `=` and \
         control characters, as in 1-2=negative,3=neutral,4-5=positive"
    )]
    Pair(String),
    /// A rating is in two classes.
    #[error("the rating {0} is in two classes, expected at most one")]
    Rating(u8),
    /// Two classes have one name.
    #[error("two classes have the name {0}, expected distinct names")]
    Name(String),
    /// There is a single class.
    #[error("one class, expected 2 to 5 classes, as in 1-2=negative,3=neutral,4-5=positive")]
    Single,
    /// A text in a file is a valid list, but not as this project writes it.
    #[error("the classes have another form, expected {0}")]
    Form(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(list: &str) -> Labels {
        Labels::Classes(list.parse().unwrap())
    }

    fn of_all(labels: &Labels) -> [Option<u8>; 5] {
        [1, 2, 3, 4, 5].map(|rating| labels.label(rating))
    }

    #[test]
    fn labels_count_classes_in_the_order_of_the_list() {
        let three = classes("1-2=negative,3=neutral,4-5=positive");
        assert_eq!(of_all(&three), [Some(0), Some(0), Some(1), Some(2), Some(2)]);
        assert_eq!((three.names(), three.n_classes()), (vec!["negative", "neutral", "positive"], 3));
        assert_eq!(of_all(&classes("5=good,1=bad")), [Some(1), None, None, None, Some(0)]);
        let split = Labels::PositiveFrom(4);
        assert_eq!(of_all(&split), [0, 0, 0, 1, 1].map(Some));
        assert_eq!((split.names(), split.n_classes()), (vec!["negative", "positive"], 2));
        assert_eq!([split.positive_from(), three.positive_from()], [Some(4), None]);
    }

    #[test]
    fn classes_are_written_in_one_form() {
        let written = |list: &str| list.parse::<Classes>().unwrap().to_string();
        assert_eq!(written("1-2=negative,3-3=so so,4-5=é"), "1-2=negative,3=so so,4-5=é");
        let same = "1=a,2=b,3=c,4=d,5=e";
        assert_eq!(Classes::canonical(same).map(|classes| classes.to_string()), Ok(same.to_owned()));
        let other = Classes::canonical("1-1=a,2=b").unwrap_err();
        assert_eq!(other.to_string(), "the classes have another form, expected 1=a,2=b");
    }

    #[test]
    fn the_flag_is_quoted_for_a_shell_if_necessary() {
        assert_eq!(Labels::PositiveFrom(3).flag(), "--positive-from 3");
        assert_eq!(classes("1-3=bad,5=très-bon").flag(), "--labels '1-3=bad,5=très-bon'");
        assert_eq!(classes("1=it's,2=$x").flag(), r"--labels '1=it'\''s,2=$x'");
    }

    #[test]
    fn invalid_classes_are_refused_with_the_wrong_part() {
        let long = format!("1={},2=b", "x".repeat(65));
        for (list, expected) in [
            ("", "\"\" is not RATINGS=NAME, "),
            ("1=a,", "\"\" is not RATINGS=NAME, "),
            ("1=a,2", "\"2\" is not RATINGS=NAME, "),
            ("0=a,2=b", "\"0=a\" is not RATINGS=NAME, "),
            ("1-6=a,2=b", "\"1-6=a\" is not RATINGS=NAME, "),
            ("2-1=a,3=b", "\"2-1=a\" is not RATINGS=NAME, "),
            ("+1=a,3=b", "\"+1=a\" is not RATINGS=NAME, "),
            ("1 =a,3=b", "\"1 =a\" is not RATINGS=NAME, "),
            ("1-2-3=a,4=b", "\"1-2-3=a\" is not RATINGS=NAME, "),
            ("1=,2=b", "\"1=\" is not RATINGS=NAME, "),
            ("1=a=b,2=b", "\"1=a=b\" is not RATINGS=NAME, "),
            ("1=a\u{1b},2=b", "\"1=a\\u{1b}\" is not RATINGS=NAME, "),
            (&long, "\"1=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" and more is not RATINGS=NAME, "),
            ("1-3=a,3=b", "the rating 3 is in two classes, "),
            ("1=a,2=a", "two classes have the name \"a\", "),
            ("1-5=a", "one class, expected 2 to 5 classes, "),
        ] {
            let refused = list.parse::<Classes>().unwrap_err().to_string();
            assert!(refused.starts_with(expected), "{list}: {refused}");
        }
    }

    #[test]
    fn the_longest_list_is_accepted() {
        let name = |n: u8| char::from(b'a' + n).to_string().repeat(NAME_BYTES_MAX);
        let list = (1..=5).map(|n| format!("{n}={}", name(n))).collect::<Vec<_>>().join(",");
        assert_eq!(classes(&list).n_classes(), 5);
    }
}
