//! What a rejected line of JSON, or of Python's literals, contains in place of a text or a rating: a list, an object, a
//! number, other fields, or reviews in a list.
//!
//! A line is examined only after it was rejected, and only the first ones are. The names and the kinds of values are
//! found by brackets and quotes; they serve messages alone.

use std::collections::BTreeMap;
use std::fmt;

use crate::fields::{FieldPath, Fields};
use crate::json_array::ElementScan;
use crate::review::Reject;

/// Maximum number of lines per reason that are examined.
const EXAMINED_MAX: u64 = 16;
/// Maximum number of names in a message, and of names that are found in an object.
const NAMES_MAX: usize = 8;
/// Maximum length of a name in a message.
const NAME_BYTES_MAX: usize = 24;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Null,
    Boolean,
    Number,
    NotANumber,
    Text,
    List,
    Object,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::NotANumber => "NaN",
            Self::Text => "a text",
            Self::List => "a list",
            Self::Object => "an object",
        })
    }
}

/// What a line contains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Finding {
    /// A value of this kind in the field, and the names in it if it is an object.
    Kind(String, Kind, Vec<String>),
    /// The values of all reviews in each field.
    Columns,
    /// Lists in the field of the text and in that of the rating.
    Lists,
    /// The field in the objects of a list, or of an object, in another field.
    Inside { path: String, is_list: bool },
    /// Other fields.
    Names(Vec<String>),
}

/// What the first rejected lines contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shapes {
    of_text: Counted,
    of_rating: Counted,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counted {
    n_lines: u64,
    findings: BTreeMap<Finding, u64>,
}

impl Counted {
    /// What most of these lines contain.
    fn most(&self) -> Option<&Finding> {
        self.findings.iter().find(|(_, n)| 2 * **n > self.n_lines).map(|(finding, _)| finding)
    }

    fn merge(&mut self, other: &Self) {
        self.n_lines += other.n_lines;
        other
            .findings
            .iter()
            .for_each(|(finding, n)| *self.findings.entry(finding.clone()).or_default() += n);
    }
}

impl Shapes {
    /// Examines a rejected line.
    #[cold]
    pub(crate) fn examine(&mut self, line: &str, reject: Reject, fields: &Fields) {
        let counted = match reject {
            Reject::NoText => &mut self.of_text,
            Reject::BadRating => &mut self.of_rating,
            Reject::BadLine | Reject::Unrated => return,
        };
        if counted.n_lines == EXAMINED_MAX {
            return;
        }
        counted.n_lines += 1;
        let in_field = match reject {
            Reject::NoText => fields.text.iter().find_map(|path| found(line, path)),
            _ => found(line, &fields.rating),
        };
        let in_field = match in_field {
            Some(Finding::Kind(_, Kind::List, _))
                if reject == Reject::NoText
                    && fields.list() == Ok(None)
                    && matches!(found(line, &fields.rating), Some(Finding::Kind(_, Kind::List, _))) =>
            {
                Some(Finding::Lists)
            }
            in_field => in_field,
        };
        if let Some(finding) = in_field.or_else(|| elsewhere(line, &fields.text[0])) {
            *counted.findings.entry(finding).or_default() += 1;
        }
    }

    /// Adds the lines of another thread.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.of_text.merge(&other.of_text);
        self.of_rating.merge(&other.of_rating);
    }

    /// The cause of most lines without a text, and the remedy.
    pub(crate) fn without_text(&self, fields: &Fields) -> Option<String> {
        let rating = &fields.rating;
        Some(match self.of_text.most()? {
            Finding::Kind(field, kind, _) if fields.list() != Ok(None) => {
                let found = if *kind == Kind::List { "an empty list".to_owned() } else { kind.to_string() };
                format!(
                    "most lines have {found} in the field {}, expected a list of reviews; name it with --text-field",
                    in_quotes(field)
                )
            }
            Finding::Kind(field, Kind::List, _) => format!(
                "most lines have a list in the field {}, expected a text; read each element as a review with --text-field \
                 '{field}[]', or write one text per line, as jq -c does",
                in_quotes(field)
            ),
            Finding::Lists => {
                let text = &fields.text[0];
                format!(
                    "most lines have a list in the fields {} and {}, expected a text and a rating; write one review per line \
                     with jq -c '[.{text}, .{rating}] | transpose[] | {{{text}: .[0], {rating}: .[1]}}'",
                    text.quoted(),
                    rating.quoted()
                )
            }
            Finding::Kind(field, kind, names) => {
                let inside = match &names[..] {
                    [] => String::new(),
                    names => format!(" with the fields {}", names.join(", ")),
                };
                let remedy = match names.first() {
                    Some(name) => {
                        format!("name one of them with --text-field, as in --text-field {field}.{name}")
                    }
                    None => "name another field with --text-field".to_owned(),
                };
                format!(
                    "most lines have {kind}{inside} in the field {}, expected a text; {remedy}",
                    in_quotes(field)
                )
            }
            Finding::Columns => {
                "the input has the columns of pandas: each field has the values of all reviews; write one \
                review per line with pandas.read_json(FILE).to_json(PATH, orient=\"records\", lines=True)"
                    .to_owned()
            }
            Finding::Inside { path, is_list: true } => format!(
                "array in field {}: each line is an object with a list of reviews; read its elements with --text-field \
                 '{path}[].{}' --rating-field '{path}[].{rating}', or write one per line with jq -c '.{path}[]'",
                in_quotes(path),
                fields.text[0]
            ),
            Finding::Inside { path, is_list: false } => format!(
                "the review is in the object in the field {}; read it with --text-field {path}.{} --rating-field \
                 {path}.{rating}",
                in_quotes(path),
                fields.text[0]
            ),
            Finding::Names(names) => {
                let quoted: Vec<_> = fields.text.iter().map(FieldPath::quoted).collect();
                let (field, them) =
                    if quoted.len() == 1 { ("field", "the field") } else { ("fields", "the fields") };
                format!(
                    "most lines have no text in the {field} {}: found the fields {}; name {them} with --text-field",
                    quoted.join(", "),
                    names.join(", ")
                )
            }
        })
    }

    /// What is in place of most ratings: a list, an object, or the names of other fields.
    pub(crate) fn without_rating(&self) -> Option<String> {
        match self.of_rating.most()? {
            Finding::Kind(_, kind @ (Kind::List | Kind::Object), _) => Some(kind.to_string()),
            Finding::Names(names) => Some(format!("found the fields {}", names.join(", "))),
            _ => None,
        }
    }
}

fn in_quotes(field: &str) -> String {
    // Backslashes appear as a user types them.
    format!("{field:?}").replace(r"\\", r"\")
}

/// What the line has in this field; `None` without the field.
fn found(line: &str, path: &FieldPath) -> Option<Finding> {
    let mut value = line;
    let mut at = Vec::new();
    for name in path.list().unwrap_or_else(|| path.clone()).names() {
        if kind(value) != Kind::Object {
            break;
        }
        value = members(value).filter(|(found, _)| found == name).last()?.1;
        at.push(FieldPath::of(name).to_string());
    }
    if at.is_empty() {
        return None;
    }
    let names = if kind(value) == Kind::Object { names(value) } else { Vec::new() };
    let are_values = |value: &str| match kind(value) {
        Kind::List => is_long(value),
        // The index of a table.
        Kind::Object => members(value).next().is_some_and(|(name, _)| name.parse::<u64>().is_ok()),
        _ => false,
    };
    if at.len() == 1 && are_values(value) && members(line).filter(|(_, value)| are_values(value)).count() > 1
    {
        return Some(Finding::Columns);
    }
    Some(Finding::Kind(at.join("."), kind(value), names))
}

/// Where a line without the field has it, or its other fields.
fn elsewhere(line: &str, path: &FieldPath) -> Option<Finding> {
    if kind(line) != Kind::Object {
        return None;
    }
    let first = path.names().first()?;
    for (name, value) in members(line) {
        let (object, is_list) = match kind(value) {
            Kind::Object => (value, false),
            Kind::List => (value.trim_start().get(1..).unwrap_or_default(), true),
            _ => continue,
        };
        if kind(object) == Kind::Object && members(object).any(|(inner, _)| inner == first) {
            return Some(Finding::Inside { path: FieldPath::of(name).to_string(), is_list });
        }
    }
    let names = names(line);
    (!names.is_empty()).then_some(Finding::Names(names))
}

/// The first names of an object; none if they are long, as texts are.
fn names(object: &str) -> Vec<String> {
    let names: Vec<_> =
        members(object).take(NAMES_MAX).map(|(name, _)| FieldPath::of(name).to_string()).collect();
    let are_names = names.iter().all(|name| name.len() < NAME_BYTES_MAX && !name.contains(char::is_control));
    if are_names { names } else { Vec::new() }
}

/// Whether a list has more than one element.
fn is_long(list: &str) -> bool {
    let elements = list.trim_start().get(1..).unwrap_or_default().trim_start();
    behind(elements).is_some_and(|rest| rest.trim_start().starts_with(','))
}

/// The members of an object: names without quotes, and all that follows from the start of the value.
fn members(object: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = object.trim_start().get(1..).unwrap_or_default();
    std::iter::from_fn(move || {
        let start = rest.trim_start_matches([' ', '\t', '\r', '\n', ',']);
        let after = behind(start)?;
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        rest = behind(value)?;
        let name = start[..start.len() - after.len()].trim_start_matches('u');
        name.get(1..name.len().checked_sub(1)?).map(|name| (name, value))
    })
}

/// What follows a value.
fn behind(value: &str) -> Option<&str> {
    // The prefix of strings of Python 2.
    let value = value.strip_prefix('u').filter(|rest| rest.starts_with(['\'', '"'])).unwrap_or(value);
    value.get(ElementScan::default().end(value.as_bytes())?..)
}

/// The kind of the value at the start of a text.
fn kind(value: &str) -> Kind {
    let value = value.trim_start();
    match value.as_bytes().first() {
        Some(b'{') => Kind::Object,
        Some(b'[' | b'(') => Kind::List,
        Some(b'"' | b'\'' | b'u') => Kind::Text,
        Some(b't' | b'f' | b'T' | b'F') => Kind::Boolean,
        _ if ["NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"]
            .iter()
            .any(|name| value.starts_with(name)) =>
        {
            Kind::NotANumber
        }
        Some(b'0'..=b'9' | b'-' | b'+' | b'.') => Kind::Number,
        _ => Kind::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str, rating: &str) -> Fields {
        let (text, rating) = (vec![text.parse().unwrap()], rating.parse().unwrap());
        Fields { text, rating, ..Fields::default() }
    }

    fn without_text(lines: &[&str], fields: &Fields) -> String {
        let mut shapes = Shapes::default();
        lines.iter().for_each(|line| shapes.examine(line, Reject::NoText, fields));
        shapes.without_text(fields).unwrap_or_default()
    }

    #[test]
    fn the_value_in_place_of_a_text_is_named() {
        for (line, expected) in [
            (
                r#"{"text": ["a"], "stars": [5]}"#,
                "most lines have a list in the fields \"text\" and \"stars\", expected a text and a rating; write one review per \
                 line with jq -c '[.text, .stars] | transpose[] | {text: .[0], stars: .[1]}'",
            ),
            (
                r#"{"text": ["a"], "stars": 5}"#,
                "most lines have a list in the field \"text\", expected a text; read each element as a review with \
                 --text-field 'text[]'",
            ),
            (
                r#"{"stars": "it's", "text" : 7}"#,
                "most lines have a number in the field \"text\", expected a text; name an",
            ),
            (r#"{"text": NaN}"#, "most lines have NaN in the field"),
            ("{u'text': None, 'a': u'}\"'}", "most lines have null in the field"),
            ("{'text': True}", "most lines have a boolean in the field"),
            (
                r#"{"text": {"en": "good", "de": ""}}"#,
                "most lines have an object with the fields en, de in the field \"text\", expected a text; name one of them \
                 with --text-field, as in --text-field text.en",
            ),
        ] {
            let message = without_text(&[line], &fields("text", "stars"));
            assert!(message.starts_with(expected), "{line}: {message}");
        }
        let nested = without_text(&[r#"{"data": {"text": 3}}"#], &fields("data.text", "stars"));
        assert!(nested.starts_with("most lines have a number in the field \"data.text\""), "{nested}");
    }

    #[test]
    fn reviews_in_a_list_or_an_object_are_named_with_their_paths() {
        let list = r#"{"count": 2, "reviews": [ {"text": "a", "stars": 5}, {"text": "b", "stars": 1}]}"#;
        assert_eq!(
            without_text(&[list], &fields("text", "stars")),
            "array in field \"reviews\": each line is an object with a list of reviews; read its elements with \
             --text-field 'reviews[].text' --rating-field 'reviews[].stars', or write one per line with jq -c '.reviews[]'"
        );
        assert_eq!(
            without_text(
                &[r#"{"_index": "a", "_source": {"id": 7, "text": "a"}}"#],
                &fields("text", "stars")
            ),
            "the review is in the object in the field \"_source\"; read it with --text-field _source.text \
             --rating-field _source.stars"
        );
        assert_eq!(
            without_text(&[r#"{"body": "a", "score": 5}"#], &fields("text", "stars")),
            "most lines have no text in the field \"text\": found the fields body, score; name the field with --text-field"
        );
    }

    #[test]
    fn columns_of_pandas_are_told_from_lists_in_each_line() {
        let of_objects = r#"{"text": {"0": "a", "1": "b"}, "stars": {"0": 5, "1": 1}}"#;
        let of_lists = r#"{"text": ["a", "b"], "stars": [5, 1]}"#;
        for columns in [of_objects, of_lists] {
            let message = without_text(&[columns], &fields("text", "stars"));
            assert!(message.starts_with("the input has the columns of pandas"), "{message}");
        }
        let message = without_text(&[r#"{"text": ["a"], "stars": [5]}"#], &fields("text", "stars"));
        assert!(message.starts_with("most lines have a list in the fields"), "{message}");
    }

    #[test]
    fn only_what_most_lines_have_is_said_and_no_text_is_shown() {
        let lines = [r#"{"text": 7}"#, r#"{"text": null}"#];
        assert_eq!(without_text(&lines, &fields("text", "stars")), "");
        let long = r#"{"a very long name, as of a text in a review": 1}"#;
        assert_eq!(without_text(&[long], &fields("text", "stars")), "");
        for damaged in [
            "",
            "{",
            "[",
            "{\"text\"",
            "{'a': u",
            "{\"a\": {\"text\"",
            "{u}",
            "{\"",
            "{\"é",
            "{'': 1}",
            "\u{e9}",
        ] {
            without_text(&[damaged], &fields("text", "stars"));
        }
    }

    #[test]
    fn lines_without_the_list_say_what_is_in_its_field() {
        let of_list = fields("reviews[].text", "reviews[].stars");
        let message = without_text(&[r#"{"reviews": 7}"#], &of_list);
        assert!(
            message.starts_with("most lines have a number in the field \"reviews\", expected a list"),
            "{message}"
        );
        let message = without_text(&[r#"{"reviews": []}"#], &of_list);
        assert!(message.starts_with("most lines have an empty list in the field \"reviews\""), "{message}");
    }

    #[test]
    fn what_is_in_place_of_a_rating_is_named() {
        let of = |line: &str| {
            let (mut shapes, fields) = (Shapes::default(), fields("text", "stars"));
            shapes.examine(line, Reject::BadRating, &fields);
            shapes.without_rating()
        };
        assert_eq!(of(r#"{"text": "a", "stars": [5]}"#).as_deref(), Some("a list"));
        assert_eq!(of(r#"{"text": "a", "score": 5}"#).as_deref(), Some("found the fields text, score"));
        assert_eq!(of(r#"{"text": "a", "stars": "so"}"#), None);
    }
}
