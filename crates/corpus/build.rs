//! Generates the two tables that cleaning uses, in `OUT_DIR`: `characters.rs` (Unicode 17) and `names.rs`
//! (HTML names).
//!
//! Categories come from unicode-properties, which is pinned to Unicode 17. Lower case and the context of a
//! final sigma come from std, but only for characters that exist in Unicode 17. A newer std therefore
//! generates the same tables.

use entities::{Codepoints, ENTITIES};
use std::path::Path;
use std::{env, fs};
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

const PAGE: usize = 128;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let std = char::UNICODE_VERSION;
    assert!(
        std >= (17, 0, 0),
        "cleaning needs Rust with Unicode 17, this one has {std:?}; see rust-version in Cargo.toml"
    );
    let pinned = unicode_properties::UNICODE_VERSION;
    assert!(pinned == (17, 0, 0), "unicode-properties has Unicode {pinned:?}, expected 17; pin it to 0.1.4");

    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("characters.rs"), characters()).expect("OUT_DIR is writable");
    fs::write(Path::new(&out).join("names.rs"), names()).expect("OUT_DIR is writable");
}

/// Generates a two-level table: `PAGE_OF` maps a code point to its page, and the page maps it to its entry in
/// `CHARACTERS`. Characters with equal properties share one entry.
fn characters() -> String {
    let (mut actions, mut pages, mut page_of) = (Vec::new(), Vec::new(), Vec::new());
    for first in (0..0x11_0000).step_by(PAGE) {
        let page: Vec<u8> =
            (first..first + PAGE as u32).map(|code| index_of(&mut actions, action(code))).collect();
        page_of.push(index_of(&mut pages, page));
    }
    format!(
        "const PAGE: usize = {PAGE};\n\
         static PAGE_OF: [u8; {}] = {page_of:?};\n\
         static PAGES: [[u8; PAGE]; {}] = {pages:?};\n\
         static CHARACTERS: [Character; {}] = [{}];\n",
        page_of.len(),
        pages.len(),
        actions.len(),
        actions.join(", ")
    )
}

fn index_of<T: PartialEq>(list: &mut Vec<T>, item: T) -> u8 {
    let index = list.iter().position(|other| *other == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    });
    u8::try_from(index).expect("the tables need at most 256 pages and 256 actions")
}

/// The Rust source of the `Character` value for a code point.
fn action(code: u32) -> String {
    let other = "Character { kind: Kind::Other, to_lower: 0, casing: Casing::Other }";
    let Some(character) = char::from_u32(code).filter(|&character| is_assigned(character)) else {
        return other.to_owned();
    };
    let lower = lower(character);
    let kind = match lower.general_category_group() {
        GeneralCategoryGroup::Letter => "Letter",
        GeneralCategoryGroup::Mark => "Mark",
        GeneralCategoryGroup::Number => "Number",
        GeneralCategoryGroup::Punctuation | GeneralCategoryGroup::Symbol => "Symbol",
        _ => "Other",
    };
    let to_lower = lower as i32 - code as i32;
    format!("Character {{ kind: Kind::{kind}, to_lower: {to_lower}, casing: Casing::{} }}", casing(character))
}

fn is_assigned(character: char) -> bool {
    character.general_category() != GeneralCategory::Unassigned
}

/// The lower case of one character. İ is excluded, because its lower case is two characters; `fold.rs`
/// handles it.
fn lower(character: char) -> char {
    let mut lower = character.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) if is_assigned(lower) => lower,
        (Some(lower), Some('\u{307}')) if character == 'İ' => lower,
        (_, None) => character,
        _ => panic!("{character:?} has a lower case of several characters, and only İ is known to"),
    }
}

/// The effect of a character on a neighbouring Σ, derived from std's lower-casing.
fn casing(character: char) -> &'static str {
    let ends_word = |text: String| text.to_lowercase().ends_with('ς');
    match (ends_word(format!("{character}Σ")), ends_word(format!("A{character}Σ"))) {
        (true, _) => "Cased",
        (false, true) => "Ignorable",
        (false, false) => "Other",
    }
}

/// Stores all names in byte order as one text, with the start of each name. A table of `&str` would have to
/// be relocated each time a program starts.
fn names() -> String {
    let mut names: Vec<_> = ENTITIES
        .iter()
        .filter_map(|entity| {
            let name = entity.entity.strip_prefix('&')?.strip_suffix(';')?;
            Some((name, &entity.codepoints))
        })
        .collect();
    names.sort_by_key(|&(name, _)| name);
    let (mut text, mut table) = (String::new(), String::new());
    for (name, codepoints) in &names {
        let (first, second) = match **codepoints {
            Codepoints::Single(first) => (first, None),
            Codepoints::Double(first, second) => (first, char::from_u32(second)),
        };
        let first = char::from_u32(first).expect("the HTML standard names characters only");
        let (start, length) = (text.len(), name.len());
        table +=
            &format!("Name {{ start: {start}, length: {length}, first: {first:?}, second: {second:?} }},\n");
        text += name;
    }
    let longest = names.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    format!(
        "const LONGEST_NAME: usize = {longest};\n\
         static NAMES_TEXT: &str = {text:?};\n\
         static NAMES: [Name; {}] = [\n{table}];\n",
        names.len()
    )
}
