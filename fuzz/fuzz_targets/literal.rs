//! Lines of Python literals through one parser in sequence, compared with a parser based on regular expressions.
#![no_main]

use corpus::format::Fields;
use corpus::literal::LiteralParser;
use corpus::review::{DEPTH_MAX, Entry, Rating, Reject};
use libfuzzer_sys::fuzz_target;

mod naive_literal;

use naive_literal::Value;

fuzz_target!(|data: &[u8]| {
    let mut parser = LiteralParser::new(Fields::default());
    for line in String::from_utf8_lossy(data).split(['\n', '\r']) {
        let review = parser.parse(line).and_then(Entry::review);
        let review = review.map(|review| (review.text.to_owned(), review.rating.stars()));
        assert_eq!(review, naive(line), "{line:?}");
    }
});

fn naive(line: &str) -> Result<(String, u8), Reject> {
    let members = naive_literal::dict(line, DEPTH_MAX).ok_or(Reject::BadLine)?;
    let last = |name: &str| {
        let is_named = |(key, _): &&(Value, Value)| *key == Value::String(name.to_owned());
        members.iter().rev().find(is_named).map(|(_, value)| value)
    };
    let Some(Value::String(text)) = last("reviewText") else { return Err(Reject::NoText) };
    let rating = match last("overall") {
        Some(Value::String(spelled)) => Rating::from_text(spelled),
        Some(Value::Number { value, .. }) => Rating::from_number(*value),
        _ => None,
    };
    Ok((text.clone(), rating.ok_or(Reject::BadRating)?.stars()))
}
