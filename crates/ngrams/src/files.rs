//! Files of n-gram models: those of the fastText program ([`bin`], [`vectors`]).
//!
//! Files are hostile: a size is compared with the bytes of the file before memory is allocated for it, and an error
//! states the file, the field, the value found and the expected ones.

pub mod bin;
mod error;
mod new_file;
mod source;
pub mod vectors;

pub use error::{Error, Result};
