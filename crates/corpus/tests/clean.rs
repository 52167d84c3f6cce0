//! Compares cleaning with a naive implementation of its rules.

use corpus::clean::{Cleaner, Rules};
use oracle::clean::{characters, is_unassigned, naive};
use proptest::prelude::*;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

fn is_private(character: char) -> bool {
    character.general_category() == GeneralCategory::PrivateUse
}

fn clean(rules: Rules, text: &str) -> String {
    let mut cleaned = Vec::new();
    Cleaner::new(rules).clean(text, &mut cleaned);
    String::from_utf8(cleaned).expect("cleaned text is UTF-8")
}

/// Checks a text by all rules.
fn check(text: &str) {
    for rules in Rules::ALL {
        assert_eq!(clean(rules, text), naive(text, rules == Rules::Punctuation), "of {text:?}, {rules:?}");
    }
}

/// Pieces that exercise the edges of the rules, separated by `|`.
const PIECES: &str = "a|B|well|Don't|x y|dogs'|'tis|'|''|’|’’|'’|é|É|İ|ẞ|ǅ|ß|ſ|K|ŉ|Σ|σ|ς|ΑΣ|Σ'|.Σ|Σ\u{301}|Ⅷ|Ⓐ|ª|ʰ\
    |\u{301}|\u{345}|\u{fe0f}|\u{20dd}|a\u{301}|'\u{301}| \u{301}|\u{e0100}|हि|한|日本|ا\u{64b}|𐐀|𝒜|👨\u{200d}👩|❤\u{fe0f}|\u{ad}\
    | |  |\t|\n|\u{a0}|\u{3000}|\0|\u{7f}|\u{378}|\u{e000}|\u{fffd}|\u{10ffff}|1|_|-|:|·|;|&|&&|&;|&#|&#;|&#x;|#|x41;\
    |&amp;|&lt;|&gt;|&apos;|&rsquo;|&semi;|&nbsp;|&nbsp|&notit;|&not;|&NotEqualTilde;|&fjlig;|&EACUTE;|&foo;|amp;|lt;\
    |&#39;|&#60;|&#62;|&#38;|&#59;|&#931;|&#x3a3;|&#X130;|&#769;|&#146;|&#x81;|&#0;|&#xd800;|&#x110000;|&#4294967361;\
    |&#00000000000000000000065;|&CounterClockwiseContourIntegral;|&CounterClockwiseContourIntegrals;\
    |<|<<|>|/|!|<3|<a|<a>|<<a>|</|</b>|<!|<!-- x -->|<b class='y'>|<b\n>|<é>|< a>|<a<b>|<br />\
    |more letters and spaces than one block can hold, so that a second begins";

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cleaning_follows_the_rules(pieces in prop::collection::vec(piece(), 0..120)) {
        check(&pieces.concat());
    }

    #[test]
    fn a_reused_cleaner_gives_the_same_texts(
        rules in prop::sample::select(&Rules::ALL[..]),
        texts in prop::collection::vec(prop::collection::vec(piece(), 0..12), 0..12),
    ) {
        let mut cleaner = Cleaner::new(rules);
        let mut out = Vec::new();
        for text in texts {
            let (text, start) = (text.concat(), out.len());
            let anything_left = cleaner.clean(&text, &mut out);
            prop_assert_eq!(String::from_utf8_lossy(&out[start..]), clean(rules, &text));
            prop_assert_eq!(anything_left, out.len() > start);
        }
    }
}

fn piece() -> impl Strategy<Value = String> {
    let pieces: Vec<&str> = PIECES.split('|').collect();
    prop_oneof![
        8 => prop::sample::select(pieces).prop_map(str::to_owned),
        2 => "[a-zA-Z' ]{0,9}",
        1 => any::<char>().prop_map(String::from),
        1 => any::<char>().prop_map(|character| format!("&#{};", character as u32)),
        1 => any::<u32>().prop_map(|code| format!("&#x{code:x};")),
    ]
}

#[test]
fn every_character_follows_the_rules() {
    for character in characters().filter(|&character| !is_unassigned(character) && !is_private(character)) {
        // Alone, after a letter, and on both sides of a sigma, where the character affects whether the sigma
        // is final.
        check(&format!(
            "{character} a{character} aΣ{character}b a{character}Σ {character}Σ 1{character}\u{301}"
        ));
    }
}

#[test]
fn unassigned_and_private_code_points_become_spaces() {
    for character in characters().filter(|&character| is_unassigned(character) || is_private(character)) {
        for rules in Rules::ALL {
            assert_eq!(clean(rules, &format!("{character} aΣ{character}b")), "aς b", "of {character:?}");
        }
    }
}

#[test]
fn every_html_name_is_known() {
    let names = entities::ENTITIES.iter().filter(|entity| entity.entity.ends_with(';'));
    let mut n_names = 0;
    for entity in names {
        let text = format!("a{}b", entity.entity);
        check(&text);
        let decoded = format!("a{}b", entity.characters);
        assert_eq!(clean(Rules::Letters, &text), naive(&decoded, false), "of {text:?}");
        n_names += 1;
    }
    assert_eq!(n_names, 2125);
}

/// A step that scans its input repeatedly would take hours.
#[test]
fn hostile_texts_take_linear_time() {
    let pieces = "&|&a|&#1|&#x|&amp|&amp;|&lt;a|<|<a|<a<|</|'|a'|' |''a| |Σ|Σ'|'Σ|\u{301}|aΣ\u{301}|İ";
    for piece in pieces.split('|') {
        let text = piece.repeat((1 << 18) / piece.len());
        for rules in Rules::ALL {
            clean(rules, &text);
            clean(rules, &format!("a&#{text}"));
            clean(rules, &format!("a<b {text}"));
            clean(rules, &format!("aΣ{text}a"));
        }
    }
}

#[test]
fn cleaning_of_every_character_matches_its_version() {
    // The digests must not depend on the toolchain's Unicode version. A change of a digest requires a new version.
    for (rules, version, expected) in [
        (Rules::Letters, 1, "a495e426480b482a0e70f6bf5fac7fb9"),
        (Rules::Punctuation, 2, "e60548654f61cfa8949a93e8dacc3c1f"),
    ] {
        let mut cleaner = Cleaner::new(rules);
        let mut cleaned = Vec::new();
        for character in '\0'..=char::MAX {
            let text = format!("a{character}Σ {character}B Σ{character}Σ &{character}; <{character}>");
            cleaner.clean(&text, &mut cleaned);
            cleaned.push(b'\n');
        }
        let digest = corpus::digest::Digest::of(&cleaned).to_string();
        assert_eq!((rules.version(), &digest[..]), (version, expected));
    }
}
