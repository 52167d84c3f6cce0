//! The settings of a training, by which a resumed training is compared.

use corpus::encoding::{Encoding, UTF_8};
use corpus::format::Format;
use embeddings::skipgram::{NgramBuckets, SkipGramSettings};
use embeddings::spelling::SpellingSettings;
use serde::Serialize;
use serde_json::{Map, Value, json};
use training::arguments::CharNgrams;
use training::{Error, Result};

use super::lines::format;
use crate::arguments::{ModelName, Train};

/// Default learning rate of Adagrad, on several processes.
const SHARED_RATE: f32 = 0.05;

/// Whether one process trains, or several that share the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Processes {
    One,
    Several,
}

/// Settings of skip-gram.
pub(super) fn skip_gram_settings(arguments: &Train) -> SkipGramSettings {
    SkipGramSettings {
        dim: arguments.dim,
        window: arguments.window,
        negatives: arguments.negatives,
        rate: arguments.rate.map_or(SkipGramSettings::default().rate, |rate| rate as f32),
        min_count: arguments.min_count,
        sample: arguments.subsample,
        seed: arguments.seed,
        characters: arguments.char_ngrams.map(|CharNgrams { min, max }| NgramBuckets {
            min: min.into(),
            max: max.into(),
            buckets: arguments.buckets,
        }),
        ..SkipGramSettings::default()
    }
}

/// Settings of `--model char-lstm`.
pub(super) fn spelling_settings(arguments: &Train, processes: Processes) -> SpellingSettings {
    let of_lstm = &arguments.char_lstm;
    let default_rate = match processes {
        Processes::One => SpellingSettings::default().rate,
        Processes::Several => SHARED_RATE,
    };
    SpellingSettings {
        dim: arguments.dim,
        char_dim: of_lstm.char_dim,
        hidden: of_lstm.hidden,
        outputs: of_lstm.outputs,
        batch: of_lstm.batch,
        window: arguments.window,
        negatives: arguments.negatives,
        rate: arguments.rate.map_or(default_rate, |rate| rate as f32),
        min_count: arguments.min_count,
        sample: arguments.subsample,
        seed: arguments.seed,
        ..SpellingSettings::default()
    }
}

/// The settings by which a resumed training is compared.
pub(super) fn recipe(arguments: &Train, processes: Processes) -> Result<Value> {
    let family = match arguments.model {
        ModelName::SkipGram => json!({ "word-vectors": written(&skip_gram_settings(arguments))? }),
        ModelName::CharLstm => {
            json!({ "char-lstm": written(&spelling_settings(arguments, processes))? })
        }
    };
    let mut recipe = json!({
        "family": family,
        "epochs": arguments.epochs(),
        "words": arguments.words,
        "words-max": arguments.words_max,
        "follow": arguments.follow,
        "input": arguments.input,
        "format": "text",
        "text-field": null,
        "with-title": null,
        "encoding": arguments.encoding.filter(|&encoding| encoding != UTF_8).map(Encoding::name),
    });
    if processes == Processes::Several && arguments.model == ModelName::SkipGram {
        recipe["step-pairs"] = arguments.step_pairs().into();
    }
    for (name, value) in format(arguments)?.iter().flat_map(Format::of_texts) {
        recipe[name] = value.into();
    }
    Ok(recipe)
}

/// Settings by way of their text, which has `f32` numbers as a user writes them.
pub(super) fn written(settings: &impl Serialize) -> Result<Map<String, Value>> {
    let text = serde_json::to_string(settings);
    text.and_then(|text| serde_json::from_str(&text)).map_err(|error| Error::internal(&error))
}
