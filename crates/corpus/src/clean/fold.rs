//! Steps 3 and 4 for characters beyond ASCII: `’` becomes `'`, letters and their marks become lower case, and
//! every other character becomes a space, unless the rules keep it.
//!
//! ASCII is copied unchanged. Each remaining byte beyond ASCII therefore belongs to a letter or to a mark
//! that stays, or to a number or a symbol between spaces. `words.rs` depends on this and on no other
//! property of Unicode.

use super::Rules;

include!(concat!(env!("OUT_DIR"), "/characters.rs"));

/// Properties of a character that cleaning uses. A character that does not exist in Unicode 17 is `Other` in
/// both enums.
struct Character {
    kind: Kind,
    /// Difference from the code point to that of its lower case.
    to_lower: i32,
    casing: Casing,
}

/// How step 4 treats a character.
#[derive(PartialEq)]
enum Kind {
    Letter,
    Mark,
    /// A digit or another number.
    Number,
    /// Punctuation or a symbol.
    Symbol,
    Other,
}

/// How a character next to a Σ affects whether the Σ ends a word. Unicode ignores the `Ignorable` ones (`'`,
/// marks), even if they are cased as well.
#[derive(PartialEq)]
enum Casing {
    Cased,
    Ignorable,
    Other,
}

impl Character {
    fn of(character: char) -> &'static Character {
        let code = character as usize;
        let page = &PAGES[usize::from(PAGE_OF[code / PAGE])];
        &CHARACTERS[usize::from(page[code % PAGE])]
    }
}

/// Returns the folded text, which is either `text` or stored in `folded`.
pub(super) fn fold<'a>(rules: Rules, text: &str, folded: &'a mut String) -> &'a str {
    folded.clear();
    let mut rest = text;
    loop {
        let (ascii, beyond) = rest.split_at(ascii_length(rest.as_bytes()));
        folded.push_str(ascii);
        let mut characters = beyond.chars();
        let Some(character) = characters.next() else { return folded };
        rest = characters.as_str();
        match character {
            '’' => folded.push('\''),
            'İ' => folded.push_str("i\u{307}"),
            'Σ' => {
                let before = &text[..text.len() - beyond.len()];
                folded.push(if is_final(before, rest) { 'ς' } else { 'σ' });
            }
            _ => fold_character(rules, character, folded),
        }
    }
}

/// Number of bytes before the first byte beyond ASCII.
fn ascii_length(text: &[u8]) -> usize {
    let (blocks, _) = text.as_chunks::<16>();
    let whole = 16 * blocks.iter().take_while(|block| block.is_ascii()).count();
    whole + text[whole..].iter().take_while(|byte| byte.is_ascii()).count()
}

/// Unicode's Final_Sigma condition: the sigma follows a cased character and does not precede one. Each search
/// stops at the next Σ, so a text of many sigmas is still read in linear time.
fn is_final(before: &str, after: &str) -> bool {
    let casing = |character| &Character::of(character).casing;
    let is_cased = |casing: Option<&Casing>| casing == Some(&Casing::Cased);
    is_cased(before.chars().rev().map(casing).find(|casing| **casing != Casing::Ignorable))
        && !is_cased(after.chars().map(casing).find(|casing| **casing != Casing::Ignorable))
}

fn fold_character(rules: Rules, character: char, folded: &mut String) {
    let Character { kind, to_lower, .. } = Character::of(character);
    let stays = match kind {
        Kind::Letter => true,
        Kind::Mark => is_behind_letter(rules, folded),
        Kind::Number | Kind::Symbol => rules == Rules::Punctuation,
        Kind::Other => false,
    };
    let lower = (character as u32).checked_add_signed(*to_lower).and_then(char::from_u32);
    let folded_character = lower.filter(|_| stays).unwrap_or(' ');
    match kind {
        // A word by itself.
        Kind::Symbol => folded.extend([' ', folded_character, ' ']),
        _ => folded.push(folded_character),
    }
}

/// Whether the folded text ends in a letter, in a number that stays, or in a mark that stays.
fn is_behind_letter(rules: Rules, folded: &str) -> bool {
    let is_kept = |byte: &u8| match rules {
        Rules::Letters => byte.is_ascii_alphabetic(),
        Rules::Punctuation => byte.is_ascii_alphanumeric(),
    };
    folded.as_bytes().last().is_some_and(|byte| is_kept(byte) || !byte.is_ascii())
}
