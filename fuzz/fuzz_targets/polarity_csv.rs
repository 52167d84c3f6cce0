//! Lines of polarity files, compared with a parser that reads one character at a time.
#![no_main]

use std::iter::Peekable;
use std::str::Chars;

use corpus::entry::Reject;
use corpus::format::{ClassRatings, Format};
use corpus::review::ReviewParser;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for with_title in [false, true] {
        let mut parser =
            ReviewParser::new(Format::PolarityCsv { ratings: ClassRatings::default(), with_title });
        for line in data.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let review =
                parser.parse(line).and_then(|entry| Ok((entry.text.to_owned(), entry.rating?.stars())));
            let line = String::from_utf8_lossy(line);
            assert_eq!(review, naive(&line, with_title), "{line:?}");
        }
    }
});

fn naive(line: &str, with_title: bool) -> Result<(String, u8), Reject> {
    let columns = columns(line).ok_or(Reject::BadLine)?;
    let text = match &columns[1..] {
        [.., title, text] if with_title => format!("{title} {text}"),
        [.., text] if !with_title => text.clone(),
        _ => return Err(Reject::BadLine),
    };
    match &columns[0][..] {
        "1" => Ok((text, 1)),
        "2" => Ok((text, 5)),
        _ => Err(Reject::BadRating),
    }
}

fn columns(line: &str) -> Option<Vec<String>> {
    let mut characters = line.chars().peekable();
    let mut columns = Vec::new();
    loop {
        columns.push(match characters.next_if_eq(&'"') {
            Some(_) => quoted(&mut characters)?,
            None => plain(&mut characters)?,
        });
        match characters.next() {
            None => return Some(columns),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

fn plain(characters: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut column = String::new();
    while let Some(character) = characters.next_if(|&character| character != ',') {
        column.push(Some(character).filter(|&character| character != '"')?);
    }
    Some(column)
}

/// Returns the text between an opening and its closing quote; removes the closing one.
fn quoted(characters: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut column = String::new();
    loop {
        let (one, next) = (characters.next()?, characters.peek().copied());
        let escaped = match (one, next) {
            ('"' | '\\', Some('"')) => Some('"'),
            ('\\', Some('n')) => Some('\n'),
            ('\\', Some('\\')) => Some('\\'),
            ('"', _) => return Some(column),
            _ => None,
        };
        column.push(escaped.unwrap_or(one));
        if escaped.is_some() {
            characters.next();
        }
    }
}
