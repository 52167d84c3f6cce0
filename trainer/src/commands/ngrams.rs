//! N-gram models: their training, and the commands that use them.

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

use ::ngrams::Words;

pub(super) use self::evaluate::evaluate;
pub(super) use self::explain::explain;
pub(super) use self::export::export;
pub(super) use self::input::{Input, is_dataset};
pub(super) use self::predict::predict;
pub(super) use self::settings::{Settings, reading, words};
pub(super) use self::train::{check, ngrams};
use super::lines::InvalidUtf8;
use crate::families::ngrams::Classifier;

/// Number of threads of commands without a flag for it: OMP_NUM_THREADS, or one per core.
pub(super) fn threads() -> NonZeroUsize {
    let set = std::env::var("OMP_NUM_THREADS").ok().and_then(|threads| threads.trim().parse().ok());
    set.unwrap_or_else(|| available_parallelism().unwrap_or(NonZeroUsize::MIN))
}

/// How a model reads bytes that are not UTF-8.
fn invalid_utf8(classifier: &Classifier) -> InvalidUtf8 {
    match classifier.words() {
        Words::Cleaned => InvalidUtf8::Spaces,
        Words::Spaces | Words::Punctuation => InvalidUtf8::Bytes,
    }
}
