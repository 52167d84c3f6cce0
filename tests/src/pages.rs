//! The pages of the documents, for tests that follow them as a reader does.
//!
//! The blocks of each page are run from top to bottom in a separate folder. In a `console` block, lines that begin
//! with `$ ` are commands, and the others are their standard output and standard error. [`agreement`] has the rules
//! for output that varies. If a page shows a file with `cat` before any command has created it, the file belongs to
//! the reader, and is written first. An `sh` block is run and has to succeed. A block `python NAME` is saved under
//! its name. `UPDATE_GOLDEN=1` writes the printed output into a page that shows other output.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test ends where its files are missing")]

pub mod agreement;
pub mod blocks;
pub mod following;

use std::env;
use std::path::{Path, PathBuf};

/// The folder of the project.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The path of a file in the project.
pub fn relative(path: &Path) -> String {
    path.strip_prefix(project()).unwrap().display().to_string()
}

/// Whether pages get the printed output.
pub fn renews() -> bool {
    env::var_os("UPDATE_GOLDEN").is_some()
}
