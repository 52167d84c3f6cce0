//! Unusual lines as real dumps contain them: some must be counted as bad by a mapper, others parsed.

use crate::encode::{NonAscii, write_json};
use crate::random::Random;
use crate::review::{Review, write_dict, write_object, write_review};
use crate::words::{STOPWORDS_ONLY, WITHOUT_WORDS};

/// What is wrong or unusual with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awkward {
    Blank,
    Cut,
    Array,
    Prose,
    TextAbsent,
    TextNull,
    TextNumber,
    RatingZero,
    RatingSix,
    RatingHalf,
    RatingWord,
    RatingNull,
    RatingAbsent,
    WithoutWords,
    StopwordsOnly,
    RatingString,
    TextTwice,
    Python,
    PythonEscaped,
    ByteOrderMark,
    CarriageReturn,
    LoneSurrogate,
    InvalidUtf8,
}

/// All kinds, in the order in which they are used.
pub(super) const AWKWARD: [Awkward; 23] = {
    use Awkward::*;
    [
        Blank,
        Cut,
        Python,
        TextAbsent,
        RatingZero,
        WithoutWords,
        ByteOrderMark,
        Array,
        StopwordsOnly,
        TextNull,
        RatingSix,
        CarriageReturn,
        Prose,
        LoneSurrogate,
        RatingWord,
        InvalidUtf8,
        TextNumber,
        PythonEscaped,
        RatingHalf,
        TextTwice,
        RatingNull,
        RatingString,
        RatingAbsent,
    ]
};

/// The counter of the mapper for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Blank,
    BadLine,
    NoText,
    BadRating,
    EmptyText,
    Review,
}

impl Awkward {
    /// The counter of the mapper for a line altered in this way.
    pub(super) fn outcome(self) -> Outcome {
        use Awkward::*;
        match self {
            Blank => Outcome::Blank,
            Cut | Array | Prose => Outcome::BadLine,
            TextAbsent | TextNull | TextNumber => Outcome::NoText,
            RatingZero | RatingSix | RatingHalf | RatingWord | RatingNull | RatingAbsent => {
                Outcome::BadRating
            }
            WithoutWords => Outcome::EmptyText,
            StopwordsOnly | RatingString | TextTwice | Python | PythonEscaped | ByteOrderMark
            | CarriageReturn | LoneSurrogate | InvalidUtf8 => Outcome::Review,
        }
    }

    /// Writes a review altered in this way, including the line end.
    pub(super) fn write(self, line: &mut Vec<u8>, review: &Review, random: &mut Random) {
        use Awkward::*;
        let rating = format!("{}.0", review.rating);
        let json = |text: &str| {
            let mut json = String::new();
            write_json(&mut json, text, NonAscii::Escaped);
            json
        };
        let text = json(&review.text);
        match self {
            Blank => line.extend_from_slice(random.pick(&["", " ", "\t \t"]).as_bytes()),
            Cut => {
                write_review(line, review);
                line.truncate(line.len() * (1 + random.below(8)) / 10);
            }
            Array => {
                line.push(b'[');
                write_review(line, review);
                line.push(b']');
            }
            Prose => {
                let n_lines = random.below(100_000);
                line.extend_from_slice(
                    format!("-- {n_lines} reviews exported, continued in the next file --").as_bytes(),
                );
            }
            TextAbsent => write_object(line, review, Some(&rating), None),
            TextNull => write_object(line, review, Some(&rating), Some("null")),
            TextNumber => write_object(line, review, Some(&rating), Some("5")),
            RatingZero => write_object(line, review, Some("0.0"), Some(&text)),
            RatingSix => write_object(line, review, Some("6"), Some(&text)),
            RatingHalf => write_object(line, review, Some("3.5"), Some(&text)),
            RatingWord => write_object(line, review, Some("\"five\""), Some(&text)),
            RatingNull => write_object(line, review, Some("null"), Some(&text)),
            RatingAbsent => write_object(line, review, None, Some(&text)),
            WithoutWords => {
                write_object(line, review, Some(&rating), Some(&json(random.pick(WITHOUT_WORDS))));
            }
            StopwordsOnly => {
                write_object(line, review, Some(&rating), Some(&json(random.pick(STOPWORDS_ONLY))));
            }
            RatingString => {
                let rating = format!(
                    "{}{}{}",
                    random.pick(&["\"", "\" "]),
                    review.rating,
                    random.pick(&["\"", ".0\""])
                );
                write_object(line, review, Some(&rating), Some(&text));
            }
            // Of fields with the same name the last counts.
            TextTwice => {
                let twice = format!("null, \"reviewT\\u0065xt\": {text}");
                write_object(line, review, Some(&rating), Some(&twice));
            }
            Python => write_dict(line, review, &review.text, NonAscii::Kept),
            PythonEscaped => {
                let text = format!("{} It's a café, a \"naïve\" one 👍", review.text);
                write_dict(line, review, &text, NonAscii::Escaped);
            }
            ByteOrderMark => {
                line.extend_from_slice("\u{feff}".as_bytes());
                write_review(line, review);
            }
            CarriageReturn => write_review(line, review),
            LoneSurrogate => {
                let half = format!("{}\\ud83d\"", &text[..text.len() - 1]);
                write_object(line, review, Some(&rating), Some(&half));
            }
            InvalidUtf8 => {
                write_object(line, review, Some(&rating), Some(&text));
                // Latin-1 instead of UTF-8, after the opening quote of the text.
                let name = b"\"reviewText\": \"";
                // The last field with this name, because the style field contains one too.
                let place = line.windows(name.len()).rposition(|window| window == name);
                let inside = place.expect("the object has a text") + name.len();
                line.splice(inside..inside, *b"Caf\xe9 \xf0\x9f\x91 ");
            }
        }
        line.extend_from_slice(if self == CarriageReturn { b"\r\n" } else { b"\n" });
    }
}
