//! Lines of Python literals through one parser in sequence, compared with a parser based on regular expressions.
#![no_main]

use corpus::entry::{DEPTH_MAX, Rating, Reject};
use corpus::format::{FieldPath, FieldPaths, Fields};
use corpus::literal::LiteralParser;
use libfuzzer_sys::fuzz_target;

mod naive_literal;

use naive_literal::Value;

fuzz_target!(|data: &[u8]| {
    let list: FieldPaths = "reviewText,summary.reviewText,overall".parse().expect("a list of paths");
    let rating = "summary.overall".parse().expect("a path");
    for fields in [Fields::default(), Fields { text: list.0, rating, ..Fields::default() }] {
        let mut parser = LiteralParser::new(&fields);
        for line in String::from_utf8_lossy(data).split(['\n', '\r']) {
            let review =
                parser.parse(line).and_then(|entry| Ok((entry.text.to_owned(), entry.rating?.stars())));
            assert_eq!(review, naive(line, &fields), "{line:?}");
        }
    }
});

fn naive(line: &str, fields: &Fields) -> Result<(String, u8), Reject> {
    let members = naive_literal::dict(line, DEPTH_MAX).ok_or(Reject::BadLine)?;
    let top_level = Value::Dict(members);
    let field = |path: &FieldPath| path.names().iter().try_fold(&top_level, |value, name| last(value, name));
    let text = |path| match field(path) {
        Some(Value::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let texts: Vec<_> = fields.text.iter().filter_map(text).collect();
    if texts.is_empty() {
        return Err(Reject::NoText);
    }
    let rating = match field(&fields.rating) {
        Some(Value::String(spelled)) => Rating::from_text(spelled),
        Some(Value::Number { value, .. }) => Rating::from_number(*value),
        _ => None,
    };
    Ok((texts.join(" "), rating.ok_or(Reject::BadRating)?.stars()))
}

/// The last member with this name, if the value is a dict.
fn last<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Dict(members) = value else { return None };
    let is_named = |(key, _): &&(Value, Value)| *key == Value::String(name.to_owned());
    members.iter().rev().find(is_named).map(|(_, value)| value)
}
