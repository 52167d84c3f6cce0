//! Finds the model folder for a path. It is the path itself, or the model folder in a training folder.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use runs::folds::{name_of, numbers_in};
use runs::saved::CONFIG;
use runs::training::{CHECKPOINTS, METRICS, MODEL, RunSettings, SETTINGS, read_json};

use program::exit::{Exit, Failed};
use program::location::Location;
use store::S3Options;

use crate::error::{Error, Result};
use crate::places;

/// Returns the local model folder for the local path of a model folder or a finished training. `flag` is the argument
/// that contained it.
pub fn folder_at(path: &Path, flag: &str) -> Result<PathBuf> {
    let refused = |found: &str, expected: String| {
        Err(Error::unexpected(path.display(), format!("{flag} is {found}"), expected))
    };
    let of_training = path.join(MODEL);
    if path.join(CONFIG).exists() {
        return Ok(path.to_owned());
    }
    if of_training.is_dir() {
        return Ok(of_training);
    }
    if !path.exists() {
        let expected = "a model folder, or the training folder that contains it".to_owned();
        return refused("missing: no such folder", expected);
    }
    if !path.is_dir() {
        return refused(
            "a file",
            "a model folder or a training folder; pass MODEL before other files".to_owned(),
        );
    }
    if [SETTINGS, METRICS, CHECKPOINTS].iter().any(|name| path.join(name).exists()) {
        let resume = resume_command(path);
        return refused(
            "a training folder without a model",
            format!("a finished training; finish this one with `{resume}`"),
        );
    }
    if let Some(&first) = numbers_in(path).first() {
        let fold = path.join(name_of(first));
        let expected = format!(
            "the model of one training; train it with `trainer fit DATASET`, or pass that of a fold, {}",
            fold.display()
        );
        return refused("a cross-validation", expected);
    }
    Ok(path.to_owned())
}

/// Whether a path is a model folder, a training folder, or a file of the fastText program.
pub fn is_model(path: &Path) -> bool {
    match path.is_dir() {
        true => path.join(CONFIG).exists() || path.join(MODEL).is_dir(),
        false => is_of_fasttext(path),
    }
}

/// Whether a file begins as the models of the fastText program do.
pub fn is_of_fasttext(path: &Path) -> bool {
    let mut begin = [0; 4];
    // A named pipe must not be opened twice.
    let is_read = path.is_file() && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok();
    is_read && begin == classifiers::files::bin::MAGIC.to_le_bytes()
}

/// The local path of a model: a model folder, a training folder's, or a file of the fastText program. One in S3 is fetched
/// into the cache. Word vectors are refused.
pub fn path(model: &Location, s3: &S3Options) -> Result<PathBuf> {
    let path = places::weights(model, s3, "MODEL")?;
    let path = if is_of_fasttext(&path) { path } else { folder_at(&path, "MODEL")? };
    if embeddings::files::is_folder(&path) {
        let path = path.display();
        let remedy = format!("train one with `trainer fit DATASET --init-from {path}`, or use `vectors`");
        let message = format!("{path}: word vectors, expected a classifier; {remedy}");
        return Err(Failed::new(Exit::Settings, message).into());
    }
    Ok(path)
}

/// Whether a local path has a model of n-grams.
pub fn is_of_ngrams(path: &Path) -> bool {
    if path.is_dir() { classifiers::files::is_folder(path) } else { is_of_fasttext(path) }
}

/// The training folder of a model. Without a training folder, it is the model folder.
pub fn named(model: &Location) -> PathBuf {
    let absolute = match model {
        Location::Local(path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        Location::S3(url) => PathBuf::from(format!("/{}", url.name())),
    };
    let is_of_training = absolute.file_name().is_some_and(|name| name == MODEL);
    if is_of_training { absolute.parent().unwrap_or(&absolute).to_owned() } else { absolute }
}

/// The command that resumes the training in a folder.
fn resume_command(folder: &Path) -> String {
    let settings: Option<RunSettings> = read_json(&folder.join(SETTINGS));
    let command = if settings.as_ref().is_some_and(RunSettings::is_of_words) { "pretrain" } else { "fit" };
    let is_of_ngrams = settings.as_ref().is_some_and(RunSettings::is_of_ngrams);
    let is_of_vectors = settings.as_ref().is_some_and(RunSettings::is_of_vectors);
    let fold = settings.as_ref().and_then(RunSettings::fold);
    let dataset = settings.map_or_else(|| "DATASET".to_owned(), |settings| settings.dataset.path);
    match (fold, folder.parent()) {
        (Some(fold), Some(of_all)) => {
            format!("trainer fit {dataset} --folds {} --out {} --resume", fold.of, of_all.display())
        }
        _ if is_of_vectors => format!("vectors train --input {dataset} --out {} --resume", folder.display()),
        _ if is_of_ngrams => format!("ngrams train --input {dataset} --out {} --resume", folder.display()),
        _ => format!("trainer {command} {dataset} --out {} --resume", folder.display()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    #[test]
    fn a_training_folder_means_its_model_and_a_model_folder_itself() {
        let folder_of_all = tempfile::tempdir().unwrap();
        let training = folder_of_all.path().join("training");
        let model = training.join(MODEL);
        fs::create_dir_all(&model).unwrap();
        fs::write(model.join("config.json"), "{}").unwrap();

        assert_eq!(folder_at(&training, "MODEL").unwrap(), model);
        assert_eq!(folder_at(&model, "MODEL").unwrap(), model);
        // An error message contains any other folder as it was passed.
        assert_eq!(folder_at(folder_of_all.path(), "MODEL").unwrap(), folder_of_all.path());
    }

    #[test]
    fn an_unfinished_training_is_refused_with_the_command_that_resumes_it() {
        let training = tempfile::tempdir().unwrap();
        fs::create_dir(training.path().join(CHECKPOINTS)).unwrap();
        let told = folder_at(training.path(), "MODEL").unwrap_err().to_string();
        assert!(told.contains("without a model"), "{told}");
        let resume = format!("`trainer fit DATASET --out {} --resume`", training.path().display());
        assert!(told.ends_with(&resume), "{told}");
    }

    #[test]
    fn a_missing_folder_and_a_file_are_named_with_their_argument() {
        let within = tempfile::tempdir().unwrap();
        let told = folder_at(&within.path().join("x"), "MODEL").unwrap_err().to_string();
        assert!(told.contains("x: MODEL is missing: no such folder, expected a model folder"), "{told}");
        let file = within.path().join("reviews.h5");
        fs::write(&file, "").unwrap();
        let told = folder_at(&file, "MODEL").unwrap_err().to_string();
        assert!(told.contains("reviews.h5: MODEL is a file, expected a model folder"), "{told}");
    }
}
