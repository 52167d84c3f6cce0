//! A review's text → its cleaned text: lower-case words of letters, marks and inner apostrophes, one space between.
//!
//! Five steps, in this order:
//!
//! 1. HTML character references that end in `;` are decoded once; an unknown name stays.
//! 2. Tags, `<[A-Za-z/!][^<>]*>`, become a space.
//! 3. `’` becomes `'`; the text is lower-cased, a final sigma by its context.
//! 4. Letters and `'` stay; a mark stays directly behind a letter or a mark that stays; all else becomes a space.
//! 5. `'` is stripped from both ends of each word; empty words vanish; one space joins the others.
//!
//! Time is linear in the text, whatever it holds. Unicode is 17.0, whatever the toolchain has. Nothing is normalised:
//! `é` and `e` with an accent behind it stay two spellings.

mod fold;
mod masks;
mod references;
mod tags;
mod words;

use memchr::memchr2;

/// Goes up when the same text would be cleaned to another.
pub const CLEANING_VERSION: u32 = 1;

/// Says what a letter, a mark and lower case is.
pub const UNICODE_VERSION: &str = "17.0.0";

/// Cleans texts, one after the other, and keeps its buffers between them.
///
/// ```
/// let mut cleaned = Vec::new();
/// let anything_left = corpus::clean::Cleaner::default()
///     .clean("<b>Don’t</b> buy: 'well-made' &amp; CHEAP, 10/10 :)", &mut cleaned);
/// assert!(anything_left);
/// assert_eq!(cleaned, b"don't buy well made cheap");
/// ```
#[derive(Debug, Default)]
pub struct Cleaner {
    decoded: String,
    untagged: String,
    folded: String,
    spaced: Vec<u8>,
}

impl Cleaner {
    /// Appends the cleaned `text` to `out`, in UTF-8; false where nothing is left of it.
    pub fn clean(&mut self, text: &str, out: &mut Vec<u8>) -> bool {
        let mut text = text;
        if memchr2(b'&', b'<', text.as_bytes()).is_some() {
            text = references::decode(text, &mut self.decoded);
            text = tags::blank(text, &mut self.untagged);
        }
        if !text.is_ascii() {
            text = fold::fold(text, &mut self.folded);
        }
        words::join(text.as_bytes(), &mut self.spaced, out)
    }

    /// Whether this is one word of a cleaned text: cleaning it changes nothing. A list of words may come from anywhere.
    pub fn is_word(&mut self, word: &[u8]) -> bool {
        if word.iter().all(u8::is_ascii_lowercase) {
            return !word.is_empty();
        }
        let Ok(text) = str::from_utf8(word) else { return false };
        let mut cleaned = Vec::with_capacity(word.len());
        self.clean(text, &mut cleaned) && cleaned == word && !word.contains(&b' ')
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clean(text: &str) -> String {
        let mut cleaned = Vec::new();
        let anything_left = Cleaner::default().clean(text, &mut cleaned);
        assert_eq!(anything_left, !cleaned.is_empty());
        String::from_utf8(cleaned).unwrap()
    }

    #[test]
    fn references_are_decoded_once() {
        assert_eq!(clean("caf&eacute; &#67;af&#xE9; &#X43;af&#233;"), "café café café");
        assert_eq!(clean("&amp;eacute;"), "eacute");
        assert_eq!(clean("don&#146;t don&#x92;t don&rsquo;t don&apos;t"), "don't don't don't don't");
        assert_eq!(clean("&fjlig;ord"), "fjord");
    }

    #[test]
    fn what_only_looks_like_a_reference_stays() {
        assert_eq!(clean("a&nbsp b&foo;c &;d &#;e &#x;f &#xg;"), "a nbsp b foo c d e x f xg");
        assert_eq!(clean("&EACUTE; &notit; &#65"), "eacute notit");
    }

    #[test]
    fn numbers_of_references_are_read_as_html_reads_them() {
        let zeros = "0".repeat(1_000_000);
        assert_eq!(clean(&format!("a&#{zeros}98;c&#x{zeros}64;e")), "abcde");
        assert_eq!(clean("a&#0;b&#xD800;c&#x110000;d&#99999999999999999999;e&#x81;f"), "a b c d e f");
        assert_eq!(clean("&#138;koda &#x9F;"), "škoda ÿ");
    }

    #[test]
    fn tags_become_a_space_even_when_written_as_references() {
        assert_eq!(clean("one<br />two<BR\nclass='x'>three</p><!-- no -->four"), "one two three four");
        assert_eq!(clean("bold &lt;b&gt;move&lt;/b&gt;"), "bold move");
        assert_eq!(clean("I <3 it, a < b > c, <a <i>nested</i>"), "i it a b c a nested");
    }

    #[test]
    fn sigma_is_final_at_the_end_of_its_word() {
        assert_eq!(clean("ΟΔΟΣ ΟΔΟΣ’ ΣΑΣΑ Σ"), "οδος οδος σασα σ");
        // The full stop counts as absent, so the first sigma is inside a word when case is decided.
        assert_eq!(clean("ΑΣ.Α ΑΣ,Α"), "ασ α ας α");
    }

    #[test]
    fn lower_case_is_that_of_unicode() {
        assert_eq!(clean("İSTANBUL STRAẞE ǅ K Å"), "i\u{307}stanbul straße ǆ k å");
    }

    #[test]
    fn marks_stay_behind_letters_only() {
        assert_eq!(clean("e\u{301}\u{302}a \u{301}b c'\u{301}d 1\u{301}e"), "e\u{301}\u{302}a b c d e");
        // A heart's variation selector goes with the heart; behind a letter it is a mark like others.
        assert_eq!(clean("love❤\u{fe0f}it a\u{fe0f}b"), "love it a\u{fe0f}b");
        assert_eq!(clean("हिन्दी 한국어 日本語"), "हिन्दी 한국어 日本語");
    }

    #[test]
    fn apostrophes_stay_inside_words_only() {
        assert_eq!(clean("'tis the dogs' 'bone' rock'n'roll '' ' '''"), "tis the dogs bone rock'n'roll");
        assert_eq!(clean("a''b ''c'' d'''"), "a''b c d");
    }

    #[test]
    fn nothing_may_be_left() {
        for text in ["", " ", "10/10 !!! 👨\u{200d}👩", "'", "<br>", "&nbsp;", "\0"] {
            assert_eq!(clean(text), "");
        }
    }

    #[test]
    fn runs_may_be_longer_than_a_block() {
        for length in [62, 63, 64, 65, 127, 128, 129, 1000] {
            let (letters, apostrophes) = ("x".repeat(length), "'".repeat(length));
            assert_eq!(
                clean(&format!("{letters}{apostrophes}{letters}")),
                format!("{letters}{apostrophes}{letters}")
            );
            assert_eq!(clean(&format!("{letters}{apostrophes} {letters}")), format!("{letters} {letters}"));
            assert_eq!(
                clean(&format!("{letters}{}{letters}", " ".repeat(length))),
                format!("{letters} {letters}")
            );
        }
    }

    #[test]
    fn cleaned_text_is_appended() {
        let mut out = b"before:".to_vec();
        let mut cleaner = Cleaner::default();
        assert!(cleaner.clean("Fine", &mut out));
        assert!(!cleaner.clean("!", &mut out));
        assert_eq!(out, b"before:fine");
    }

    #[test]
    fn a_word_is_what_cleaning_leaves_as_it_is() {
        let is_word = |word: &str| Cleaner::default().is_word(word.as_bytes());
        for word in ["a", "don't", "a''b", "größe", "i\u{307}stanbul", "οδος", "हिन्दी", "日本語", "ǆ"]
        {
            assert!(is_word(word), "{word}");
        }
        for other in [
            "",
            " ",
            "a b",
            "a ",
            "Good",
            "GRÖSSE",
            "a1",
            "a\nb",
            "a\tb",
            "a\0b",
            "\u{1b}[2J",
            "'a",
            "a'",
            "a’b",
            "a-b",
            "&amp;",
            "\u{301}a",
            "a\u{202e}b",
            "a\u{fffd}",
            "İ",
            "a\u{a0}b",
        ] {
            assert!(!is_word(other), "{other:?}");
        }
        assert!(!Cleaner::default().is_word(b"caf\xe9"));
    }

    proptest! {
        #[test]
        fn every_word_of_a_cleaned_text_is_one(text in any::<String>(), greek in "[ΑΣας.' ΣİA-Z\u{300}-\u{303}]{0,12}") {
            let mut cleaner = Cleaner::default();
            for word in clean(&format!("{text} {greek}")).split_whitespace() {
                prop_assert!(cleaner.is_word(word.as_bytes()), "{:?}", word);
            }
        }
    }
}
