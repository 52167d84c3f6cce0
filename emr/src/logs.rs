//! Finds the logs of a job in a folder, in S3 or by name, and reads them line by line.
//!
//! Memory is bounded: a listing keeps at most [`LISTED_MAX`] logs, and a line at most [`LINE_BYTES_MAX`] bytes.

mod lines;
mod origin;
mod source;
mod utc;

pub use lines::{LINE_BYTES_MAX, LOG_BYTES_MAX, LogLines};
pub use origin::{LogOrigin, Section, application_of, container_of, is_log, place_of, stem, step_of};
pub use source::{LISTED_MAX, Listing, Log, cluster_folder, list};
pub use utc::utc;
