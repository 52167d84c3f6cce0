//! The text of a line as an n-gram model reads it.

use classifiers::Words;
use corpus::clean::Cleaner;
use corpus::ledger::NoReview;

use training::answers::Refusal;

/// Prepares texts for a model.
#[derive(Default)]
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

    /// The text that the model reads.
    pub fn text<'a>(&'a mut self, text: &'a [u8]) -> Result<&'a [u8], Refusal> {
        let Self { cleaner: Some(cleaner), cleaned } = self else { return Ok(text) };
        cleaned.clear();
        match cleaner.clean(&String::from_utf8_lossy(text), cleaned) {
            true => Ok(cleaned),
            false => Err(Refusal::Line(NoReview::EmptyText)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaned_texts_have_the_words_of_a_dataset() {
        let mut preparation = Preparation::of(Words::Cleaned);
        assert_eq!(preparation.text(b"It's <b>GOOD</b>, 7 of 10"), Ok(&b"it's good of"[..]));
        assert_eq!(preparation.text(b"7!"), Err(Refusal::Line(NoReview::EmptyText)));
        let mut preparation = Preparation::of(Words::CleanedPunctuation);
        assert_eq!(preparation.text(b"<b>GOOD</b>, 7/10"), Ok(&b"good , 7 / 10"[..]));
        assert_eq!(Preparation::of(Words::Spaces).text(b"7!"), Ok(&b"7!"[..]));
    }
}
