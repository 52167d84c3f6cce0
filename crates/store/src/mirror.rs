//! Copies folders to a prefix of a store, whole or not at all, and back.
//!
//! A [`Bundle`] is a list of files and one last file. It is complete if the last object exists; readers ignore
//! an incomplete one. [`fetch()`] copies the objects that a list `SHA256SUMS` names and compares them with it;
//! [`fetch_cached`] does so once per machine. A [`Claim`] makes one process the writer of a prefix. An [`Upload`]
//! runs beside the work whose results it stores.
//!
//! No object of a complete bundle is replaced. This module does not depend on the content of the files.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

mod bundle;
mod claim;
mod error;
mod fetch;
mod uploads;

pub use bundle::{Bundle, Leftovers, SUMS, put, sums_of};
pub use claim::{Claim, DEAD_AFTER, Standing, standing};
pub use error::{MirrorError, Result};
pub use fetch::{fetch, fetch_cached, fetch_named, fetch_whole};
pub use uploads::{Upload, Uploads, persistently};
