//! The models that are trained, and how they are kept.

mod lstm;
mod next_word;
mod parameters;
mod saving;
mod weights_file;

pub use lstm::{Dropout, Head, Lstm, LstmSettings, Pool};
pub use next_word::{Candidates, Weighed};
pub use parameters::Parameters;
pub(crate) use parameters::{read_like, write as write_tensors};
pub use saving::{Classifier, Trained, begin_with, read_classifier, save_model};
