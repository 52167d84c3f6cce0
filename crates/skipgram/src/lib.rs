//! Converts sentences to word vectors, by skip-gram with negative sampling (Mikolov et al. 2013, "Distributed
//! representations of words and phrases and their compositionality").
//!
//! [`Vocabulary`] numbers and counts words as they arrive, in bounded memory. [`Distribution`] draws negative samples by the
//! counts. [`Training`] trains the vectors of the words on [`Sentences`], with threads that share them without locks.
//! Files, streams and clocks are the caller's.

mod distribution;
mod draws;
mod error;
mod kernel;
mod numbering;
mod sentences;
mod settings;
mod state;
mod training;
mod vocabulary;

pub use distribution::Distribution;
pub use draws::Rows;
pub use error::{Error, Result};
pub use numbering::{Growing, count, number};
pub use sentences::Sentences;
pub use settings::{Decay, Settings};
pub use training::{Done, Training, Work};
pub use vocabulary::{Counted, Vocabulary};
