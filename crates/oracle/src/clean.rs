//! The cleaning rules, implemented with regular expressions and another crate's HTML references.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Cleans a text step by step, as the rules are written. `punctuation`: numbers, punctuation and symbols are words.
pub fn naive(text: &str, punctuation: bool) -> String {
    let text = REFERENCE.replace_all(text, decode);
    let text = TAG.replace_all(&text, " ").replace('’', "'");
    let text = text.replace(is_unassigned, " ").to_lowercase();
    let kept = if punctuation { &PUNCTUATED } else { &KEPT };
    let text =
        kept.replace_all(&text, |found: &Captures<'_>| match (found.name("kept"), found.name("symbol")) {
            (Some(kept), _) => kept.as_str().to_owned(),
            (_, Some(symbol)) => format!(" {} ", symbol.as_str()),
            _ => " ".to_owned(),
        });
    let words = text.split(' ').map(|word| word.trim_matches('\'')).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn decode(found: &Captures<'_>) -> String {
    let decoded = htmlize::unescape(&found[0]).into_owned();
    // htmlize also decodes the `&not` of `&notit;`. The rest of such a name, or an unknown name, ends in `;`.
    let is_unknown = decoded.ends_with(';') && !found[0].starts_with("&#") && &found[0] != "&semi;";
    if is_unknown { found[0].to_owned() } else { decoded }
}

static REFERENCE: LazyLock<Regex> = LazyLock::new(|| regex("&(#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z0-9]+);"));
static TAG: LazyLock<Regex> = LazyLock::new(|| regex("<[A-Za-z/!][^<>]*>"));
static KEPT: LazyLock<Regex> = LazyLock::new(|| {
    let (letter, mark) = (class(GeneralCategoryGroup::Letter), class(GeneralCategoryGroup::Mark));
    regex(&format!("(?s)(?<kept>({letter}{mark}*|')+)|."))
});

static PUNCTUATED: LazyLock<Regex> = LazyLock::new(|| {
    use GeneralCategoryGroup::{Letter, Mark, Number, Punctuation, Symbol};
    let [letter, number, mark] = [Letter, Number, Mark].map(class);
    let [punctuation, symbol] = [Punctuation, Symbol].map(class);
    regex(&format!("(?s)(?<kept>([{letter}{number}]{mark}*|')+)|(?<symbol>[{punctuation}{symbol}])|."))
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a regular expression")
}

/// A regular expression for the characters of a group in Unicode 17. The classes of regex are those of
/// Unicode 16.
fn class(group: GeneralCategoryGroup) -> String {
    let members: Vec<char> = characters().filter(|member| member.general_category_group() == group).collect();
    let ranges = members.chunk_by(|one, next| *one as u32 + 1 == *next as u32);
    let ranges = ranges
        .map(|range| format!("\\x{{{:x}}}-\\x{{{:x}}}", range[0] as u32, range[range.len() - 1] as u32));
    format!("[{}]", ranges.collect::<String>())
}

/// All characters.
pub fn characters() -> impl Iterator<Item = char> {
    '\0'..=char::MAX
}

/// Whether this character is unassigned in Unicode 17.
pub fn is_unassigned(character: char) -> bool {
    character.general_category() == GeneralCategory::Unassigned
}
