//! Files in a model's folder for use by other programs.
//!
//! ```text
//! tokenizer.json   for Hugging Face's `tokenizers`: maps words to ids
//! predict.py       cleans texts, and scores them with NumPy
//! ```
//!
//! `tokenizer.json` does not clean texts: its input is the text of a record of the mapper, before the tab. It does not
//! remove stop words, and truncates only if the model reads the first words of a text. `predict.py` has the results of
//! `trainer predict`. Its LSTM is that of the Python package. Its parts for n-grams and for the cleaning are also those of
//! the n-gram models' `predict.py`.

use corpus::settings::Keep;
use dataset::WordList;
use dataset::vocabulary::{FIRST_WORD, PADDING, UNKNOWN};
use serde_json::{Map, Value, json};

use super::Config;

/// Name and content of a file in a model's folder.
pub type File = (&'static str, Vec<u8>);

/// `predict.py` of an LSTM.
const PREDICT_LSTM: &str = concat!(
    include_str!("interchange/lstm.py"),
    include_str!("../../../../python/sentimill/lstm.py"),
    "\n",
    include_str!("interchange/linear.py"),
    include_str!("interchange/text.py")
);

/// `predict.py` of a model of n-grams.
pub const PREDICT_NGRAMS: &str = concat!(
    include_str!("interchange/ngrams.py"),
    include_str!("interchange/linear.py"),
    include_str!("interchange/embeddings.py"),
    include_str!("interchange/text.py")
);

/// Words contain no brackets, so no word equals one of these.
const PADDING_TOKEN: &str = "[PAD]";
const UNKNOWN_TOKEN: &str = "[UNK]";

/// The files for other programs.
pub fn files(config: &Config, vocabulary: &WordList) -> Vec<File> {
    let tokenizer = crate::json::document(&tokenizer(config, vocabulary)).expect("plain values are JSON");
    vec![("tokenizer.json", tokenizer), ("predict.py", PREDICT_LSTM.into())]
}

/// A tokenizer in the format of `tokenizers`, version 1.0.
fn tokenizer(config: &Config, vocabulary: &WordList) -> Value {
    let special = |id: u32, content: &str| json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let mut ids = Map::new();
    ids.insert(PADDING_TOKEN.to_owned(), PADDING.into());
    ids.insert(UNKNOWN_TOKEN.to_owned(), UNKNOWN.into());
    for (word, id) in vocabulary.iter().zip(FIRST_WORD..) {
        ids.insert(String::from_utf8_lossy(word).into_owned(), id.into());
    }
    json!({
        "version": "1.0",
        "truncation": truncation(config),
        "padding": {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": null, "pad_id": PADDING, "pad_type_id": 0, "pad_token": PADDING_TOKEN},
        "added_tokens": [special(PADDING, PADDING_TOKEN), special(UNKNOWN, UNKNOWN_TOKEN)],
        "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": null,
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": UNKNOWN_TOKEN},
    })
}

/// Truncation to the first words of a text. `null` if the model reads all words, or other words than the
/// first ones.
fn truncation(config: &Config) -> Value {
    let limits = [config.preparation.max_tokens, config.tokens_max];
    match limits.into_iter().filter(|&most| most > 0).min() {
        Some(most) if config.preparation.keep == Keep::First || config.preparation.max_tokens == 0 => {
            json!({"direction": "Right", "max_length": most, "strategy": "LongestFirst", "stride": 0})
        }
        _ => Value::Null,
    }
}
