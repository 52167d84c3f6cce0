//! A second, slow implementation of the corpus crate's contract with other libraries. Tests and fuzz targets
//! compare the crate with it.
#![allow(clippy::unwrap_used, reason = "tests alone use it, and a panic is their failure")]

pub mod clean;
pub mod json;
