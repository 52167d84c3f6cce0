//! Converts a Python literal to its value in two steps: tokens by regular expressions, then a value from the tokens.
//! Independent of the parser under test.

use regex::Regex;
use std::sync::LazyLock;

/// The kinds of values that the tests distinguish.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    String(String),
    Number {
        value: f64,
        is_signed: bool,
    },
    /// `True`, `False`, `None`, or a hashable tuple.
    Other,
    /// A dict with its members: not hashable.
    Dict(Vec<(Value, Value)>),
    /// A list, or a tuple that contains a list or a dict: not hashable.
    Unhashable,
}

impl Value {
    fn is_hashable(&self) -> bool {
        !matches!(self, Self::Dict(_) | Self::Unhashable)
    }
}

/// Returns the members of the dict of a line; `None` if it is not a dict or exceeds the depth.
pub fn dict(line: &str, depth_max: usize) -> Option<Vec<(Value, Value)>> {
    let mut tokens = Tokens { tokens: tokens(line)?, next: 0, depth_max };
    if tokens.tokens.first() != Some(&Token::Mark('{')) {
        return None;
    }
    let members = tokens.members(1)?;
    (tokens.next == tokens.tokens.len()).then_some(members)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// The UTF-16 units of one string.
    String(Vec<u16>),
    Number(f64),
    Constant,
    Mark(char),
}

static SPACE: LazyLock<Regex> = LazyLock::new(|| regex(r"^[ \t\x0c]+"));
static OPENING: LazyLock<Regex> = LazyLock::new(|| regex(r#"^([uUrR]?)('''|"""|'|")"#));
/// For each kind of quotes: the text up to the next ones without a backslash before them.
static CONTENT: LazyLock<[(&str, Regex); 4]> = LazyLock::new(|| {
    ["'''", "\"\"\"", "'", "\""].map(|quotes| (quotes, regex(&format!(r"(?s)^((?:[^\\]|\\.)*?){quotes}"))))
});
static ESCAPE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"^\\(?:([\\'"abfnrtv])|([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([^0-7xuUN]))"#,
    )
});
static FLOAT: LazyLock<Regex> = LazyLock::new(|| {
    let (digits, exponent) = ("[0-9](?:_?[0-9])*", "[eE][-+]?[0-9](?:_?[0-9])*");
    regex(&format!(
        r"^(?:(?:{digits})?\.{digits}(?:{exponent})?|{digits}\.(?:{exponent})?|{digits}{exponent})"
    ))
});
static DECIMAL: LazyLock<Regex> = LazyLock::new(|| regex("^(?:0(?:_?0)*|[1-9](?:_?[0-9])*)"));
static BASED: LazyLock<Regex> =
    LazyLock::new(|| regex("^0(?:[xX]((?:_?[0-9a-fA-F])+)|[oO]((?:_?[0-7])+)|[bB]((?:_?[01])+))"));
static CONSTANT: LazyLock<Regex> = LazyLock::new(|| regex("^(?:True|False|None)"));
static NO_FINITE: LazyLock<Regex> = LazyLock::new(|| regex("^(?:nan|inf)"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a regular expression")
}

fn tokens(line: &str) -> Option<Vec<Token>> {
    if line.contains('\0') {
        return None;
    }
    let mut tokens = Vec::new();
    let mut rest = line;
    loop {
        rest = &rest[SPACE.find(rest).map_or(0, |space| space.end())..];
        let Some(first) = rest.chars().next() else { return Some(tokens) };
        let (token, length) = if "{}[]():,+-".contains(first) {
            (Token::Mark(first), 1)
        } else if let Some(constant) = CONSTANT.find(rest) {
            (Token::Constant, constant.end())
        } else if let Some(number) = NO_FINITE.find(rest) {
            (Token::Number(number.as_str().parse().expect("Rust has these names too")), number.end())
        } else if first.is_ascii_digit() || first == '.' {
            let (number, length) = number(rest)?;
            let runs_on =
                rest[length..].starts_with(|next: char| next.is_ascii_alphanumeric() || "_.".contains(next));
            if runs_on {
                return None;
            }
            (Token::Number(number), length)
        } else {
            string(rest)?
        };
        tokens.push(token);
        rest = &rest[length..];
    }
}

fn number(rest: &str) -> Option<(f64, usize)> {
    let plain = |digits: &str| digits.replace('_', "");
    if let Some(found) = FLOAT.find(rest) {
        return Some((plain(found.as_str()).parse().ok()?, found.end()));
    }
    if let Some(found) = BASED.captures(rest) {
        let (at, base) = [(1, 16), (2, 8), (3, 2)].into_iter().find(|&(at, _)| found.get(at).is_some())?;
        // A number that does not fit is not a rating.
        let value = u64::from_str_radix(&plain(&found[at]), base).unwrap_or(u64::MAX);
        return Some((value as f64, found[0].len()));
    }
    let found = DECIMAL.find(rest)?;
    let long = usize::from(rest[found.end()..].starts_with('L'));
    Some((plain(found.as_str()).parse().expect("digits are a number"), found.end() + long))
}

fn string(rest: &str) -> Option<(Token, usize)> {
    let opening = OPENING.captures(rest)?;
    let (_, content) = CONTENT.iter().find(|(quotes, _)| *quotes == &opening[2])?;
    let found = content.captures(&rest[opening[0].len()..])?;
    let units = match &opening[1] {
        "r" | "R" => found[1].encode_utf16().collect(),
        _ => unescaped(&found[1])?,
    };
    Some((Token::String(units), opening[0].len() + found[0].len()))
}

fn unescaped(mut rest: &str) -> Option<Vec<u16>> {
    let mut units = Vec::new();
    while let Some(first) = rest.chars().next() {
        if first != '\\' {
            units.extend(first.encode_utf16(&mut [0; 2]).iter());
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let found = ESCAPE.captures(rest)?;
        let of = |at: usize, base| u32::from_str_radix(&found[at], base).ok();
        let group = (1..found.len()).find(|&at| found.get(at).is_some())?;
        let code = match group {
            1 => u32::from(match &found[1] {
                "a" => '\x07',
                "b" => '\x08',
                "f" => '\x0c',
                "n" => '\n',
                "r" => '\r',
                "t" => '\t',
                "v" => '\x0b',
                itself => itself.chars().next()?,
            }),
            2 => of(2, 8)?,
            // An unknown escape is kept, with its backslash.
            6 => u32::from('\\'),
            _ => of(group, 16)?,
        };
        match char::from_u32(code) {
            Some(character) => units.extend(character.encode_utf16(&mut [0; 2]).iter()),
            // Half of a surrogate pair; the others are beyond Unicode.
            None => units.push(u16::try_from(code).ok()?),
        }
        rest = &rest[if group == 6 { 1 } else { found[0].len() }..];
    }
    Some(units)
}

struct Tokens {
    tokens: Vec<Token>,
    next: usize,
    depth_max: usize,
}

impl Tokens {
    fn take(&mut self) -> Option<Token> {
        self.next += 1;
        self.tokens.get(self.next - 1).cloned()
    }

    fn is_next(&mut self, mark: char) -> bool {
        let is_next = self.tokens.get(self.next) == Some(&Token::Mark(mark));
        self.next += usize::from(is_next);
        is_next
    }

    /// A value inside `depth` brackets.
    fn value(&mut self, depth: usize) -> Option<Value> {
        match self.take()? {
            Token::Constant => Some(Value::Other),
            Token::Number(value) => Some(Value::Number { value, is_signed: false }),
            Token::Mark(sign @ ('+' | '-')) => match self.value(depth)? {
                Value::Number { value, is_signed: false } => {
                    Some(Value::Number { value: if sign == '-' { -value } else { value }, is_signed: true })
                }
                _ => None,
            },
            Token::String(mut units) => {
                while let Some(Token::String(more)) = self.tokens.get(self.next) {
                    units.extend(more);
                    self.next += 1;
                }
                // Each lone surrogate becomes U+FFFD.
                Some(Value::String(String::from_utf16_lossy(&units)))
            }
            Token::Mark('[') => self.elements(depth, ']').map(|_| Value::Unhashable),
            Token::Mark('(') => {
                let (mut elements, has_comma) = self.elements(depth, ')')?;
                if elements.len() == 1 && !has_comma {
                    elements.pop()
                } else if !elements.iter().all(Value::is_hashable) {
                    Some(Value::Unhashable)
                } else {
                    Some(Value::Other)
                }
            }
            Token::Mark('{') => {
                self.next -= 1;
                self.members(depth + 1).map(Value::Dict)
            }
            Token::Mark(_) => None,
        }
    }

    /// The values between open brackets, and whether the last token is a comma.
    fn elements(&mut self, depth: usize, closer: char) -> Option<(Vec<Value>, bool)> {
        let mut elements = Vec::new();
        let mut may_go_on = depth < self.depth_max;
        while may_go_on && !self.is_next(closer) {
            elements.push(self.value(depth + 1)?);
            may_go_on = self.is_next(',');
            if !may_go_on {
                return self.is_next(closer).then_some((elements, false));
            }
        }
        may_go_on.then_some((elements, true))
    }

    /// A dict whose bracket has this depth.
    fn members(&mut self, depth: usize) -> Option<Vec<(Value, Value)>> {
        if depth > self.depth_max || !self.is_next('{') {
            return None;
        }
        let mut members = Vec::new();
        while !self.is_next('}') {
            let key = self.value(depth)?;
            if !key.is_hashable() || !self.is_next(':') {
                return None;
            }
            members.push((key, self.value(depth)?));
            if !self.is_next(',') {
                return self.is_next('}').then_some(members);
            }
        }
        Some(members)
    }
}
