//! Cleans the text of a review. Cleaned text is lower-case words of letters, marks and inner apostrophes,
//! separated by single spaces. [`Rules::Punctuation`] also keeps numbers, punctuation and symbols.
//!
//! Five steps, in this order:
//!
//! 1. HTML character references that end in `;` are decoded once. Unknown names stay as they are.
//! 2. Each tag, `<[A-Za-z/!][^<>]*>`, becomes a space.
//! 3. `’` becomes `'`, and the text is lower-cased. A sigma is final or not by its context.
//! 4. Letters and `'` stay. A mark stays directly after a letter or after a mark that stays. Every other
//!    character becomes a space. With [`Rules::Punctuation`], numbers are as letters, and each character of
//!    punctuation and each symbol, except `'`, is a word by itself.
//! 5. `'` is stripped from both ends of each word, empty words are dropped, and words are joined by one
//!    space.
//!
//! Run time is linear in the length of every text. The Unicode version is 17.0, whatever the toolchain has.
//! Text is not normalised: `é` and `e` followed by a combining accent stay two spellings.

mod fold;
mod masks;
mod references;
mod tags;
mod words;

use memchr::memchr2;

/// The rules of cleaning. Their version changes when the result for any text changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Words of letters.
    #[default]
    Letters,
    /// Words of letters and numbers. Punctuation and symbols are words by themselves.
    Punctuation,
}

impl Rules {
    /// All rules.
    pub const ALL: [Self; 2] = [Self::Letters, Self::Punctuation];

    /// The rules of this flag.
    pub fn of_flag(is_punctuation: bool) -> Self {
        if is_punctuation { Self::Punctuation } else { Self::Letters }
    }

    /// The cleaning version of datasets and models.
    pub fn version(self) -> u32 {
        match self {
            Self::Letters => 1,
            Self::Punctuation => 2,
        }
    }
}

/// Version of Unicode that defines letters, marks and lower case.
pub const UNICODE_VERSION: &str = "17.0.0";

/// Cleans texts one by one and reuses its buffers.
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
    rules: Rules,
    decoded: String,
    untagged: String,
    folded: String,
    spaced: Vec<u8>,
}

impl Cleaner {
    /// Creates a cleaner with these rules.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Appends the cleaned `text` to `out` in UTF-8. Returns false if the cleaned text is empty.
    pub fn clean(&mut self, text: &str, out: &mut Vec<u8>) -> bool {
        let mut text = text;
        if memchr2(b'&', b'<', text.as_bytes()).is_some() {
            text = references::decode(text, &mut self.decoded);
            text = tags::blank(text, &mut self.untagged);
        }
        if !text.is_ascii() {
            text = fold::fold(self.rules, text, &mut self.folded);
        }
        words::join(self.rules, text.as_bytes(), &mut self.spaced, out)
    }

    /// Whether `word` is one word of a cleaned text, that is, whether cleaning leaves it unchanged. `word`
    /// may be any bytes.
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
    fn incomplete_or_unknown_references_are_kept() {
        assert_eq!(clean("a&nbsp b&foo;c &;d &#;e &#x;f &#xg;"), "a nbsp b foo c d e x f xg");
        assert_eq!(clean("&EACUTE; &notit; &#65"), "eacute notit");
    }

    #[test]
    fn numeric_references_follow_the_html_standard() {
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
        // The full stop is ignorable, so the first sigma is inside a word when its form is decided.
        assert_eq!(clean("ΑΣ.Α ΑΣ,Α"), "ασ α ας α");
    }

    #[test]
    fn lower_case_is_that_of_unicode() {
        assert_eq!(clean("İSTANBUL STRAẞE ǅ K Å"), "i\u{307}stanbul straße ǆ k å");
    }

    #[test]
    fn marks_are_kept_only_after_letters() {
        assert_eq!(clean("e\u{301}\u{302}a \u{301}b c'\u{301}d 1\u{301}e"), "e\u{301}\u{302}a b c d e");
        // The variation selector of a heart is dropped with the heart. After a letter it is kept, as any
        // other mark.
        assert_eq!(clean("love❤\u{fe0f}it a\u{fe0f}b"), "love it a\u{fe0f}b");
        assert_eq!(clean("हिन्दी 한국어 日本語"), "हिन्दी 한국어 日本語");
    }

    #[test]
    fn apostrophes_are_kept_only_inside_words() {
        assert_eq!(clean("'tis the dogs' 'bone' rock'n'roll '' ' '''"), "tis the dogs bone rock'n'roll");
        assert_eq!(clean("a''b ''c'' d'''"), "a''b c d");
    }

    #[test]
    fn punctuation_is_kept_as_words() {
        let mut cleaned = Vec::new();
        let text = "It's <b>GREAT</b>!! 10/10 \u{2764}\u{fe0f} &quot;'tis&quot; caf\u{e9}\u{2026} \u{20ac}5";
        assert!(Cleaner::new(Rules::Punctuation).clean(text, &mut cleaned));
        let expected = "it's great ! ! 10 / 10 \u{2764} \" tis \" caf\u{e9} \u{2026} \u{20ac} 5";
        assert_eq!(String::from_utf8(cleaned).unwrap(), expected);
        assert!(!Cleaner::new(Rules::Punctuation).clean(" ' \u{a0}\0", &mut Vec::new()));
    }

    #[test]
    fn text_without_letters_becomes_empty() {
        for text in ["", " ", "10/10 !!! 👨\u{200d}👩", "'", "<br>", "&nbsp;", "\0"] {
            assert_eq!(clean(text), "");
        }
    }

    #[test]
    fn runs_longer_than_a_block_are_cleaned() {
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
    fn cleaned_text_is_appended_to_the_output() {
        let mut out = b"before:".to_vec();
        let mut cleaner = Cleaner::default();
        assert!(cleaner.clean("Fine", &mut out));
        assert!(!cleaner.clean("!", &mut out));
        assert_eq!(out, b"before:fine");
    }

    #[test]
    fn a_word_is_text_that_cleaning_does_not_change() {
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
        fn every_word_of_a_cleaned_text_is_accepted_as_a_word(text in any::<String>(), greek in "[ΑΣας.' ΣİA-Z\u{300}-\u{303}]{0,12}") {
            for rules in Rules::ALL {
                let (mut cleaner, mut cleaned) = (Cleaner::new(rules), Vec::new());
                cleaner.clean(&format!("{text} {greek}"), &mut cleaned);
                for word in cleaned.split(|&byte| byte == b' ').filter(|word| !word.is_empty()) {
                    prop_assert!(cleaner.is_word(word), "{:?}", String::from_utf8_lossy(word));
                }
            }
        }
    }
}
