//! A review's line as tokens, in JSON or as a Python literal, so that one token can be broken.

use synthetic::random::Random;

use crate::scratch;

pub const TEXT: &str = "reviewText";
pub const RATING: &str = "overall";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// With `true` in each line, which is not a Python literal.
    Json,
    Python,
}

/// An object before it is written as a line: names and values as text.
pub struct Object {
    notation: Notation,
    members: Vec<Member>,
}

struct Member {
    name: &'static str,
    written: Vec<u8>,
    value: Vec<u8>,
}

impl Object {
    /// A valid review with other members, in any order.
    pub fn review(notation: Notation, random: &mut Random) -> Self {
        let mut object = Self { notation, members: Vec::new() };
        let text = text(notation, random, b"");
        object.put(random, TEXT, &text);
        let ratings: &[&str] = match notation {
            Notation::Json => &["1", "2.0", "3", "4.0e0", "5", "\"4.0\""],
            Notation::Python => &["1", "2.0", "+3", "4e0", "0x5", "'4.0'", "(5)"],
        };
        let rating = random.pick(ratings);
        object.put(random, RATING, rating.as_bytes());
        let (yes, others): (_, &[(&str, &str)]) = match notation {
            Notation::Json => (
                "true",
                &[
                    ("asin", r#""B0""#),
                    ("helpful", "[0, 2]"),
                    ("style", r#"{"reviewText": null, "overall": [{}]}"#),
                    ("vote", "-1.5e3"),
                ],
            ),
            Notation::Python => (
                "True",
                &[
                    ("asin", "u'B0'"),
                    ("helpful", "[0, 2]"),
                    ("style", "{'reviewText': (None, 'x',), 'overall': [{}]}"),
                    ("vote", "-1_5e3"),
                ],
            ),
        };
        object.put(random, "verified", yes.as_bytes());
        for (name, value) in others {
            if random.one_in(2) {
                object.put(random, name, value.as_bytes());
            }
        }
        object
    }

    /// The name in this notation.
    fn written(&self, name: &str) -> Vec<u8> {
        match self.notation {
            Notation::Json => format!("\"{name}\""),
            Notation::Python => format!("'{name}'"),
        }
        .into_bytes()
    }

    /// Inserts a member at a random position.
    pub fn put(&mut self, random: &mut Random, name: &'static str, value: &[u8]) {
        let place = random.below(self.members.len() + 1);
        let written = self.written(name);
        self.members.insert(place, Member { name, written, value: value.to_vec() });
    }

    /// Appends a member.
    pub fn push(&mut self, name: &'static str, value: &[u8]) {
        let written = self.written(name);
        self.members.push(Member { name, written, value: value.to_vec() });
    }

    /// Inserts a member whose name is already written, at a random position.
    pub fn put_named(&mut self, random: &mut Random, written: &[u8], value: &[u8]) {
        self.put(random, "", value);
        for member in self.members.iter_mut().filter(|member| member.name.is_empty()) {
            member.written = written.to_vec();
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.members.retain(|member| member.name != name);
    }

    pub fn set(&mut self, name: &str, value: &[u8]) {
        self.member(name).value = value.to_vec();
    }

    /// Replaces the written form of a name.
    pub fn respell(&mut self, name: &str, written: &[u8]) {
        self.member(name).written = written.to_vec();
    }

    fn member(&mut self, name: &str) -> &mut Member {
        self.members.iter_mut().find(|member| member.name == name).expect("a review has this member")
    }

    /// Brackets, names, colons, values and commas, in order.
    pub fn tokens(&self) -> Vec<Vec<u8>> {
        let mut tokens = vec![b"{".to_vec()];
        for member in &self.members {
            tokens.extend([member.written.clone(), b":".to_vec(), member.value.clone(), b",".to_vec()]);
        }
        tokens.pop();
        tokens.push(b"}".to_vec());
        tokens
    }

    pub fn line(&self, random: &mut Random) -> Vec<u8> {
        spaced(&self.tokens(), random)
    }
}

/// Joins tokens, possibly with spaces between them, but none before the first.
pub fn spaced(tokens: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let spaces: &[&[u8]] = if random.one_in(2) { &[b"", b"", b" "] } else { &[b" ", b"\t", b"  "] };
    let mut line = tokens[0].clone();
    for token in &tokens[1..] {
        line.extend_from_slice(random.pick(spaces));
        line.extend_from_slice(token);
    }
    line
}

/// A text of a few words with `inside` at a random position, as a string with its quotes.
pub fn text(notation: Notation, random: &mut Random, inside: &[u8]) -> Vec<u8> {
    let words: &[&str] = match notation {
        Notation::Json => &[
            "good",
            "not",
            "it's",
            "5/5",
            "caf\u{e9}",
            "\u{65e5}\u{672c}",
            "\u{1f44d}",
            r"caf\u00e9",
            r"\ud83d\ude00",
            r#"\"so\""#,
            r"a\\b",
            r"\/",
            r"\n",
            r"\t",
            "<br />",
            "R&amp;B",
            "&#39;",
            "{[,:]}",
        ],
        Notation::Python => &[
            "good",
            "not",
            r"it\'s",
            "5/5",
            "caf\u{e9}",
            "\u{65e5}\u{672c}",
            "\u{1f44d}",
            r"caf\xe9",
            r"caf\u00e9",
            r"\U0001f600",
            r#"\"so\""#,
            r"a\\b",
            r"\n",
            r"\101\x42",
            "<br />",
            "R&amp;B",
            "&#39;",
            "{[,:]}",
        ],
    };
    let quote: u8 = match notation {
        Notation::Json => b'"',
        Notation::Python => random.pick(b"'\""),
    };
    let (n_words, place) = (1 + random.below(8), random.below(8));
    let mut text = vec![quote];
    text.extend_from_slice(b"Fine");
    for word in 0..n_words {
        if word == place.min(n_words - 1) {
            text.extend_from_slice(inside);
        }
        text.push(b' ');
        text.extend_from_slice(random.pick(words).as_bytes());
    }
    text.push(quote);
    text
}

/// A review's line in which one member has one of these values.
pub fn with(notation: Notation, random: &mut Random, name: &str, values: &[&str]) -> Vec<u8> {
    let mut object = Object::review(notation, random);
    object.set(name, random.pick(values).as_bytes());
    object.line(random)
}

/// A review's line with one of these values as the text, the rating, another member, or nested inside one.
pub fn with_value(notation: Notation, random: &mut Random, values: &[&str]) -> Vec<u8> {
    let value = random.pick(values);
    let mut object = Object::review(notation, random);
    match random.below(4) {
        0 => object.set(TEXT, value.as_bytes()),
        1 => object.set(RATING, value.as_bytes()),
        2 => object.put(random, "more", value.as_bytes()),
        _ => {
            let quote = if notation == Notation::Json { '"' } else { '\'' };
            let nested = random.pick(&["[VALUE]", "[0, {NAME: VALUE}]", "{NAME: [[], VALUE, 0]}"]);
            let nested = nested.replace("NAME", &format!("{quote}x{quote}")).replace("VALUE", value);
            object.put(random, "more", nested.as_bytes());
        }
    }
    object.line(random)
}

/// A review's line with `inside` in its text, in another string, or in a name.
pub fn with_inside(notation: Notation, random: &mut Random, inside: &[u8]) -> Vec<u8> {
    let string = text(notation, random, inside);
    let mut object = Object::review(notation, random);
    match random.below(3) {
        0 => object.set(TEXT, &string),
        1 => object.put(random, "more", &string),
        _ => object.put_named(random, &string, b"0"),
    }
    object.line(random)
}

/// A review's line with `between` inserted between two of its tokens or after the last.
pub fn with_between(notation: Notation, random: &mut Random, between: &[u8]) -> Vec<u8> {
    let mut tokens = Object::review(notation, random).tokens();
    let place = 1 + random.below(tokens.len());
    tokens.insert(place, between.to_vec());
    spaced(&tokens, random)
}

/// A valid line cut at any position.
pub fn cut(notation: Notation, random: &mut Random) -> Vec<u8> {
    let mut line = Object::review(notation, random).line(random);
    line.truncate(1 + random.below(line.len() - 1));
    line
}

/// A line without one of its tokens.
pub fn without_token(notation: Notation, random: &mut Random) -> Vec<u8> {
    let mut tokens = Object::review(notation, random).tokens();
    tokens.remove(random.below(tokens.len()));
    spaced(&tokens, random)
}

/// A line with two adjacent tokens swapped.
pub fn swapped(notation: Notation, random: &mut Random) -> Vec<u8> {
    let mut tokens = Object::review(notation, random).tokens();
    let place = random.below(tokens.len() - 1);
    tokens.swap(place, place + 1);
    spaced(&tokens, random)
}

/// A line with one bracket, colon or comma doubled.
pub fn doubled(notation: Notation, random: &mut Random) -> Vec<u8> {
    let mut tokens = Object::review(notation, random).tokens();
    let marks: Vec<_> = (0..tokens.len())
        .filter(|&place| tokens[place].len() == 1 && b"{}:,".contains(&tokens[place][0]))
        .collect();
    let place = random.pick(&marks);
    tokens.insert(place, tokens[place].clone());
    spaced(&tokens, random)
}

/// A line without one of the quotes around its names and strings.
pub fn without_quote(notation: Notation, random: &mut Random) -> Vec<u8> {
    let mut tokens = Object::review(notation, random).tokens();
    let strings: Vec<_> = (0..tokens.len()).filter(|&place| b"\"'".contains(&tokens[place][0])).collect();
    let token = &mut tokens[random.pick(&strings)];
    if random.one_in(2) {
        token.remove(0);
    } else {
        token.pop();
    }
    spaced(&tokens, random)
}

/// A valid line with random bytes inserted, deleted or doubled. It may stay valid.
pub fn scratched(notation: Notation, random: &mut Random) -> Vec<u8> {
    let mut line = Object::review(notation, random).line(random);
    const PIECES: [&[u8]; 28] = [
        b"\"", b"'", b"\\", b"{", b"}", b"[", b"]", b"(", b")", b",", b":", b"u", b"r", b"b", b"0", b"1",
        b".", b"e", b"-", b"_", b"#", b" ", b"\x01", b"\0", b"\xFF", b"\\u00", b"null", b"None",
    ];
    let times = 1 + random.below(3);
    scratch(&mut line, times, usize::MAX, &PIECES, random);
    line
}
