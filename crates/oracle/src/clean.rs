//! The rules of cleaning, made of regular expressions and another crate's HTML references.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// The rules, step by step as they are written.
pub fn naive(text: &str) -> String {
    let text = REFERENCE.replace_all(text, decode);
    let text = TAG.replace_all(&text, " ").replace('’', "'");
    let text = text.replace(is_unassigned, " ").to_lowercase();
    let text = KEPT.replace_all(&text, |found: &Captures<'_>| {
        found.name("kept").map_or(" ", |kept| kept.as_str()).to_owned()
    });
    let words = text.split(' ').map(|word| word.trim_matches('\'')).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn decode(found: &Captures<'_>) -> String {
    let decoded = htmlize::unescape(&found[0]).into_owned();
    // htmlize reads the `&not` of `&notit;` too. What it leaves of such a name, or of an unknown one, ends in `;`.
    let is_unknown = decoded.ends_with(';') && !found[0].starts_with("&#") && &found[0] != "&semi;";
    if is_unknown { found[0].to_owned() } else { decoded }
}

static REFERENCE: LazyLock<Regex> = LazyLock::new(|| regex("&(#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z0-9]+);"));
static TAG: LazyLock<Regex> = LazyLock::new(|| regex("<[A-Za-z/!][^<>]*>"));
static KEPT: LazyLock<Regex> = LazyLock::new(|| {
    let (letter, mark) = (class(GeneralCategoryGroup::Letter), class(GeneralCategoryGroup::Mark));
    regex(&format!("(?s)(?<kept>({letter}{mark}*|')+)|."))
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a regular expression")
}

/// A regular expression for the characters of a group in Unicode 17; regex's own classes are of Unicode 16.
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

/// Whether Unicode 17 leaves this character without a meaning.
pub fn is_unassigned(character: char) -> bool {
    character.general_category() == GeneralCategory::Unassigned
}
