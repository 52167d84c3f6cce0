//! Suggests the probable cause of many bad lines, and a remedy.

use crate::classes::FoundValues;
use crate::format::{FieldPath, Fields, Format, FormatName};
use crate::ledger::MapperCounts;
use crate::lines::LineContent;

/// Number of bytes of the first line that the guess examines.
const BEGINNING_BYTES: usize = 16;

/// The beginning of the input's first line, from which the cause is guessed.
pub fn beginning(line: LineContent<'_>) -> &[u8] {
    match line {
        LineContent::Bytes(bytes) => &bytes[..bytes.len().min(BEGINNING_BYTES)],
        LineContent::TooLong { .. } => &[],
    }
}

/// The program that reads the lines.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// The remedy if no cause is known: how the program lists the lines.
    pub listing: &'a str,
    /// What follows the flag of a format of tables: nothing, or the program to which it must be passed.
    pub of_tables: &'a str,
}

/// The probable cause of many bad lines, and the remedy. A cause is stated only if it applies to more than half of
/// the lines that are not blank.
pub fn likely(
    counts: &MapperCounts,
    beginning: &[u8],
    format: &Format,
    classes: &FoundValues,
    program: Program<'_>,
) -> String {
    if counts.lines == 0 {
        return "check that the program that writes it succeeded".to_owned();
    }
    if counts.bad() == 0 && counts.unrated > 0 {
        return "all reviews have a rating of --unrated; name another field with --rating-field".to_owned();
    }
    if counts.bad() == 0 {
        return "check that it is the right input".to_owned();
    }
    let is_most = |n: u64| n > counts.filled_lines() / 2;
    if counts.bad_rating > 0
        && let Some(classes) = classes.described(format)
    {
        return classes;
    }
    match format {
        _ if is_most(counts.bad_line) => of_another_format(beginning, format, program.of_tables),
        Format::Json(fields) | Format::Delimited { fields, .. } if is_most(counts.no_text) => {
            classes.shapes.without_text(fields, Some(fields.rating_flag())).unwrap_or_else(|| without_text(fields))
        }
        Format::Json(fields) | Format::Delimited { fields, .. }
            if is_most(counts.bad_rating) || counts.bad_rating == counts.bad() =>
        {
            without_rating(counts, fields, classes)
        }
        Format::Json(_) if is_most(counts.line_too_long) => {
            "most lines exceed the length limit; write one review per line: with jq -c '.FIELD[]' FILE if a line is an object \
             with a list of reviews, with pandas.read_json(FILE).to_json(PATH, orient=\"records\", lines=True) if it has the \
             columns of pandas"
                .to_owned()
        }
        _ if is_most(counts.line_too_long) => {
            "most lines exceed the length limit; write one review per line".to_owned()
        }
        _ => program.listing.to_owned(),
    }
}

fn without_text(fields: &Fields) -> String {
    let quoted: Vec<_> = fields.text.iter().map(FieldPath::quoted).collect();
    let (field, them) = if quoted.len() == 1 { ("field", "the field") } else { ("fields", "the fields") };
    format!("most lines have no text in the {field} {}; name {them} with --text-field", quoted.join(", "))
}

fn without_rating(counts: &MapperCounts, fields: &Fields, classes: &FoundValues) -> String {
    if fields.has_labels {
        return classes.without_label(&fields.rating);
    }
    let (field, are_most) = (fields.rating.quoted(), counts.bad_rating > counts.filled_lines() / 2);
    let (from, those) = match fields.scale {
        Some(scale) => (format!("on the scale {scale}"), format!("those of the scale {scale}")),
        None => ("from 1 to 5".to_owned(), "1 to 5".to_owned()),
    };
    let found = classes.found(counts.bad_rating, fields);
    let set = "set the stars of";
    match (are_most, found) {
        (true, Some((values, Some(remedy)))) => format!(
            "most lines have no rating {from} in the field {field}: {values}; {remedy}; or name another field with \
             --rating-field"
        ),
        (true, found) => {
            let found = classes.shapes.without_rating().or_else(|| found.map(|(values, _)| values));
            let found = found.map_or(String::new(), |found| format!(": {found}"));
            format!(
                "most lines have no rating {from} in the field {field}{found}; name the field with --rating-field, or \
                 {set} its values with --class-ratings"
            )
        }
        (false, found) => {
            let values = format!("the field {field} has values other than {those}");
            match found {
                Some((found, Some(remedy))) => format!("{values}: {found}; {remedy}"),
                Some((found, None)) => format!("{values}: {found}; {set} all values with --class-ratings"),
                None => format!("{values}; {set} all values with --class-ratings"),
            }
        }
    }
}

/// What makes a line with an object no object.
fn around_object(beginning: &[u8]) -> Option<&'static str> {
    let n_digits = beginning.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match &beginning[n_digits..] {
        [b'\t', b'{', ..] if n_digits > 0 => Some(
            "the lines have an offset and a tab before the object, as Hadoop's input formats write them; remove both with \
             cut -f 2-, or in a job with -D stream.map.input.ignoreKey=true",
        ),
        b"{" => {
            Some("the input looks like JSON objects on several lines each; write one per line with jq -c .")
        }
        _ => None,
    }
}

fn of_another_format(beginning: &[u8], format: &Format, of_tables: &str) -> String {
    let name = format.name();
    let beginning = beginning.trim_ascii_start();
    if let Some(found) = around_object(beginning) {
        return found.to_owned();
    }
    let other = match beginning {
        [b'{', ..] => Some(FormatName::Json),
        _ if matches!(name, FormatName::Csv | FormatName::Tsv) => None,
        // A class, or the first name of a header.
        [b'"', b'0'..=b'9' | b'-', ..] => Some(FormatName::PolarityCsv),
        [b'"', ..] => Some(FormatName::Csv),
        _ if beginning.starts_with(b"__label__") => Some(FormatName::FastText),
        _ if !beginning.starts_with(b"[") && beginning.contains(&b'\t') => Some(FormatName::Tsv),
        _ => None,
    };
    match (other, name) {
        (Some(table @ (FormatName::Csv | FormatName::Tsv)), _) if table != name => {
            format!("the input looks like {table}; pass --format {table}{of_tables}")
        }
        (Some(other), _) if other != name => {
            format!("the input looks like {other}; pass --format {other}")
        }
        (_, FormatName::Json) if beginning.starts_with(b"[") => {
            "the input looks like one JSON array; pass the whole file to sentimill, which reads arrays".to_owned()
        }
        (_, FormatName::Json) => format!(
            "most lines are not JSON objects; write one object per line, or pass --format polarity-csv for lines of \
             class,text, or --format csv{of_tables} for a table with a header"
        ),
        (_, FormatName::Csv | FormatName::Tsv) => {
            "most records do not have the columns of the header; set --delimiter and --quote, or choose another --format"
                .to_owned()
        }
        (_, FormatName::PolarityCsv) => {
            "most lines are not polarity-csv; write a class, a comma and a text per line, \
            quoted if it contains a comma or a quote"
                .to_owned()
        }
        (_, FormatName::FastText) => {
            "most lines are not fasttext; start each line with __label__CLASS and a space".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FieldPaths, Fields};

    /// The mapper, which reads no tables.
    const MAPPER: Program<'static> = Program { listing: "list them", of_tables: " to sentimill" };

    fn likely_for(counts: MapperCounts, beginning: &[u8]) -> String {
        likely(&counts, beginning, &Format::default(), &FoundValues::default(), MAPPER)
    }

    #[test]
    fn a_program_that_reads_tables_is_not_told_to_use_another() {
        let reader = Program { of_tables: "", ..MAPPER };
        let bad_lines = MapperCounts { lines: 10, bad_line: 9, ..MapperCounts::default() };
        for (beginning, expected) in [
            (&b"text,label"[..], "or --format csv for a table with a header"),
            (b"\"text\",\"star", "looks like csv; pass --format csv"),
            (b"id\tverdict", "looks like tsv; pass --format tsv"),
        ] {
            let found = likely(&bad_lines, beginning, &Format::default(), &FoundValues::default(), reader);
            assert!(found.ends_with(expected), "{found}");
        }
    }

    #[test]
    fn the_cause_is_named_from_what_is_seen() {
        let bad_lines = MapperCounts { lines: 10, bad_line: 9, ..MapperCounts::default() };
        assert!(likely_for(bad_lines, b" [{\"a\"").contains("JSON array"));
        assert!(likely_for(bad_lines, b"a,b").contains("most lines are not JSON objects"));
        assert!(
            likely_for(bad_lines, b"1234567\t{\"a\": 1").contains("an offset and a tab before the object")
        );
        assert!(likely_for(bad_lines, b"{").contains("JSON objects on several lines each"));
        assert!(likely_for(bad_lines, b"\"1\",\"ok\"").contains("--format polarity-csv"));
        assert!(
            likely_for(bad_lines, b"\"text\",\"star")
                .ends_with("looks like csv; pass --format csv to sentimill")
        );
        assert!(likely_for(bad_lines, b"__label__1 ok").contains("--format fasttext"));
        assert!(likely_for(bad_lines, b"id\tverdict").ends_with("pass --format tsv to sentimill"));
        let no_text = MapperCounts { bad_line: 0, no_text: 9, ..bad_lines };
        assert!(likely_for(no_text, b"{").contains("\"reviewText\""));
        let bad_rating = MapperCounts { bad_rating: 9, no_text: 0, ..no_text };
        assert!(likely_for(bad_rating, b"{").contains("no rating from 1 to 5 in the field \"overall\""));
        // Labels 0 and 1, half of them each.
        let labels = MapperCounts { lines: 10, bad_rating: 5, reviews: 5, ..MapperCounts::default() };
        assert!(likely_for(labels, b"{").contains("\"overall\" has values other than 1 to 5"));
        let too_long = MapperCounts { line_too_long: 9, bad_rating: 0, ..bad_rating };
        assert!(likely_for(too_long, b"").contains("most lines exceed the length limit"));
        let unrated = MapperCounts { lines: 2, unrated: 2, ..MapperCounts::default() };
        assert!(likely_for(unrated, b"{").contains("a rating of --unrated"));
        let blank = MapperCounts { lines: 2, blank: 1, empty_text: 1, ..MapperCounts::default() };
        assert!(likely_for(blank, b"").contains("right input"));
        assert!(likely_for(MapperCounts::default(), b"").contains("program that writes it"));
    }

    #[test]
    fn fields_are_named_as_a_user_passes_them() {
        let list: FieldPaths = r"summary,data.te\.xt".parse().unwrap();
        let format = Format::Json(Fields { text: list.0, rating: FieldPath::of("a.b"), ..Fields::default() });
        let cause = |counts| likely(&counts, b"{", &format, &FoundValues::default(), MAPPER);
        let no_text = MapperCounts { lines: 10, no_text: 9, ..MapperCounts::default() };
        assert_eq!(
            cause(no_text),
            r#"most lines have no text in the fields "summary", "data.te\.xt"; name the fields with --text-field"#
        );
        let bad_rating = MapperCounts { lines: 10, bad_rating: 9, ..MapperCounts::default() };
        assert!(cause(bad_rating).contains(r#"no rating from 1 to 5 in the field "a\.b";"#));
    }

    #[test]
    fn a_reason_of_half_the_lines_or_fewer_is_not_stated_of_most() {
        for counts in [
            MapperCounts { lines: 100, bad_line: 50, reviews: 50, ..MapperCounts::default() },
            MapperCounts { lines: 100, bad_line: 30, no_text: 40, bad_rating: 30, ..MapperCounts::default() },
            MapperCounts { lines: 1000, no_text: 60, reviews: 940, ..MapperCounts::default() },
        ] {
            assert_eq!(likely_for(counts, b"["), "list them");
        }
    }

    #[test]
    fn classes_without_a_rating_are_listed_as_the_cause() {
        let format = Format::FastText { ratings: "a=1,b=5".parse().unwrap() };
        let mut classes = FoundValues::default();
        classes.count("good");
        let bad_rating = MapperCounts { lines: 9, bad_rating: 1, reviews: 8, ..MapperCounts::default() };
        assert_eq!(
            likely(&bad_rating, b"__label__1", &format, &classes, MAPPER),
            "classes without a rating: \"good\" 1; set their stars with --class-ratings=a=1,b=5,good=STARS"
        );
        // Without --class-ratings.
        let words = |counts| likely(&counts, b"{", &Format::default(), &classes, MAPPER);
        let found = "\"good\" 1; set their stars with --class-ratings=good=STARS";
        let most = "most lines have no rating from 1 to 5 in the field \"overall\"";
        let one = MapperCounts { lines: 1, bad_rating: 1, ..MapperCounts::default() };
        assert_eq!(words(one), format!("{most}: {found}; or name another field with --rating-field"));
        // Eight of nine lines have no value.
        let nine = MapperCounts { lines: 9, bad_rating: 9, ..MapperCounts::default() };
        assert!(words(nine).starts_with(&format!("{most}; name the field with --rating-field")));
        let expected = format!("the field \"overall\" has values other than 1 to 5: {found}");
        assert_eq!(words(bad_rating), expected);
        let bad_line = MapperCounts { lines: 9, bad_line: 9, ..MapperCounts::default() };
        let none = FoundValues::default();
        assert!(likely(&bad_line, b"{\"a", &format, &none, MAPPER).contains("--format json"));
        assert!(likely(&bad_line, b"label", &format, &none, MAPPER).contains("__label__"));
    }
}
