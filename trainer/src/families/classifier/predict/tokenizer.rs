//! Converts a text into the ids that a row of the model's dataset would have.
//!
//! Combines the steps of mapper, reducer and merge: cleans the text, removes stop words, keeps words according to the
//! settings, and numbers them by the vocabulary. Then it truncates the row to the model's maximum.

use std::collections::HashMap;

use corpus::clean::{Cleaner, UNICODE_VERSION};
use corpus::ledger::NoReview;
use corpus::settings::Settings;
use dataset::WordList;
use dataset::vocabulary::{FIRST_WORD, UNKNOWN};
use program::exit::{Exit, Failed};
use training::answers::explain::Reading;
use training::answers::{AnswersError, Refusal};

/// Tokenizes texts and reuses its memory between them.
pub struct Tokenizer {
    settings: Settings,
    tokens_max: usize,
    words: HashMap<Vec<u8>, Word>,
    cleaner: Cleaner,
    cleaned: Vec<u8>,
    ids: Vec<u32>,
}

/// The meaning of a word.
#[derive(Clone, Copy)]
enum Word {
    Stop,
    Id(u32),
}

impl Tokenizer {
    /// A tokenizer for the settings and vocabulary of a dataset. Returns the first `tokens_max` tokens of each text,
    /// or all if it is 0. Settings with other cleaning rules than this program's are an error.
    pub fn new(settings: &Settings, vocabulary: &WordList, tokens_max: u32) -> Result<Self, AnswersError> {
        check_cleaning(settings)?;
        let ids = vocabulary.iter().zip(FIRST_WORD..).map(|(word, id)| (word.to_vec(), Word::Id(id)));
        // Stop words are inserted last, because a vocabulary of another dataset may contain words that are
        // stop words here.
        let stop_words = settings.stop_words.iter().map(|word| (word.clone().into_bytes(), Word::Stop));
        Ok(Self {
            words: ids.chain(stop_words).collect(),
            settings: settings.clone(),
            tokens_max: if tokens_max == 0 { usize::MAX } else { tokens_max as usize },
            cleaner: settings.cleaner(),
            cleaned: Vec::new(),
            ids: Vec::new(),
        })
    }

    /// The ids of a text of which the model knows a word, or the reason why there are none.
    pub fn ids(&mut self, text: &str) -> Result<&[u32], Refusal> {
        let ids = self.row(text)?;
        if ids.iter().all(|&id| id == UNKNOWN) {
            return Err(Refusal::OnlyUnknown);
        }
        Ok(&self.ids)
    }

    /// The ids of a text, as in a dataset, or the reason why there are none.
    pub fn row(&mut self, text: &str) -> Result<&[u32], Refusal> {
        self.cleaned.clear();
        if !self.cleaner.clean(text, &mut self.cleaned) {
            return Err(Refusal::Line(NoReview::EmptyText));
        }
        self.ids.clear();
        for word in self.cleaned.split(|&byte| byte == b' ') {
            match self.words.get(word) {
                Some(Word::Stop) => {}
                Some(&Word::Id(id)) => self.ids.push(id),
                None => self.ids.push(UNKNOWN),
            }
        }
        if self.ids.is_empty() {
            return Err(Refusal::OnlyStopwords);
        }
        self.keep();
        Ok(&self.ids)
    }

    /// The words of the cleaned text, and how the model reads them, or the reason why it reads none.
    pub(crate) fn words(&mut self, text: &str) -> Result<Vec<(String, Reading)>, Refusal> {
        self.ids(text)?;
        let mut words: Vec<(String, Reading)> = Vec::new();
        // The indices of words that are not stop words.
        let mut rest = Vec::new();
        for word in self.cleaned.split(|&byte| byte == b' ') {
            let reading = match self.words.get(word) {
                Some(Word::Stop) => Reading::Stop,
                Some(&Word::Id(id)) => Reading::Id(id),
                None => Reading::Unknown,
            };
            if reading != Reading::Stop {
                rest.push(words.len());
            }
            words.push((String::from_utf8_lossy(word).into_owned(), reading));
        }
        let (front, back) = self.settings.kept(&rest);
        let cut = rest[front.len()..rest.len() - back.len()].iter();
        let behind = front.iter().chain(back).skip(self.tokens_max);
        for &at in cut.chain(behind) {
            words[at].1 = Reading::Cut;
        }
        Ok(words)
    }

    /// Keeps only the ids that the settings keep and the model reads.
    fn keep(&mut self) {
        let (front, back) = self.settings.kept(&self.ids);
        let (n_front, n_back) = (front.len(), back.len());
        let n_between = self.ids.len() - n_front - n_back;
        self.ids.drain(n_front..n_front + n_between);
        self.ids.truncate(self.tokens_max);
    }
}

fn check_cleaning(settings: &Settings) -> Result<(), AnswersError> {
    if settings.rules().is_some() {
        return Ok(());
    }
    let (what, found, expected) = match settings.unicode_version == UNICODE_VERSION {
        true => ("cleaning version", settings.cleaning_version.to_string(), "1 or 2"),
        false => ("Unicode version", settings.unicode_version.clone(), UNICODE_VERSION),
    };
    let remedy = "predict with the sentimill that saved it";
    let message = format!("the model's {what} is {found}, expected {expected}; {remedy}");
    Err(Failed::new(Exit::Settings, message).into())
}

#[cfg(test)]
mod tests {
    use corpus::settings::Keep;
    use program::exit::Fails;

    use super::*;

    fn tokenizer(settings: &Settings, tokens_max: u32) -> Tokenizer {
        let mut vocabulary = WordList::default();
        ["good", "bad", "fit", "not", "the"].iter().for_each(|word| vocabulary.push(word.as_bytes()));
        Tokenizer::new(settings, &vocabulary, tokens_max).unwrap()
    }

    fn settings(max_tokens: u32, keep: Keep) -> Settings {
        Settings { stop_words: vec!["the".to_owned()], max_tokens, keep, ..Settings::default() }
    }

    #[test]
    fn words_are_numbered_from_two_and_unknown_ones_are_one() {
        let mut tokenizer = tokenizer(&settings(0, Keep::First), 0);
        assert_eq!(tokenizer.ids("<b>GOOD</b> &amp; the well-made fit!"), Ok(&[2, 1, 1, 4][..]));
    }

    #[test]
    fn punctuation_is_read_by_models_of_its_datasets() {
        let mut vocabulary = WordList::default();
        ["!", "10", "good"].iter().for_each(|word| vocabulary.push(word.as_bytes()));
        let of = |cleaning_version| {
            let settings = Settings { cleaning_version, ..Settings::default() };
            Tokenizer::new(&settings, &vocabulary, 0).unwrap().ids("GOOD! 10/10").map(<[u32]>::to_vec)
        };
        assert_eq!((of(1), of(2)), (Ok(vec![4]), Ok(vec![4, 2, 3, 1, 3])));
    }

    #[test]
    fn a_stop_word_is_left_out_though_the_vocabulary_has_it() {
        assert_eq!(tokenizer(&settings(0, Keep::First), 0).ids("the good the"), Ok(&[2][..]));
    }

    #[test]
    fn the_model_reads_the_first_of_the_kept_words() {
        let text = "good bad the fit not good bad";
        let read = |max_tokens, keep, tokens_max| {
            tokenizer(&settings(max_tokens, keep), tokens_max).ids(text).unwrap().to_vec()
        };
        assert_eq!(read(0, Keep::First, 0), [2, 3, 4, 5, 2, 3]);
        assert_eq!(read(4, Keep::First, 0), [2, 3, 4, 5]);
        assert_eq!(read(4, Keep::Last, 0), [4, 5, 2, 3]);
        assert_eq!(read(3, Keep::Ends, 0), [2, 3, 3]);
        assert_eq!(read(3, Keep::Ends, 2), [2, 3]);
        assert_eq!(read(4, Keep::Last, 9), [4, 5, 2, 3]);
    }

    #[test]
    fn words_that_are_read_have_the_ids_of_the_row() {
        let text = "good superb the fit not good bad";
        for (max_tokens, keep, tokens_max) in [
            (0, Keep::First, 0),
            (4, Keep::Last, 0),
            (3, Keep::Ends, 0),
            (3, Keep::Ends, 2),
            (2, Keep::First, 9),
        ] {
            let mut tokenizer = tokenizer(&settings(max_tokens, keep), tokens_max);
            let words = tokenizer.words(text).unwrap();
            let read: Vec<u32> = words.iter().filter_map(|(_, reading)| reading.id()).collect();
            assert_eq!(Ok(&read[..]), tokenizer.ids(text), "{max_tokens} {keep:?} {tokens_max}");
            assert_eq!((words[2].0.as_str(), words[2].1), ("the", Reading::Stop));
        }
        let mut tokenizer = tokenizer(&settings(3, Keep::Ends), 2);
        let found: Vec<Reading> = tokenizer.words(text).unwrap().into_iter().map(|word| word.1).collect();
        let [cut, stop] = [Reading::Cut, Reading::Stop];
        assert_eq!(found, [Reading::Id(2), Reading::Unknown, stop, cut, cut, cut, cut]);
    }

    #[test]
    fn a_text_with_nothing_to_read_is_refused_by_its_reason() {
        let mut tokenizer = tokenizer(&settings(2, Keep::First), 1);
        assert_eq!(tokenizer.ids(""), Err(Refusal::Line(NoReview::EmptyText)));
        assert_eq!(tokenizer.ids("10/10 :)"), Err(Refusal::Line(NoReview::EmptyText)));
        assert_eq!(tokenizer.ids("The the"), Err(Refusal::OnlyStopwords));
        assert_eq!(tokenizer.ids("superb"), Err(Refusal::OnlyUnknown));
        assert_eq!(tokenizer.ids("superb fit"), Err(Refusal::OnlyUnknown), "a word that is not read");
        assert_eq!(tokenizer.ids("fit superb"), Ok(&[4][..]));
    }

    #[test]
    fn other_rules_of_cleaning_are_refused() {
        let refused = |settings: &Settings| Tokenizer::new(settings, &WordList::default(), 0).err().unwrap();
        let error = refused(&Settings { cleaning_version: 7, ..Settings::default() });
        assert_eq!(
            error.to_string(),
            "the model's cleaning version is 7, expected 1 or 2; predict with the sentimill that saved it"
        );
        assert_eq!(error.exit() as u8, 78);
        let error = refused(&Settings { unicode_version: "16.0.0".to_owned(), ..Settings::default() });
        assert!(error.to_string().starts_with("the model's Unicode version is 16.0.0, expected 17.0.0; "));
    }
}
