//! Writes files and folders that appear completely or not at all, and reads hostile ones.
//!
//! [`new_file()`] writes one file. [`folder`] writes a folder with the digests of its files, and reads one. [`output`]
//! computes the SHA-256 of a file while it is written. [`Source`] reads little-endian fields, none of which exceeds the
//! file. [`npy`] has the header of NumPy's arrays. An error states the file, the field, the value found, the expected ones and a remedy.
//!
//! Nothing here knows the meaning of a file.

mod error;
pub mod folder;
mod new_file;
pub mod npy;
pub mod output;
mod source;

pub use error::{At, Error, Result};
pub use folder::NewFolder;
pub use new_file::{check_free, new_file, sync_folder};
pub use output::{Output, Summary};
pub use source::Source;
