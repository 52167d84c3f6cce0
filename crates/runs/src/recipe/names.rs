//! Maps the fields of a recipe to the flags that set them, for messages and reports.

use serde_json::{Map, Value};

use super::older_embedding_std;

/// Fields of a recipe, by their path, with the flag of each field. A field that no flag sets has a description
/// instead. A value that is one of several kinds, such as the optimizer, has the name of its kind.
pub const SETTING_NAMES: [(&str, &str); 134] = [
    ("dataset", "id digest of the dataset"),
    ("plan", "read in blocks"),
    ("test_fraction", "--test-fraction"),
    ("validation_fraction", "--validation-fraction"),
    ("validation", "id digest of the validation dataset"),
    ("sample", "--sample"),
    ("fold.number", "fold"),
    ("fold.of", "--folds"),
    ("tokens_max", "--tokens"),
    ("model.ids", "ids of the vocabulary"),
    ("model.embedding", "--embedding"),
    ("model.hidden", "--hidden"),
    ("model.layers", "--layers"),
    ("model.bidirectional", "--bidirectional"),
    ("embedding_std", "--embedding-std"),
    ("family", "model"),
    ("family.classifier.objective", "--loss"),
    ("family.classifier.objective.label.pos_weight", "--pos-weight"),
    ("family.classifier.objective.classes.class_weights", "--class-weight"),
    ("family.classifier.pool", "--pool"),
    ("family.classifier.linear", "--linear"),
    ("family.next-word.candidates", "--candidates"),
    ("family.ngrams", "--model"),
    ("family.word-vectors.dim", "--dim"),
    ("family.word-vectors.window", "--window"),
    ("family.word-vectors.negatives", "--negatives"),
    ("family.word-vectors.rate", "--rate"),
    ("family.word-vectors.min_count", "--min-count"),
    ("family.word-vectors.sample", "--subsample"),
    ("family.word-vectors.power", "exponent of the counts of negative samples"),
    ("family.word-vectors.seed", "--seed"),
    ("family.word-vectors.characters.min", "--char-ngrams, from"),
    ("family.word-vectors.characters.max", "--char-ngrams, to"),
    ("family.word-vectors.characters.buckets", "--buckets"),
    ("family.char-lstm.dim", "--dim"),
    ("family.char-lstm.char_dim", "--char-dim"),
    ("family.char-lstm.hidden", "--hidden"),
    ("family.char-lstm.outputs", "--outputs"),
    ("family.char-lstm.batch", "--batch"),
    ("family.char-lstm.window", "--window"),
    ("family.char-lstm.negatives", "--negatives"),
    ("family.char-lstm.rate", "--rate"),
    ("family.char-lstm.min_count", "--min-count"),
    ("family.char-lstm.sample", "--subsample"),
    ("family.char-lstm.power", "exponent of the counts of negative samples"),
    ("family.char-lstm.seed", "--seed"),
    ("ranks", "number of ranks"),
    ("workers", "number of workers"),
    ("step-pairs", "--step-pairs"),
    ("average-every", "--sync-every"),
    ("words", "--words"),
    ("words-max", "--words-max"),
    ("follow", "--follow"),
    ("input", "--input"),
    ("format", "--format"),
    ("text-field", "--text-field"),
    ("with-title", "--with-title"),
    ("delimiter", "--delimiter"),
    ("quote", "--quote"),
    ("encoding", "--encoding"),
    ("rating-field", "--rating-field"),
    ("label-field", "--label-field"),
    ("class-ratings", "--class-ratings"),
    ("rating-scale", "--rating-scale"),
    ("unrated", "--unrated"),
    ("positive-from", "--positive-from"),
    ("labels", "--labels"),
    ("class_weight", "--class-weight"),
    ("init_from", "SHA-256 of --init-from"),
    ("pretrained_vectors", "SHA-256 of --pretrained-vectors"),
    ("ngrams.words", "--words"),
    ("ngrams.words_max", "--words-max"),
    ("ngrams.min_count", "--min-count"),
    ("ngrams.linear.length", "--ngrams"),
    ("ngrams.linear.gap", "words between the two words of a pair, at most"),
    ("ngrams.linear.ending", "words at the end that count once more"),
    ("ngrams.linear.buckets", "--buckets"),
    ("ngrams.linear.min_count", "--min-count"),
    ("ngrams.linear.weights", "--weights"),
    ("ngrams.linear.loss", "--loss"),
    ("ngrams.linear.l1", "--l1"),
    ("ngrams.linear.c", "--c"),
    ("ngrams.linear.seed", "--seed"),
    ("ngrams.linear.deterministic", "--deterministic"),
    ("ngrams.fasttext.length", "--ngrams"),
    ("ngrams.fasttext.buckets", "--buckets"),
    ("ngrams.fasttext.char_ngrams", "--char-ngrams"),
    ("ngrams.fasttext.dim", "--dim"),
    ("ngrams.fasttext.loss", "--loss"),
    ("ngrams.fasttext.optimizer", "--optimizer"),
    ("ngrams.fasttext.rate", "--rate"),
    ("ngrams.fasttext.l2", "--l2"),
    ("ngrams.fasttext.dropout", "--dropout"),
    ("ngrams.fasttext.subsample", "--subsample"),
    ("ngrams.fasttext.seed", "--seed"),
    ("ngrams.fasttext.deterministic", "--deterministic"),
    ("ngrams.fasttext.threads", "--threads"),
    ("row_weight", "--row-weight"),
    ("batch_rows", "--batch"),
    ("accumulate", "--accumulate"),
    ("sync_every", "--sync-every"),
    ("wire", "--wire"),
    ("balance", "--balance"),
    ("balance.dynamic.every", "--balance-every"),
    ("balance.per-epoch.every", "--balance-every"),
    ("balance.replay.decisions", "--decisions"),
    ("epochs", "--epochs"),
    ("rule", "--optimizer"),
    ("rule.sgd.momentum", "--momentum"),
    ("weight_decay", "--weight-decay"),
    ("schedule.base_rate", "--rate"),
    ("schedule.base_batch_rows", "--base-batch"),
    ("schedule.batch_rows", "rows of a step"),
    ("schedule.warm_up_steps", "--warm-up"),
    ("schedule.decay", "--decay"),
    ("schedule.decay.step.every_steps", "--decay-epochs, in steps"),
    ("schedule.decay.step.factor", "--decay-factor"),
    ("dropout.words", "--dropout-words"),
    ("dropout.embedding", "--dropout-embedding"),
    ("dropout.layers", "--dropout-layers"),
    ("dropout.head", "--dropout-head"),
    ("clip", "--clip"),
    ("precision", "--precision"),
    ("seed", "--seed"),
    ("patience", "--patience"),
    ("stop_loss", "--stop-loss"),
    ("soft_labels", "SHA-256 of --soft-labels"),
    ("unlabelled", "--unlabelled"),
    ("unlabelled.dataset", "id digest of --unlabelled"),
    ("unlabelled.soft_labels", "SHA-256 of the soft labels of --unlabelled"),
    ("with_ngrams", "--with-ngrams"),
    ("threshold", "--threshold"),
    ("threshold.probability", "--threshold"),
    ("calibration", "--calibrate"),
];

/// Fields of what is read, which recipes of older versions may lack.
pub const OF_INPUT: [&str; 14] = [
    "input",
    "format",
    "text-field",
    "with-title",
    "delimiter",
    "quote",
    "encoding",
    "rating-field",
    "label-field",
    "class-ratings",
    "rating-scale",
    "unrated",
    "positive-from",
    "labels",
];

/// The flag that sets a field of a recipe, or the name of the field.
pub fn setting_name(place: &str) -> String {
    let known = SETTING_NAMES.iter().find(|(at, _)| *at == place).map(|(_, name)| (*name).to_owned());
    known.unwrap_or_else(|| place.replace('.', " › ").replace('_', " "))
}

/// The first setting in which two recipes differ: its flag, and both values. A recipe of an older version, `found`, may lack
/// settings of what is read, and the standard deviation of the initial embeddings.
pub fn first_difference(found: &Value, expected: &Value) -> Option<(String, String, String)> {
    let (mut found, mut expected) = (found.clone(), expected.clone());
    if let (Value::Object(found), Value::Object(expected)) = (&mut found, &mut expected) {
        if expected.contains_key("embedding_std") {
            found.entry("embedding_std").or_insert(older_embedding_std().into());
        }
        expected.retain(|name, _| found.contains_key(name) || !OF_INPUT.contains(&name.as_str()));
        // Others follow from them: the batch size and the steps of the schedule depend on the number of rows, and the fields of
        // a line on its format.
        let first = ["sample", "input", "format"];
        if let Some(difference) = first.iter().find_map(|name| difference_of_member(name, found, expected)) {
            return Some(difference);
        }
    }
    difference_at("", &found, &expected)
}

/// The difference of a setting that can be absent.
fn difference_of_member(
    name: &str,
    found: &Map<String, Value>,
    expected: &Map<String, Value>,
) -> Option<(String, String, String)> {
    let value = |of: &Map<String, Value>| of.get(name).cloned().unwrap_or_default();
    let shown = |of: &Map<String, Value>| of.get(name).map_or_else(|| "missing".to_owned(), shown);
    (value(found) != value(expected)).then(|| (setting_name(name), shown(found), shown(expected)))
}

fn difference_at(place: &str, found: &Value, expected: &Value) -> Option<(String, String, String)> {
    if found == expected {
        return None;
    }
    if let (Value::Object(found), Value::Object(expected)) = (found, expected)
        && found.keys().eq(expected.keys())
    {
        return expected.iter().find_map(|(name, expected)| {
            let below = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            difference_at(&below, &found[name], expected)
        });
    }
    if let (Value::Object(found), Value::Object(expected)) = (found, expected)
        && place.is_empty()
    {
        let names = expected.keys().chain(found.keys());
        // First the settings that only one has: others follow from them, such as a rate from the number of processes.
        let of_one = |name: &&String| !(found.contains_key(*name) && expected.contains_key(*name));
        let difference = |name: &String| difference_of_member(name, found, expected);
        let first = names.clone().filter(of_one).find_map(difference);
        return first.or_else(|| names.clone().find_map(difference));
    }
    Some((setting_name(place), shown(found), shown(expected)))
}

/// A value in the form in which it is passed to a flag. A value that has further settings is shown by its
/// kind.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(kinds) if kinds.len() == 1 => kinds.keys().cloned().collect(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_is_named_by_its_flag() {
        let differs = |found: Value, expected: Value| {
            let (name, found, expected) = first_difference(&found, &expected).unwrap();
            format!("{name} {found} {expected}")
        };
        assert_eq!(differs(json!({"seed": 1}), json!({"seed": 2})), "--seed 1 2");
        assert_eq!(
            differs(json!({"model": {"ids": 5, "hidden": 16}}), json!({"model": {"ids": 5, "hidden": 32}})),
            "--hidden 16 32"
        );
        assert_eq!(
            differs(json!({"rule": {"sgd": {"momentum": 0.9}}}), json!({"rule": "adam"})),
            "--optimizer sgd adam"
        );
        assert_eq!(
            differs(json!({"rule": {"sgd": {"momentum": 0.9}}}), json!({"rule": {"sgd": {"momentum": 0.5}}})),
            "--momentum 0.9 0.5"
        );
        assert_eq!(differs(json!({"clip": null}), json!({"clip": 1.0})), "--clip not set 1.0");
        assert_eq!(differs(json!({}), json!({"seed": 2})), "--seed missing 2");
        assert_eq!(
            differs(json!({"seed": 1}), json!({"seed": 1, "embedding_std": 0.1})),
            "--embedding-std 1.0 0.1"
        );
        assert_eq!(first_difference(&json!({"seed": 1}), &json!({"seed": 1, "embedding_std": 1.0})), None);
        let of_folds = |number: u16, of: u16| json!({"fold": {"number": number, "of": of}});
        assert_eq!(differs(of_folds(1, 5), of_folds(1, 3)), "--folds 5 3");
        assert_eq!(
            differs(json!({"seed": 1, "validation": "a0"}), json!({"seed": 1})),
            "id digest of the validation dataset a0 missing"
        );
        assert_eq!(first_difference(&json!({"seed": 1}), &json!({"seed": 1, "validation": null})), None);
        let soft = |labels: &str| json!({"soft_labels": "a0", "unlabelled": {"dataset": "b0", "soft_labels": labels}});
        assert_eq!(differs(soft("c0"), soft("c1")), "SHA-256 of the soft labels of --unlabelled c0 c1");
        assert_eq!(differs(json!({"soft_labels": "a0"}), json!({})), "SHA-256 of --soft-labels a0 missing");
        assert_eq!(
            differs(json!({"seed": 1, "threshold": "f1"}), json!({"seed": 1})),
            "--threshold f1 missing"
        );
        assert_eq!(
            differs(json!({"seed": 1, "sample": "0.25"}), json!({"seed": 1, "sample": "0.5"})),
            "--sample 0.25 0.5"
        );
        assert_eq!(
            differs(json!({"batch_rows": 16, "sample": "0.25"}), json!({"batch_rows": 64})),
            "--sample 0.25 missing"
        );
        let read = |format: &str, ratings: Option<&str>| json!({"class-ratings": ratings, "format": format});
        assert_eq!(differs(read("json", None), read("fasttext", Some("1=1"))), "--format json fasttext");
        assert_eq!(differs(read("json", None), read("json", Some("1=1"))), "--class-ratings not set 1=1");
        assert_eq!(first_difference(&json!({"seed": 1}), &json!({"seed": 1, "format": "json"})), None);
        assert_eq!(differs(json!({"seed": 1}), json!({"seed": 2, "format": "json"})), "--seed 1 2");
        let probability = |value: f64| json!({"threshold": {"probability": value}});
        assert_eq!(differs(probability(0.3), probability(0.4)), "--threshold 0.3 0.4");
        assert_eq!(first_difference(&json!({"seed": 1}), &json!({"seed": 1})), None);
    }
}
