//! What a rejected line of JSON, or of Python's literals, contains in place of a text or a rating: a list, an object, a
//! number, other fields, or reviews in a list.
//!
//! A line is examined only after it was rejected, and only the first ones are.

use std::collections::BTreeMap;

use crate::entry::Reject;
use crate::fields::{FieldPath, Fields};
use crate::shell::word;

mod value;

use value::{ValueKind, first_of, is_long, kind, members, names, paths};

/// Maximum number of lines per reason that are examined.
const EXAMINED_MAX: u64 = 16;
/// What a line contains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Finding {
    /// A value of this kind in the field, and the names in it if it is an object.
    Kind(String, ValueKind, Vec<String>),
    /// The values of all reviews in each field. If there are more lines, each is only what is inside.
    Columns(Box<Finding>),
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
        let mut counts = BTreeMap::<_, u64>::new();
        for (finding, n) in &self.findings {
            let finding = match finding {
                Finding::Columns(of_line) if self.n_lines > 1 => of_line,
                finding => finding,
            };
            *counts.entry(finding).or_default() += n;
        }
        counts.into_iter().find(|(_, n)| 2 * n > self.n_lines).map(|(finding, _)| finding)
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
        let paths =
            if reject == Reject::NoText { &fields.text[..] } else { std::slice::from_ref(&fields.rating) };
        let found_in = paths.iter().find_map(|path| Some((path, found(line, path)?)));
        let in_field = found_in.map(|(path, finding)| {
            let has_lists = matches!(finding, Finding::Kind(_, ValueKind::List, _))
                && reject == Reject::NoText
                && fields.list() == Ok(None)
                && matches!(found(line, &fields.rating), Some(Finding::Kind(_, ValueKind::List, _)));
            let finding = if has_lists { Finding::Lists } else { finding };
            if are_columns(line, path) { Finding::Columns(Box::new(finding)) } else { finding }
        });
        if let Some(finding) = in_field.or_else(|| elsewhere(line, &fields.text[0])) {
            *counted.findings.entry(finding).or_default() += 1;
        }
    }

    /// Adds the lines of another thread.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.of_text.merge(&other.of_text);
        self.of_rating.merge(&other.of_rating);
    }

    /// The cause of most lines without a text, and the remedy. `rating_flag` names the field of the rating or label, if the
    /// program reads one.
    pub(crate) fn without_text(&self, fields: &Fields, rating_flag: Option<&str>) -> Option<String> {
        let rating = &fields.rating;
        Some(match self.of_text.most()? {
            Finding::Kind(field, kind, _) if fields.list() != Ok(None) => {
                let found =
                    if *kind == ValueKind::List { "an empty list".to_owned() } else { kind.to_string() };
                format!(
                    "most lines have {found} in the field {}, expected a list of reviews; name it with --text-field",
                    in_quotes(field)
                )
            }
            Finding::Kind(field, ValueKind::List, _) => format!(
                "most lines have a list in the field {}, expected a text; read each element as a review with --text-field \
                 {}, or write one text per line, as jq -c does",
                in_quotes(field),
                word(&format!("{field}[]"))
            ),
            Finding::Lists => {
                let text = &fields.text[0];
                let program = format!(
                    "[{}, {}] | transpose[] | {{{}: .[0], {}: .[1]}}",
                    in_jq(text),
                    in_jq(rating),
                    key_of_jq(text),
                    key_of_jq(rating)
                );
                format!(
                    "most lines have a list in the fields {} and {}, expected a text and a rating; write one review per line \
                     with jq -c {}",
                    text.quoted(),
                    rating.quoted(),
                    word(&program)
                )
            }
            Finding::Kind(field, kind, names) => {
                let inside = match &names[..] {
                    [] => String::new(),
                    names => format!(" with the fields {}", names.join(", ")),
                };
                let remedy = match names.first() {
                    Some(name) => {
                        let path = word(&format!("{field}.{name}"));
                        format!("name one of them with --text-field, as in --text-field {path}")
                    }
                    None => "name another field with --text-field".to_owned(),
                };
                format!(
                    "most lines have {kind}{inside} in the field {}, expected a text; {remedy}",
                    in_quotes(field)
                )
            }
            Finding::Columns(_) => {
                "the input has the columns of pandas: each field has the values of all reviews; write one \
                review per line with pandas.read_json(FILE).to_json(PATH, orient=\"records\", lines=True)"
                    .to_owned()
            }
            Finding::Inside { path, is_list } => {
                let list = if *is_list { "[]" } else { "" };
                let inside = |field: &FieldPath| word(&format!("{path}{list}.{field}"));
                let rating = rating_flag.map_or(String::new(), |flag| format!(" {flag} {}", inside(rating)));
                let (text, quoted) = (inside(&fields.text[0]), in_quotes(path));
                match is_list {
                    true => format!(
                        "array in field {quoted}: each line is an object with a list of reviews; read its elements with \
                         --text-field {text}{rating}, or write one per line with jq -c {}",
                        word(&path.parse().map_or_else(|_| String::new(), |path| in_jq(&path) + "[]"))
                    ),
                    false => format!(
                        "the review is in the object in the field {quoted}; read it with --text-field {text}{rating}"
                    ),
                }
            }
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
            Finding::Kind(_, kind @ (ValueKind::List | ValueKind::Object), _) => Some(kind.to_string()),
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
        if kind(value) != ValueKind::Object {
            break;
        }
        value = members(value).filter(|(found, _)| found == name).last()?.1;
        at.push(FieldPath::of(name).to_string());
    }
    if at.is_empty() {
        return None;
    }
    let names = if kind(value) == ValueKind::Object { names(value) } else { Vec::new() };
    Some(Finding::Kind(at.join("."), kind(value), names))
}

/// Whether the first field of a path and another one have the values of several reviews.
fn are_columns(line: &str, path: &FieldPath) -> bool {
    let are_values = |value: &str| match kind(value) {
        ValueKind::List => is_long(value),
        // The index of a table.
        ValueKind::Object => members(value).next().is_some_and(|(name, _)| name.parse::<u64>().is_ok()),
        _ => false,
    };
    let field = path.list().unwrap_or_else(|| path.clone());
    let Some((first, others)) = field.names().split_first() else { return false };
    let value = members(line).filter(|(found, _)| found == first).last().map(|(_, value)| value);
    let is_column =
        value.is_some_and(|value| are_values(value) && (others.is_empty() || kind(value) == ValueKind::List));
    is_column && members(line).filter(|(_, value)| are_values(value)).count() > 1
}

/// A path as jq writes it.
fn in_jq(path: &FieldPath) -> String {
    let is_plain = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.starts_with(|first: char| first.is_ascii_digit())
    };
    let name = |name: &String| if is_plain(name) { format!(".{name}") } else { format!(".{name:?}") };
    path.names().iter().map(name).collect()
}

/// The last name of a path as the key of an object of jq.
fn key_of_jq(path: &FieldPath) -> String {
    let name = path.names().last().map_or("", String::as_str);
    in_jq(&FieldPath::of(name))[1..].to_owned()
}

/// Where a line without the field has it, or its other fields.
fn elsewhere(line: &str, path: &FieldPath) -> Option<Finding> {
    if kind(line) != ValueKind::Object {
        return None;
    }
    let first = path.names().first()?;
    for (name, value) in members(line) {
        let (object, is_list) = match kind(value) {
            ValueKind::Object => (Some(value), false),
            ValueKind::List => (first_of(value), true),
            _ => continue,
        };
        if object.is_some_and(|object| members(object).any(|(inner, _)| inner == first)) {
            return Some(Finding::Inside { path: FieldPath::of(name).to_string(), is_list });
        }
    }
    let paths = paths(line);
    (!paths.is_empty()).then_some(Finding::Names(paths))
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
        shapes.without_text(fields, Some("--rating-field")).unwrap_or_default()
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
        // A program without ratings, and one with labels.
        let (mut shapes, fields_of) = (Shapes::default(), fields("text", "stars"));
        shapes.examine(r#"{"all": [{"text": "a"}]}"#, Reject::NoText, &fields_of);
        for (flag, expected) in [
            (None, "--text-field 'all[].text', or"),
            (Some("--label-field"), "--label-field 'all[].stars', or"),
        ] {
            let message = shapes.without_text(&fields_of, flag).unwrap();
            assert!(message.contains(expected), "{message}");
        }
        let list = r#"{"n": [1], "reviews": [{"body": "a", "stars": 5}], "of": {"x": 1}}"#;
        assert_eq!(
            without_text(&[list], &fields("text", "stars")),
            "most lines have no text in the field \"text\": found the fields n, reviews[].body, reviews[].stars, of; name the \
             field with --text-field"
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
        // A table is one line.
        let message = without_text(&[of_lists; 30], &fields("text", "stars"));
        assert!(message.starts_with("most lines have a list in the fields"), "{message}");
        let mut threads = [Shapes::default(), Shapes::default()];
        let fields = fields("text", "stars");
        threads.iter_mut().for_each(|shapes| shapes.examine(of_lists, Reject::NoText, &fields));
        let [mut all, other] = threads;
        all.merge(&other);
        assert!(all.without_text(&fields, None).unwrap().starts_with("most lines have a list in the fields"));
    }

    #[test]
    fn fields_with_spaces_and_quotes_are_words_of_a_shell_and_names_of_jq() {
        for (line, text, rating, expected) in [
            (
                r#"{"review-text": ["a"], "my": {"stars": [5]}}"#,
                "review-text",
                "my.stars",
                r#"jq -c '[."review-text", .my.stars] | transpose[] | {"review-text": .[0], stars: .[1]}'"#,
            ),
            (r#"{"it's": ["a"]}"#, "it's", "stars", r"with --text-field 'it'\''s[]', or"),
            (r#"{"my text": {"en": "a"}}"#, "my text", "stars", "as in --text-field 'my text.en'"),
            (
                r#"{"all reviews": [{"my text": "a"}]}"#,
                "my text",
                "stars",
                "--text-field 'all reviews[].my text' --rating-field 'all reviews[].stars', or write one per line with jq -c \
                 '.\"all reviews\"[]'",
            ),
            (
                r#"{"the review": {"text": "a"}}"#,
                "text",
                "stars",
                "--text-field 'the review.text' --rating-field 'the review.stars'",
            ),
        ] {
            let message = without_text(&[line], &fields(text, rating));
            assert!(message.contains(expected), "{line}: {message}");
        }
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
