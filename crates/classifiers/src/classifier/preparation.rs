//! The text of a line as an n-gram model reads it.

use corpus::clean::Cleaner;

use crate::words::Words;

/// Prepares texts for a model.
#[derive(Debug, Default)]
pub struct Preparation {
    /// For models of cleaned texts.
    cleaner: Option<Cleaner>,
    cleaned: Vec<u8>,
}

impl Preparation {
    /// For a model that splits texts into these words.
    pub fn of(words: Words) -> Self {
        Self { cleaner: words.rules().map(Cleaner::new), cleaned: Vec::new() }
    }

    /// The text that the model reads; `None` if cleaning leaves nothing of it.
    pub fn text<'a>(&'a mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        let Self { cleaner: Some(cleaner), cleaned } = self else { return Some(text) };
        cleaned.clear();
        cleaner.clean(&String::from_utf8_lossy(text), cleaned).then_some(&cleaned[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaned_texts_have_the_words_of_a_dataset() {
        let mut preparation = Preparation::of(Words::Cleaned);
        assert_eq!(preparation.text(b"It's <b>GOOD</b>, 7 of 10"), Some(&b"it's good of"[..]));
        assert_eq!(preparation.text(b"7!"), None);
        let mut preparation = Preparation::of(Words::CleanedPunctuation);
        assert_eq!(preparation.text(b"<b>GOOD</b>, 7/10"), Some(&b"good , 7 / 10"[..]));
        assert_eq!(Preparation::of(Words::Spaces).text(b"7!"), Some(&b"7!"[..]));
    }
}
