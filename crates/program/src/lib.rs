//! Start and end of every program. Checks the standard streams, converts arguments into local paths, and
//! converts errors into one line and an exit code. This crate does not depend on what programs read or write.

mod descriptors;
pub mod exit;
pub mod location;
pub mod pipe;
pub mod place;
pub mod progress;
pub mod size;
mod streams;
pub mod system;
pub mod temporary;
pub mod version;

pub use streams::{Stream, UnusableStream, check_streams, stdin};
