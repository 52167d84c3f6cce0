//! N-gram models: their training, and the commands that use them. Nothing here needs tensors.

mod evaluate;
mod explain;
mod export;
mod input;
mod out;
mod predict;
mod progress;
mod settings;
mod top;
mod train;

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use corpus::format::{Asked, FormatName};

pub(super) use self::evaluate::evaluate;
pub(super) use self::explain::explain;
pub(super) use self::export::export;
pub(super) use self::input::{Input, is_dataset};
pub(super) use self::predict::predict;
pub(super) use self::settings::{Settings, reading, words};
pub(super) use self::train::{check, ngrams};
use crate::arguments::{LineFormat, Lines};
use crate::error::Result;
use crate::families::ngrams::text::Format;
use crate::predict::Counts;
use crate::tell::tell;

/// The format of lines without labels.
fn text_format(lines: &Lines) -> Result<Format> {
    let Lines { preset, text_field, with_title, .. } = lines.clone();
    let asked = Asked { preset, text_field, with_title, ..Asked::default() };
    Ok(match lines.format {
        LineFormat::Review(FormatName::FastText) => {
            asked.nothing_for("fasttext")?;
            Format::FastText
        }
        LineFormat::Review(name) => Format::Review(Asked { name, ..asked }.format()?),
        LineFormat::Text => {
            asked.nothing_for("text")?;
            Format::Text
        }
    })
}

/// Number of threads of commands without a flag for it: OMP_NUM_THREADS, or one per core.
fn threads() -> NonZeroUsize {
    let set = std::env::var("OMP_NUM_THREADS").ok().and_then(|threads| threads.trim().parse().ok());
    set.unwrap_or_else(|| available_parallelism().unwrap_or(NonZeroUsize::MIN))
}

/// Warns of lines that are not UTF-8.
fn report_invalid(place: &str, counts: &Counts) {
    if counts.invalid_utf8 > 0 {
        tell(&format!(
            "{place}: invalid UTF-8 in {} of {} lines; convert files of another encoding with iconv",
            counts.invalid_utf8, counts.lines
        ));
    }
}
