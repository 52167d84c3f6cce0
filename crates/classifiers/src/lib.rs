//! Converts lines to texts of numbered words, and texts to classifiers of words and n-grams.
//!
//! `words` splits a line. `builder` numbers the words of lines in several threads, and `reading` does so for a file of
//! fastText's format. The result is `texts`: a dictionary and blocks of tokens, in memory or in a temporary file. It
//! depends on the lines only, not on the number of threads. `features` numbers the rows of words and n-grams.
//! `files` reads and writes the files of models.
//! `fasttext` trains and evaluates a mean of embeddings with a linear layer. `linear` trains and evaluates weighted
//! n-grams with logistic or squared hinge loss. `classifier` is a classifier of any family, with its
//! labels and the preparation of its texts.

mod builder;
mod classifier;
mod dictionary;
mod error;
pub mod fasttext;
pub mod features;
pub mod files;
pub mod linear;
mod merging;
mod names;
mod numbers;
mod reading;
mod texts;
mod tree;
mod words;

pub use builder::{Builders, Reading, TextsBuilder};
pub use classifier::{Classifier, Labels, Model, Preparation, Reader};
pub use dictionary::{Dictionary, hash};
pub use error::{Error, Result};
pub use features::{FeatureRows, Features};
pub use names::Names;
pub use reading::{LINE_BYTES_MAX, add_lines, read_fasttext_file};
pub use texts::{Block, Counts, TextRef, Texts, Tokens, UNKNOWN};
pub use tree::Paths;
pub use words::{END, LABEL_PREFIX, Words};
