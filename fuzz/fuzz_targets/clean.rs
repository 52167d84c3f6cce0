//! Cleaning of texts with references and tags: the result must equal that of the rules applied one by one, and have all
//! properties of a cleaned text.
#![no_main]

use corpus::clean::{Cleaner, Rules};
use libfuzzer_sys::fuzz_target;
use oracle::clean::naive;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

#[path = "../../crates/corpus/src/clean/masks.rs"]
mod masks;

use masks::{BLOCK, Masks, by_words};

fuzz_target!(|data: &[u8]| {
    let text = &String::from_utf8_lossy(data);
    for rules in Rules::ALL {
        let mut cleaner = Cleaner::new(rules);
        let cleaned = clean(&mut cleaner, text);
        assert_eq!(cleaned, naive(text, rules == Rules::Punctuation), "{text:?}");
        if rules == Rules::Letters {
            check_alphabet(&cleaned);
        }
        assert_eq!(clean(&mut cleaner, &cleaned), cleaned, "cleaned twice");
        assert_eq!(clean(&mut cleaner, text), cleaned, "by a cleaner that was used before");
        for block in cleaned.as_bytes().windows(BLOCK) {
            assert_eq!(Masks::of(block), by_words(block), "{block:?}");
        }
    }
});

fn clean(cleaner: &mut Cleaner, text: &str) -> String {
    let mut out = b"before".to_vec();
    let anything_left = cleaner.clean(text, &mut out);
    let cleaned = out.strip_prefix(b"before").expect("cleaned text is appended").to_vec();
    assert_eq!(anything_left, !cleaned.is_empty());
    String::from_utf8(cleaned).expect("cleaned text is UTF-8")
}

/// Checks for words of letters, marks after letters and inner apostrophes, joined by one space.
fn check_alphabet(cleaned: &str) {
    let mut before = ' ';
    for character in cleaned.chars().chain([' ']).take_while(|_| !cleaned.is_empty()) {
        let is_word = |of: char| !matches!(of, ' ' | '\'');
        let stands_well = match character {
            ' ' => is_word(before),
            '\'' => before != ' ',
            _ => match character.general_category_group() {
                GeneralCategoryGroup::Letter => true,
                GeneralCategoryGroup::Mark => is_word(before),
                _ => false,
            },
        };
        assert!(stands_well, "{character:?} behind {before:?} in {cleaned:?}");
        before = character;
    }
}
