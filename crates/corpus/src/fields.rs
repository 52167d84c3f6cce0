//! The fields that hold the text and the rating of a JSON object, as paths from the top level down.
//!
//! A path is written with dots between its names: `data.text` is the field `text` of the object in the field
//! `data`. A backslash makes the next dot, comma or backslash part of a name. Commas separate the paths of a
//! list.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::format::ClassRatings;

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
        Self { text: vec![FieldPath::of(text)], rating: FieldPath::of(rating), classes: None }
    }
}

/// The names on the way from the top level to a field, at least one, without escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// A field at the top level. Dots are part of its name.
    pub fn of(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }

    /// The names, from the top level down.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The path as a name with dots, which a column of a table may have.
    pub fn literal(&self) -> String {
        self.0.join(".")
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
        for (number, name) in self.0.iter().enumerate() {
            if number > 0 {
                out.write_str(".")?;
            }
            for character in name.chars() {
                let escape = if SPECIAL.contains(&character) { "\\" } else { "" };
                write!(out, "{escape}{character}")?;
            }
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
    #[error(r"found a backslash before another character, expected one of \. \, and \\")]
    Escape(String),
    /// Several paths instead of one.
    #[error(r"found several fields, expected one; write \, for a comma in a name")]
    Several(String),
    /// A list names a field twice.
    #[error("the field {0} is named twice, expected once")]
    Twice(String),
}

/// The characters with a meaning in a list of paths.
const SPECIAL: [char; 3] = ['.', ',', '\\'];

fn paths(list: &str) -> Result<Vec<FieldPath>, NoFieldPath> {
    let (mut paths, mut names, mut name) = (Vec::new(), Vec::new(), String::new());
    let mut characters = list.chars();
    loop {
        let next = characters.next();
        match next {
            Some('\\') => match characters.next().filter(|escaped| SPECIAL.contains(escaped)) {
                Some(escaped) => name.push(escaped),
                None => return Err(NoFieldPath::Escape(list.to_owned())),
            },
            Some('.' | ',') | None => {
                if name.is_empty() {
                    return Err(NoFieldPath::EmptyName(list.to_owned()));
                }
                names.push(std::mem::take(&mut name));
                if next != Some('.') {
                    paths.push(FieldPath(std::mem::take(&mut names)));
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
            list.parse::<FieldPaths>().unwrap().0.into_iter().map(|path| path.0).collect()
        };
        assert_eq!(paths("reviewText"), [["reviewText"]]);
        assert_eq!(paths("summary,reviewText"), [["summary"], ["reviewText"]]);
        assert_eq!(paths("data.text"), [["data", "text"]]);
        assert_eq!(paths(r"a\.b\,c\\.d,\.,é "), [vec!["a.b,c\\", "d"], vec!["."], vec!["é "]]);
    }

    #[test]
    fn a_path_survives_the_round_trip_through_its_text() {
        for path in ["a", "a.b.c", r"a\.b", r"\,\\\..\\", "summary text"] {
            assert_eq!(path.parse::<FieldPath>().unwrap().to_string(), path);
        }
        assert_eq!(FieldPath::of("a.b,c\\").to_string(), r"a\.b\,c\\");
        assert_eq!(FieldPath::of("a.b\n\"").quoted(), r#""a\.b\n\"""#);
    }

    #[test]
    fn a_malformed_path_is_refused_with_what_is_wrong() {
        let refusal = |list: &str| list.parse::<FieldPaths>().unwrap_err().to_string();
        for list in ["", ",", "a,", ",a", "a..b", ".a", "a.", "a,,b"] {
            let expected = "found an empty name, expected names between dots and commas, as in data.text";
            assert_eq!(refusal(list), expected, "{list}");
        }
        for list in [r"a\", r"\n", r"a\b"] {
            let expected = r"found a backslash before another character, expected one of \. \, and \\";
            assert_eq!(refusal(list), expected, "{list}");
        }
        assert_eq!(refusal(r"a.b,c,a.b"), r#"the field "a.b" is named twice, expected once"#);
        assert_eq!(
            "a,b".parse::<FieldPath>().unwrap_err().to_string(),
            r#"found several fields, expected one; write \, for a comma in a name"#
        );
    }
}
