//! The fields that hold the text and the rating of a JSON object, as paths from the top level down.
//!
//! A path is written with dots between its names: `data.text` is the field `text` of the object in the field
//! `data`. A backslash makes the next dot, comma or backslash part of a name. Commas separate the paths of a
//! list. `[]` behind a name leads into the elements of a list: `reviews[].text`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::class_ratings::ClassRatings;
use crate::scale::Scale;
use crate::unrated::UnratedValues;

mod tree;

pub(crate) use tree::{FieldTree, NodeId};

/// The fields that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    /// The fields of the text. Their strings are joined by one space; a field without a string is skipped.
    pub text: Vec<FieldPath>,
    /// The field that holds the number of stars.
    pub rating: FieldPath,
    /// The ratings of classes. Other values of the rating field are numbers of stars.
    pub classes: Option<ClassRatings>,
    /// The scale of numbers, in place of 1 to 5 stars.
    pub scale: Option<Scale>,
    /// The values of reviews without a rating, which are counted apart.
    pub unrated: UnratedValues,
    /// Whether the values of the rating field are labels and no ratings.
    pub has_labels: bool,
}

impl Default for Fields {
    /// The fields of the Amazon review files of 2014 and 2018.
    fn default() -> Self {
        Self::named("reviewText", "overall")
    }
}

impl Fields {
    /// One text field and the rating field, both at the top level.
    pub fn named(text: &str, rating: &str) -> Self {
        Self {
            text: vec![FieldPath::of(text)],
            rating: FieldPath::of(rating),
            classes: None,
            scale: None,
            unrated: UnratedValues::default(),
            has_labels: false,
        }
    }

    /// The flag that names the field of the rating or label.
    pub fn rating_flag(&self) -> &'static str {
        if self.has_labels { "--label-field" } else { "--rating-field" }
    }

    /// The list whose elements are reviews, if the fields lead into one; an error if they lead into two.
    pub fn list(&self) -> Result<Option<FieldPath>, TwoLists> {
        let mut lists = self.text.iter().chain([&self.rating]).filter_map(FieldPath::list);
        let Some(first) = lists.next() else { return Ok(None) };
        match lists.find(|other| *other != first) {
            None => Ok(Some(first)),
            Some(other) => Err(TwoLists(first.quoted(), other.quoted())),
        }
    }
}

/// The fields lead into two lists.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "the fields lead into two lists, {0} and {1}, expected one; write one object per review, as jq does: jq -c '.LIST[]'"
)]
pub struct TwoLists(String, String);

/// The names on the way from the top level to a field, at least one, without escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    names: Vec<String>,
    /// Number of names up to the list, if the path leads into one.
    list: Option<usize>,
}

impl FieldPath {
    /// A field at the top level. Dots are part of its name.
    pub fn of(name: &str) -> Self {
        Self { names: vec![name.to_owned()], list: None }
    }

    /// The names, from the top level down.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The path of the list, if the path leads into one.
    pub fn list(&self) -> Option<Self> {
        self.list.map(|names| Self { names: self.names[..names].to_vec(), list: self.list })
    }

    /// The path as a name with dots, which a column of a table may have.
    pub fn literal(&self) -> String {
        let mut names = self.names.clone();
        self.list.into_iter().for_each(|list| names[list - 1].push_str(LIST));
        names.join(".")
    }

    /// The path in quotes, for messages.
    pub fn quoted(&self) -> String {
        // Control characters are escaped. Backslashes appear as a user types them.
        format!("{:?}", self.to_string()).replace(r"\\", r"\")
    }
}

/// The inverse of [`FromStr`].
impl fmt::Display for FieldPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, name) in self.names.iter().enumerate() {
            if number > 0 {
                out.write_str(".")?;
            }
            let (name, brackets) = match name.strip_suffix(LIST) {
                Some(name) => (name, r"\[]"),
                None => (&name[..], ""),
            };
            for character in name.chars() {
                let escape = if SEPARATORS.contains(&character) { "\\" } else { "" };
                write!(out, "{escape}{character}")?;
            }
            let list = if self.list == Some(number + 1) { LIST } else { "" };
            write!(out, "{brackets}{list}")?;
        }
        Ok(())
    }
}

/// `data.text`: one path.
impl FromStr for FieldPath {
    type Err = NoFieldPath;

    fn from_str(path: &str) -> Result<Self, NoFieldPath> {
        match &paths(path)?[..] {
            [one] => Ok(one.clone()),
            _ => Err(NoFieldPath::Several(path.to_owned())),
        }
    }
}

/// A list of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPaths(pub Vec<FieldPath>);

/// `summary,data.text`: paths separated by commas.
impl FromStr for FieldPaths {
    type Err = NoFieldPath;

    fn from_str(list: &str) -> Result<Self, NoFieldPath> {
        let paths = paths(list)?;
        let is_repeated = |at: usize| paths[..at].contains(&paths[at]);
        match (0..paths.len()).find(|&at| is_repeated(at)) {
            None => Ok(Self(paths)),
            Some(at) => Err(NoFieldPath::Twice(paths[at].quoted())),
        }
    }
}

/// Why a text is not a path or a list of paths.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoFieldPath {
    /// A name is empty.
    #[error("found an empty name, expected names between dots and commas, as in data.text")]
    EmptyName(String),
    /// A backslash before another character.
    #[error(r"found a backslash before another character, expected one of \. \, \[ and \\")]
    Escape(String),
    /// Several paths instead of one.
    #[error(r"found several fields, expected one; write \, for a comma in a name")]
    Several(String),
    /// A path leads into a list within a list.
    #[error("{0:?} leads into a list within a list, expected one []; write one object per review")]
    Lists(String),
    /// A list names a field twice.
    #[error("the field {0} is named twice, expected once")]
    Twice(String),
}

/// The characters that separate names, and the one that escapes them.
const SEPARATORS: [char; 3] = ['.', ',', '\\'];
/// Behind the name of a list whose elements are meant.
const LIST: &str = "[]";

fn paths(text: &str) -> Result<Vec<FieldPath>, NoFieldPath> {
    let (mut paths, mut path) = (Vec::new(), FieldPath { names: Vec::new(), list: None });
    // The length of the name up to its last escape.
    let (mut name, mut escaped) = (String::new(), 0);
    let mut characters = text.chars();
    loop {
        let next = characters.next();
        match next {
            Some('\\') => match characters.next().filter(|next| SEPARATORS.contains(next) || *next == '[') {
                Some(next) => {
                    name.push(next);
                    escaped = name.len();
                }
                None => return Err(NoFieldPath::Escape(text.to_owned())),
            },
            Some('.' | ',') | None => {
                let is_list = name.ends_with(LIST) && name.len() - LIST.len() >= escaped;
                if is_list {
                    name.truncate(name.len() - LIST.len());
                }
                if name.is_empty() {
                    return Err(NoFieldPath::EmptyName(text.to_owned()));
                }
                path.names.push(std::mem::take(&mut name));
                escaped = 0;
                if is_list && path.list.replace(path.names.len()).is_some() {
                    return Err(NoFieldPath::Lists(text.to_owned()));
                }
                if next != Some('.') {
                    paths.push(std::mem::replace(&mut path, FieldPath { names: Vec::new(), list: None }));
                }
                if next.is_none() {
                    return Ok(paths);
                }
            }
            Some(character) => name.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_fields_and_dots_separate_names() {
        let paths = |list: &str| -> Vec<Vec<String>> {
            list.parse::<FieldPaths>().unwrap().0.into_iter().map(|path| path.names).collect()
        };
        assert_eq!(paths("reviewText"), [["reviewText"]]);
        assert_eq!(paths("summary,reviewText"), [["summary"], ["reviewText"]]);
        assert_eq!(paths("data.text"), [["data", "text"]]);
        assert_eq!(paths(r"a\.b\,c\\.d,\.,é "), [vec!["a.b,c\\", "d"], vec!["."], vec!["é "]]);
    }

    #[test]
    fn a_path_survives_the_round_trip_through_its_text() {
        for path in [
            "a",
            "a.b.c",
            r"a\.b",
            r"\,\\\..\\",
            "summary text",
            "a[].b",
            "a.b[]",
            r"a\[].b",
            "[x]a",
            r"\[][]",
        ] {
            assert_eq!(path.parse::<FieldPath>().unwrap().to_string(), path);
        }
        assert_eq!(FieldPath::of("a.b,c\\").to_string(), r"a\.b\,c\\");
        assert_eq!(FieldPath::of("a.b\n\"").quoted(), r#""a\.b\n\"""#);
    }

    #[test]
    fn brackets_behind_a_name_lead_into_the_elements_of_a_list() {
        let path: FieldPath = "data.reviews[].text".parse().unwrap();
        assert_eq!((path.names().len(), path.literal().as_str()), (3, "data.reviews[].text"));
        assert_eq!(path.list().unwrap().to_string(), "data.reviews[]");
        for no_list in [r"data.reviews\[].text", "data.[x].text", "a[]b"] {
            assert_eq!(no_list.parse::<FieldPath>().unwrap().list(), None, "{no_list}");
        }
        let fields = |text: &str, rating: &str| Fields {
            text: text.parse::<FieldPaths>().unwrap().0,
            rating: rating.parse().unwrap(),
            ..Fields::default()
        };
        let list = fields("title,data.reviews[].text", "data.reviews[].stars").list();
        assert_eq!(list.unwrap().unwrap().to_string(), "data.reviews[]");
        assert_eq!(fields("a", "b").list(), Ok(None));
        assert_eq!(
            fields("text[]", "stars[]").list().unwrap_err().to_string(),
            "the fields lead into two lists, \"text[]\" and \"stars[]\", expected one; write one object per review, as \
             jq does: jq -c '.LIST[]'"
        );
        let refusal = "a[].b[].c".parse::<FieldPath>().unwrap_err().to_string();
        let expected =
            "\"a[].b[].c\" leads into a list within a list, expected one []; write one object per review";
        assert_eq!(refusal, expected);
        assert!(matches!("[].a".parse::<FieldPath>(), Err(NoFieldPath::EmptyName(_))));
    }

    #[test]
    fn a_malformed_path_is_refused_with_what_is_wrong() {
        let refusal = |list: &str| list.parse::<FieldPaths>().unwrap_err().to_string();
        for list in ["", ",", "a,", ",a", "a..b", ".a", "a.", "a,,b"] {
            let expected = "found an empty name, expected names between dots and commas, as in data.text";
            assert_eq!(refusal(list), expected, "{list}");
        }
        for list in [r"a\", r"\n", r"a\b"] {
            let expected = r"found a backslash before another character, expected one of \. \, \[ and \\";
            assert_eq!(refusal(list), expected, "{list}");
        }
        assert_eq!(refusal(r"a.b,c,a.b"), r#"the field "a.b" is named twice, expected once"#);
        assert_eq!(
            "a,b".parse::<FieldPath>().unwrap_err().to_string(),
            r#"found several fields, expected one; write \, for a comma in a name"#
        );
    }
}
