//! Writes files and folders that appear completely or not at all, and reads hostile ones.
//!
//! [`new_file()`] and [`replace_file()`] write one file. [`NewFolder`] writes a folder with the digests of its files, and
//! [`sums`] reads one.
//! [`output`] computes the SHA-256 of a file while it is written,
//! [`mod@sha256`] that of an existing one. [`read_bounded()`] reads a file of limited size, and
//! [`Source`] reads little-endian fields, none of which exceeds the file. [`npy`] has the header of NumPy's arrays. An
//! error states the file, the field, the value found, the expected ones and a remedy.
//!
//! Nothing here knows the meaning of a file.

mod error;
mod new_file;
mod new_folder;
pub mod npy;
pub mod output;
mod read;
mod replace;
pub mod sha256;
mod source;
pub mod sums;

pub use error::{At, Error, Result};
pub use new_file::{check_free, new_file, replace_file, sync_folder};
pub use new_folder::NewFolder;
pub use output::Output;
pub use read::{REMEDY, check_regular, read_bounded};
pub use replace::{delete_together, replace_folder};
pub use sha256::Summary;
pub use source::Source;
