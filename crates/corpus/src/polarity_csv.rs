//! Parses a line of a polarity file into a review: `"2","Great fit","He said \"wow\".\nTwice."`. The class is
//! the first column, and the text is the last column.
//!
//! A quoted column may contain any character. Inside quotes, `""` and `\"` are a quote, `\n` is a line break,
//! `\\` is a backslash, and any other backslash is literal. An unquoted column contains no quote and no comma
//! and has no escapes.

use crate::class_ratings::ClassRatings;
use crate::classes::FoundValues;
use crate::entry::{Entry, Reject};

/// Parses polarity lines and reuses its memory.
#[derive(Debug)]
pub(crate) struct PolarityCsvParser {
    ratings: ClassRatings,
    pub unrated: FoundValues,
    with_title: bool,
    class: String,
    text: String,
}

impl PolarityCsvParser {
    pub fn new(ratings: ClassRatings, with_title: bool) -> Self {
        let unrated = FoundValues::default();
        Self { ratings, unrated, with_title, class: String::new(), text: String::new() }
    }

    /// Parses one line, passed without its line end.
    pub fn parse<'a>(&'a mut self, line: &'a str) -> Result<Entry<'a>, Reject> {
        let (class, mut rest) = split_column(line)?;
        let (mut title, mut text) = (None, None);
        while let Some(columns) = rest {
            let (column, after) = split_column(columns)?;
            title = text.replace(column);
            rest = after;
        }
        let text = text.ok_or(Reject::BadLine)?;
        self.class.clear();
        let class = class.content(&mut self.class);
        let rating = self.ratings.rating(class).ok_or(Reject::BadRating);
        if rating.is_err() {
            self.unrated.count(class);
        }
        self.text.clear();
        if !self.with_title {
            return Ok(Entry { text: text.content(&mut self.text), rating, label: None });
        }
        title.ok_or(Reject::BadLine)?.append_to(&mut self.text);
        self.text.push(' ');
        text.append_to(&mut self.text);
        Ok(Entry { text: &self.text, rating, label: None })
    }
}

/// One column.
#[derive(Clone, Copy)]
enum Column<'a> {
    Plain(&'a str),
    /// The bytes between the quotes, with escapes.
    Quoted(&'a str),
}

/// Splits the first column from those after its comma, if there is one.
fn split_column(line: &str) -> Result<(Column<'_>, Option<&str>), Reject> {
    let Some(quoted) = line.strip_prefix('"') else {
        let (column, rest) = line.split_once(',').map_or((line, None), |(column, rest)| (column, Some(rest)));
        return if column.contains('"') { Err(Reject::BadLine) } else { Ok((Column::Plain(column), rest)) };
    };
    let end = closing_quote(quoted).ok_or(Reject::BadLine)?;
    let column = Column::Quoted(&quoted[..end]);
    match &quoted[end + 1..] {
        "" => Ok((column, None)),
        after => Ok((column, Some(after.strip_prefix(',').ok_or(Reject::BadLine)?))),
    }
}

fn closing_quote(quoted: &str) -> Option<usize> {
    let bytes = quoted.as_bytes();
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' && bytes.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

impl<'a> Column<'a> {
    /// The content, which is in `memory` if the column had escapes.
    fn content(self, memory: &'a mut String) -> &'a str {
        match self {
            Self::Plain(content) => content,
            Self::Quoted(content) if memchr::memchr2(b'"', b'\\', content.as_bytes()).is_none() => content,
            Self::Quoted(_) => {
                self.append_to(memory);
                memory
            }
        }
    }

    fn append_to(self, text: &mut String) {
        let mut rest = match self {
            Self::Plain(content) => return text.push_str(content),
            Self::Quoted(content) => content,
        };
        while let Some(at) = memchr::memchr2(b'"', b'\\', rest.as_bytes()) {
            text.push_str(&rest[..at]);
            let (character, escape_bytes) = match &rest.as_bytes()[at..] {
                [b'"', b'"', ..] | [b'\\', b'"', ..] => ('"', 2),
                [b'\\', b'n', ..] => ('\n', 2),
                [b'\\', b'\\', ..] => ('\\', 2),
                _ => ('\\', 1),
            };
            text.push(character);
            rest = &rest[at + escape_bytes..];
        }
        text.push_str(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, with_title: bool) -> Result<(String, Option<u8>), Reject> {
        let mut parser = PolarityCsvParser::new(ClassRatings::default(), with_title);
        parser
            .parse(line)
            .map(|entry| (entry.text.to_owned(), entry.rating.ok().map(|rating| rating.stars())))
    }

    #[test]
    fn the_class_is_the_first_column_and_the_text_the_last() {
        let good = |text: &str, stars| Ok((text.to_owned(), stars));
        assert_eq!(read(r#""1","not good""#, false), good("not good", Some(1)));
        assert_eq!(read("2,good", false), good("good", Some(5)));
        assert_eq!(read(r#"2,"a, b",c,"d""#, false), good("d", Some(5)));
        assert_eq!(read(r#"2,"a, b",c,"d""#, true), good("c d", Some(5)));
        assert_eq!(read("3,x", false), good("x", None));
        assert_eq!(read(r#""","x""#, false), good("x", None));
        assert_eq!(read(" 2,x", false), good("x", None));
        assert_eq!([read("2,", false), read(r#"2,"""#, false)], [good("", Some(5)), good("", Some(5))]);
    }

    #[test]
    fn escapes_are_decoded_only_inside_quotes() {
        let text = |line| read(line, false).map(|(text, _)| text);
        for (line, expected) in [
            (r#"1,"a ""b"" c""#, r#"a "b" c"#),
            (r#"1,"a \"b\" c""#, r#"a "b" c"#),
            (r#"1,"a\nb\\nc""#, "a\nb\\nc"),
            (r#"1,"\\""#, "\\"),
            (r#"1,"\x\é""#, "\\x\\é"),
            (r#"1,"\"""""#, "\"\""),
            (r"1,a\nb", r"a\nb"),
        ] {
            assert_eq!(text(line).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn a_line_that_breaks_the_format_is_bad() {
        for line in [
            "1",
            r#""1""#,
            r#""1","open"#,
            r#"1,"open\""#,
            r#"1,"open\"#,
            r#"1,"open"""#,
            r#"1,"a"b"#,
            r#"1,"a" "#,
            r#"1,a"b"#,
            r#"1, "a""#,
            r#"1"2,a"#,
            r#"1,a,"b"c,d"#,
        ] {
            assert_eq!(read(line, false), Err(Reject::BadLine), "{line}");
        }
        assert_eq!(read("1,a", true), Err(Reject::BadLine));
    }
}
