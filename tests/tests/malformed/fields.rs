//! Fields of nested objects, and texts of several fields, in JSON and in Python literals.

use synthetic::random::Random;

use crate::mapper::check;
use crate::notation::Notation::{self, Json, Python};
use crate::{Becomes::*, class, random_lines, scratch};

/// Names with the characters that have a meaning in a path. Some fields contain others.
const FLAGS: [&[&str]; 2] = [
    &["--text-field", r"title,data.text,data.more.text,a\.b\,c\\", "--rating-field", "data.stars"],
    &["--text-field", "data,data.text,data.more", "--rating-field", "data.more.stars"],
];

#[test]
fn fields_of_nested_json_objects_agree_with_the_oracle() {
    let classes = [class("nested in JSON", Either, |random| line(Json, random))];
    FLAGS.iter().for_each(|flags| check(flags, &classes, random_lines() / 2, review));
}

#[test]
fn fields_of_nested_python_dicts_agree_with_python() {
    let classes = [class("nested in a literal", Either, |random| line(Python, random))];
    FLAGS.iter().for_each(|flags| check(flags, &classes, random_lines() / 2, review));
}

/// Valid with all of the flags.
fn review(text: &str) -> String {
    format!(r#"{{"data": {{"stars": 5, "more": {{"stars": 5}}, "text": "{text}"}}}}"#)
}

/// A line with fields at three levels. One of five is damaged.
fn line(notation: Notation, random: &mut Random) -> Vec<u8> {
    let mut line = object(notation, 2, random).into_bytes();
    if random.one_in(5) {
        scratch(&mut line, 1, usize::MAX, &[b"{", b"}", b"\"", b",", b":", b"\\", b"'"], random);
    }
    line
}

/// An object with at most this number of levels below it. Each of its names may occur several times.
fn object(notation: Notation, levels: usize, random: &mut Random) -> String {
    let mut members = Vec::new();
    for _ in 0..2 + random.below(6) {
        // The last name is `a.b,c\`, escaped as both notations do.
        let name = random
            .pick(&["data", "data", "more", "more", "text", "text", "stars", "stars", "title", r"a.b,c\\"]);
        let value = match name {
            "data" | "more" if levels > 0 && random.percent(90) => object(notation, levels - 1, random),
            "stars" if random.percent(90) => {
                random.pick(&["5", "4.0", "1e0", "\"2\"", "\" 3.0 \""]).to_owned()
            }
            _ if random.percent(75) => text(random),
            _ => other(notation, levels, random),
        };
        members.push(format!("{}: {value}", quoted(notation, name)));
    }
    let object = format!("{{{}}}", members.join(", "));
    if notation == Python && levels < 2 && random.one_in(4) { format!("({object})") } else { object }
}

fn quoted(notation: Notation, name: &str) -> String {
    match notation {
        Json => format!("\"{name}\""),
        Python => format!("'{name}'"),
    }
}

fn text(random: &mut Random) -> String {
    let words = random.pick(&["good", "not good at all", "it's"]);
    format!("\"{words}{}\"", random.pick(&["", r"\n", r"\u00e9", " 5/5", r"\ud83d"]))
}

/// A value that is neither a text nor a rating.
fn other(notation: Notation, levels: usize, random: &mut Random) -> String {
    let nested = r#"{"text": "x", "stars": 5}"#;
    match random.below(5) {
        0 if notation == Json => "null".to_owned(),
        0 => "None".to_owned(),
        1 => format!("[{nested}]"),
        2 if notation == Python => format!("({nested},)"),
        3 if levels > 0 => "{}".to_owned(),
        _ => "6".to_owned(),
    }
}
