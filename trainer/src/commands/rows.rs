//! Opens datasets for the commands, and formats messages about their rows.

use std::path::Path;

use batches::{Division, Reading, Rows, Smallest};

use crate::arguments::Running;
use crate::error::Result;

/// Opens a dataset for a command.
pub(super) fn open(
    path: &Path,
    division: Division,
    tokens: u32,
    running: &Running,
    known: &Smallest,
) -> Result<Rows> {
    let reading = Reading { division, tokens_max: tokens, memory_bytes: running.memory << 20 };
    Ok(Rows::open_knowing(path, &reading, known)?)
}

/// A warning if `known` evaluated rows were in the model's training split.
pub(super) fn trained_on_warning(evaluated: &Path, known: u64) -> Option<String> {
    (known > 0).then(|| {
        format!(
            "warning: {}: at least {known} of the rows that are evaluated were for training; what comes out is better than \
             for new reviews: evaluate rows that were held back, as by --test-fraction of fit",
            evaluated.display()
        )
    })
}

/// A message if rows may be longer than the model's maximum.
pub(super) fn cut(rows: &Rows, tokens: u32) -> Option<String> {
    let kept = rows.settings().rows.max_tokens;
    let is_cut = tokens > 0 && (kept == 0 || kept > tokens);
    let kept = if kept == 0 { "all".to_owned() } else { format!("up to {kept}") };
    is_cut.then(|| {
        format!("reads the first {tokens} words of a row; the dataset has {kept}, and --tokens 0 reads them")
    })
}
