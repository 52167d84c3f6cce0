//! Resolves a path to a model folder: the path itself, or `model/` in a training folder.

use std::path::{Path, PathBuf};

use runs::saved::CONFIG;
use runs::training::MODEL;

/// The folder of a saved model, from its path or from that of a training folder.
pub(super) fn folder(path: &Path) -> PathBuf {
    let of_training = path.join(MODEL);
    if !path.join(CONFIG).exists() && of_training.is_dir() { of_training } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    #[test]
    fn a_training_stands_for_its_model_and_a_model_for_itself() {
        let folder_of_all = tempfile::tempdir().unwrap();
        let training = folder_of_all.path().join("training");
        let model = training.join(MODEL);
        fs::create_dir_all(&model).unwrap();
        fs::write(model.join("config.json"), "{}").unwrap();

        assert_eq!(folder(&training), model);
        assert_eq!(folder(&model), model);
        // A folder that is neither is returned unchanged.
        assert_eq!(folder(folder_of_all.path()), folder_of_all.path());
    }
}
