//! How every program begins and ends: descriptors into standard streams that can be used, arguments into local places,
//! errors into one line and an exit code. Knows nothing of what is read or written.

mod descriptors;
pub mod exit;
pub mod pipe;
pub mod place;
pub mod progress;
pub mod size;
mod streams;
pub mod version;

pub use streams::{Stream, UnusableStream, check_streams, stdin};
