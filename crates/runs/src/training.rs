//! The training folder, which `fit`, `ngrams train` and `vectors train` write and `report` reads.
//!
//! ```text
//! sentiment/
//!   settings.json      the recipe, the number of ranks, and the dataset with its card
//!   metrics.jsonl      the events of the training, one per line
//!   evaluation.json    metrics of the test split, or of the validation split without one; the most wrong rows
//!   scores.npy         index, label and score of each evaluated row, for numpy.load; both for at most five labels
//!   ngrams.json        of n-gram models: the n-grams with the largest weights
//!   tensorboard/       the events of metrics.jsonl for TensorBoard
//!   model/             the model
//!   checkpoints/       the checkpoints from which the training resumes
//!   lock               the process that is training
//! ```
//!
//! Rank 0 writes all files. `settings.json` is written before the first step and `model/` last. If `model/`
//! exists, the training is complete. Each file appears completely or not at all, except `metrics.jsonl`, which
//! grows. A killed training may leave half a line, and a resumed one starts on a new line. Files with a version
//! above [`FORMAT_VERSION`] are refused. Training folders of older versions of this program contain only
//! `metrics.jsonl` and `model/`.
//!
//! ```
//! # use runs::training::{Line, StepsLine};
//! let line = r#"{"event":"steps","epoch":1,"step":20,"loss":0.5,"rate":0.001,"reviews_per_s":900.0,"waited_share":0.1}"#;
//! assert!(matches!(serde_json::from_str(line), Ok(Line::Steps(StepsLine { step: 20, .. }))));
//! ```

mod best;
mod decisions;
mod evaluation;
mod hold;
mod lines;
mod replace;
mod scores;
mod settings;
mod times;
mod top;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use durable::sync_folder;
use program::bounded;
use program::exit::Failed;
use program::place::folder_of;
use program::temporary;
use tempfile::NamedTempFile;

pub use self::best::{best_epoch, validated_epochs};
pub use self::decisions::decisions;
pub use self::evaluation::{EvaluationRecord, WRONG_MAX, WrongRow, is_wrong, most_wrong, with_words};
pub use self::hold::{Hold, LOCK_WAIT};
pub use self::lines::{EpochLine, Line, PipLine, SimilarityLine, StepsLine, TokensLine};
pub use self::replace::{NAMES, check_replaceable, clear, has_only_settings, names};
pub use self::scores::{read_scores, write_scores};
pub use self::settings::{DatasetRecord, RunSettings, UnlabelledRecord};
pub use self::times::{Profile, RankTimes, ShareTimes};
pub use self::top::{OfManyLabels, OfOneLabel, Tested, TopNgrams, TopOfLabel, WeighedNgram, WrongText};
use crate::error::{Error, Result};
use crate::json;

/// Incremented if older programs would misread newer folders.
pub const FORMAT_VERSION: u32 = 2;

/// The checkpoints from which the training resumes.
pub const CHECKPOINTS: &str = "checkpoints";
/// The model.
pub const MODEL: &str = "model";
/// The events of the training.
pub const METRICS: &str = "metrics.jsonl";
/// The settings and the dataset.
pub const SETTINGS: &str = "settings.json";
/// Maximum size of [`SETTINGS`] and of [`EVALUATION`].
pub const SETTINGS_BYTES_MAX: u64 = 16 << 20;
/// The evaluation of the held-out rows.
pub const EVALUATION: &str = "evaluation.json";
/// The score of each evaluated row.
pub const SCORES: &str = "scores.npy";
/// In a checkpoint: the state of an n-gram training.
pub const STATE: &str = "ngrams.state";
/// The n-grams with the largest weights.
pub const NGRAMS: &str = "ngrams.json";
/// Event files for TensorBoard.
pub const TENSORBOARD: &str = "tensorboard";
/// The process that is training.
pub const LOCK: &str = "lock";

/// A temporary file in the folder of its final path. It is deleted unless it is renamed.
pub fn temporary_beside(path: &Path) -> Result<NamedTempFile> {
    temporary::file_in(folder_of(path)).map_err(|error| Error::io(path, error.kind().into()))
}

/// Writes a file that appears completely or not at all, and replaces an existing one. On return, it is durable.
pub fn put(path: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>) -> Result<()> {
    let failed = |source| Error::io(path, source);
    let temporary = temporary_beside(path)?;
    let mut buffer = BufWriter::new(temporary.as_file());
    write(&mut buffer).and_then(|()| buffer.flush()).map_err(failed)?;
    drop(buffer);
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(path).map_err(|error| failed(error.error))?;
    sync_folder(folder_of(path)).map_err(failed)
}

/// Writes a JSON document in the same way.
pub fn put_json(path: &Path, document: &impl serde::Serialize) -> Result<()> {
    let json = json::document(document).map_err(Failed::defect)?;
    put(path, |file| file.write_all(&json))
}

/// The JSON document in a file such as [`SETTINGS`] and [`EVALUATION`]; `None` if there is none, or it is damaged.
pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&bounded::read(path, SETTINGS_BYTES_MAX).ok()?).ok()
}
