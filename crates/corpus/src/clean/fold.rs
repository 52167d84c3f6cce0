//! Steps 3 and 4 for what is not ASCII: `’` becomes `'`, letters and their marks their lower case, all else a space.
//!
//! ASCII passes through untouched. So a byte of the folded text beyond ASCII always belongs to a letter or to a mark
//! that stays, which is all that words.rs has to know about Unicode.

include!(concat!(env!("OUT_DIR"), "/characters.rs"));

/// What cleaning has to know about a character; those that Unicode 17 lacks are `Other` throughout.
struct Character {
    kind: Kind,
    /// From the code point to that of its lower case.
    to_lower: i32,
    casing: Casing,
}

/// What becomes of a character.
#[derive(PartialEq)]
enum Kind {
    Letter,
    Mark,
    Other,
}

/// What a character beside Σ says about the end of a word; Unicode lets the ignorable ones (`'`, marks) count as
/// absent, even where they are cased as well.
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

/// The folded text, held by `folded`.
pub(super) fn fold<'a>(text: &str, folded: &'a mut String) -> &'a str {
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
            _ => fold_character(character, folded),
        }
    }
}

/// How many bytes go before the first that is not ASCII.
fn ascii_length(text: &[u8]) -> usize {
    let (blocks, _) = text.as_chunks::<16>();
    let whole = 16 * blocks.iter().take_while(|block| block.is_ascii()).count();
    whole + text[whole..].iter().take_while(|byte| byte.is_ascii()).count()
}

/// Unicode's Final_Sigma: behind a cased character and not in front of one. Each look ends at the next Σ, so a text
/// of many is still read a fixed number of times.
fn is_final(before: &str, after: &str) -> bool {
    let casing = |character| &Character::of(character).casing;
    let is_cased = |casing: Option<&Casing>| casing == Some(&Casing::Cased);
    is_cased(before.chars().rev().map(casing).find(|casing| **casing != Casing::Ignorable))
        && !is_cased(after.chars().map(casing).find(|casing| **casing != Casing::Ignorable))
}

fn fold_character(character: char, folded: &mut String) {
    let Character { kind, to_lower, .. } = Character::of(character);
    let stays = match kind {
        Kind::Letter => true,
        Kind::Mark => is_behind_letter(folded),
        Kind::Other => false,
    };
    let lower = (character as u32).checked_add_signed(*to_lower).and_then(char::from_u32);
    folded.push(lower.filter(|_| stays).unwrap_or(' '));
}

/// Whether the folded text ends in a letter or in a mark that stays.
fn is_behind_letter(folded: &str) -> bool {
    folded.as_bytes().last().is_some_and(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii())
}
