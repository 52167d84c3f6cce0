//! The subcommands, one per file: its arguments, and `run`.

pub mod cancel;
pub mod diagnose;
pub mod doctor;
pub mod gpus;
pub mod list;
pub mod logs;
pub mod plan;
pub mod run;
pub mod status;
mod subject;
pub mod terminate;
pub mod watch;

use program::exit;
use serde::Serialize;

use crate::Error;

/// Prints a document as JSON or as text.
fn print(is_json: bool, document: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Error> {
    let text = match is_json {
        true => json(document) + "\n",
        false => text(),
    };
    exit::print(&text).map_err(Error::output)
}

fn json(document: &impl Serialize) -> String {
    serde_json::to_string_pretty(document).expect("documents have text keys")
}
