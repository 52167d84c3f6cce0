//! The contract of the corpus crate read a second time, slowly and by other libraries: what its tests and the fuzz
//! targets hold its answers against.
#![allow(clippy::unwrap_used, reason = "tests alone use it, and a panic is their failure")]

pub mod clean;
pub mod json;
