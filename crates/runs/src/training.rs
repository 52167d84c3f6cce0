//! The folder that a training leaves behind, and what `trainer report` reads.
//!
//! ```text
//! sentiment/
//!   settings.json      the recipe, the ranks, and the dataset with its card
//!   metrics.jsonl      how it went, a line an event
//!   evaluation.json    the metrics of the test rows, or of the validation rows where there are none; the most wrong
//!   scores.npy         a row, its label and its score each, for numpy.load
//!   tensorboard/       what metrics.jsonl says, for TensorBoard
//!   model/             the model
//!   checkpoints/       where the training goes on from
//!   lock               who trains there now
//! ```
//!
//! All of it is rank 0's. `settings.json` is there before the first step, `model/` is written last: where it is, the
//! training is complete. Each appears whole or not at all; `metrics.jsonl` grows, and a training that was killed may leave half a line, behind which a later
//! one begins anew. A file whose version is greater than [`FORMAT_VERSION`] is refused. The folder of a training by an
//! older version of this program has `metrics.jsonl` and `model/` alone.
//!
//! ```
//! # use runs::training::Line;
//! let line = r#"{"event":"steps","epoch":1,"step":20,"loss":0.5,"rate":0.001,"reviews_per_s":900.0,"waited_share":0.1}"#;
//! assert!(matches!(serde_json::from_str(line), Ok(Line::Steps { step: 20, .. })));
//! ```

mod evaluation;
mod hold;
mod lines;
mod scores;
mod settings;
mod times;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use program::place::folder_of;
use tempfile::NamedTempFile;

pub use self::evaluation::{EvaluationRecord, WrongRow, is_wrong, most_wrong};
pub use self::hold::{Hold, PATIENCE};
pub use self::lines::Line;
pub use self::scores::{read_scores, write_scores};
pub use self::settings::{DatasetRecord, RunSettings};
pub use self::times::RankTimes;
use crate::error::{Error, Result};
use crate::json;

/// Goes up when an older program would read a newer folder wrongly.
pub const FORMAT_VERSION: u32 = 2;

/// What the training goes on from.
pub const CHECKPOINTS: &str = "checkpoints";
/// The model.
pub const MODEL: &str = "model";
/// How it went.
pub const METRICS: &str = "metrics.jsonl";
/// What was trained, and on what.
pub const SETTINGS: &str = "settings.json";
/// What the rows that were held back say.
pub const EVALUATION: &str = "evaluation.json";
/// The score of each of them.
pub const SCORES: &str = "scores.npy";
/// Event files.
pub const TENSORBOARD: &str = "tensorboard";
/// Who trains there.
pub const LOCK: &str = "lock";

/// A file that is still being written, in the folder where it will stay. It goes away unless it gets its name.
pub fn temporary_beside(path: &Path) -> Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    // As readable as any new file is, by the user's umask.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let made = builder.prefix(".writing-").permissions(permissions).tempfile_in(folder_of(path));
    made.map_err(|error| Error::io(path, error.kind().into()))
}

/// Writes a file that appears whole or not at all, in the place of what was there, and is durable then.
pub fn put(path: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>) -> Result<()> {
    let failed = |source| Error::io(path, source);
    let folder = folder_of(path);
    let temporary = temporary_beside(path)?;
    let mut buffer = BufWriter::new(temporary.as_file());
    write(&mut buffer).and_then(|()| buffer.flush()).map_err(failed)?;
    drop(buffer);
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(path).map_err(|error| failed(error.error))?;
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some network file systems have no such operation.
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(failed(error)),
        _ => Ok(()),
    }
}

/// The same for a JSON document.
pub fn put_json(path: &Path, document: &impl serde::Serialize) -> Result<()> {
    let json = json::document(document).map_err(|error| Error::internal(&error))?;
    put(path, |file| file.write_all(&json))
}
