//! The training folder of an n-gram model: its settings, logs and model.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use batches::Part;
use classifiers::{Classifier, Labels, Texts};
use program::location::Location;
use report::whole;
use runs::training::DatasetRecord;
use training::out::{Existing, check_force};
use training::tell::tell;
use training::texts_out::TextsOut;
use training::{Error, Result};

use super::progress::Progress;
use super::settings::ModelSettings;
use crate::arguments::Train;

/// Locks the folder, or claims the prefix in S3. It must be new, empty or, as the flags allow, a training.
pub fn take(arguments: &Train) -> Result<TextsOut> {
    let existing = Existing::of_flags(arguments.resume, arguments.force);
    let s3 = arguments.storage.options();
    if let (true, Some(Location::Local(out))) = (arguments.force, &arguments.out) {
        check_force(out, "--init-from", arguments.init_from.as_ref())?;
        check_force(out, "--pretrained-vectors", arguments.pretrained_vectors.as_ref())?;
    }
    TextsOut::take(arguments.out.as_ref(), &arguments.input, "ngrams", &s3, existing)
}

/// Writes the settings and the description of the texts.
pub fn describe(
    out: &TextsOut,
    arguments: &Train,
    texts: &Texts,
    held_out: &[(Part, Texts)],
    recipe: serde_json::Value,
    settings: &ModelSettings,
) -> Result<()> {
    let counts = texts.counts();
    let dictionary = &texts.dictionary;
    let labels = Labels::of(dictionary);
    let mut classes: Vec<(String, [u64; 3])> = labels
        .in_order()
        .map(|label| (labels.name(label).to_owned(), [dictionary.label_count(label), 0, 0]))
        .collect();
    let mut rows = [counts.n_texts, 0, 0];
    for (part, held_out) in held_out {
        rows[*part as usize] = held_out.n_texts();
        let labels = held_out.dictionary.labels();
        for (name, counts) in &mut classes {
            let label = (0..labels.len() as u32).find(|&label| labels.get(label) == name.as_bytes());
            counts[*part as usize] = label.map_or(0, |label| held_out.dictionary.label_count(label));
        }
    }
    let card = [
        ("texts", counts.n_texts),
        ("texts without words", counts.n_empty),
        ("lines without a label", counts.n_unlabelled),
        ("tokens", counts.n_tokens),
        ("words", dictionary.n_words() as u64),
        ("labels", labels.n_labels() as u64),
    ];
    let path = match &arguments.input[..] {
        [place] => absolute(place),
        places => places.join(" "),
    };
    let dataset = DatasetRecord {
        path,
        rows,
        positive: [0; 3],
        classes,
        card: card.map(|(name, n)| (name.to_owned(), whole(n))).into(),
    };
    let parameters = settings.parameters(dictionary.n_words() as u64, labels.n_labels() as u64);
    out.write_settings(dataset, recipe, parameters)
}

/// Shows and logs the training. The log continues that of the checkpoint, if there is one.
pub fn progress(out: &TextsOut, texts: &Texts, settings: &ModelSettings) -> Result<Progress> {
    if !out.has_checkpoint()? {
        if out.is_resumed() {
            tell("no checkpoint to resume from: starting from the first text");
        }
        out.delete_metrics();
    }
    Progress::new(out.log(0)?, settings.epochs(), texts.n_texts())
}

/// The state of the newest checkpoint of a training that is resumed, if there is one.
pub fn state(out: &mut TextsOut) -> Result<Option<(PathBuf, File)>> {
    let state = out.state()?;
    if state.is_some() {
        tell("resuming from the checkpoint");
    }
    Ok(state)
}

/// Writes the model, and deletes the checkpoints.
pub fn finish(out: &TextsOut, classifier: &Classifier) -> Result<()> {
    let Some(model) = classifier.stored() else {
        return Err(Error::internal(&"a model of another program has no folder"));
    };
    classifiers::files::write(&out.model(), model)?;
    match fs::remove_dir_all(out.checkpoints()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::io(out.checkpoints(), error));
        }
        _ => {}
    }
    out.model_saved()
}

/// The absolute path of an input, without `..` and links if it exists, or its URL.
pub fn absolute(place: &str) -> String {
    let is_path = !place.contains("://") && place != "-";
    let path = || fs::canonicalize(place).or_else(|_| std::path::absolute(place)).ok();
    let absolute = is_path.then(path).flatten();
    absolute.map_or_else(|| place.to_owned(), |path| path.display().to_string())
}
