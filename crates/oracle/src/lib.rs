//! A second, slow implementation of the contract of the crate `corpus`, which uses other libraries. Tests and
//! fuzz targets compare the results of both.
#![allow(clippy::unwrap_used, reason = "tests alone use it, and a panic is their failure")]

pub mod clean;
pub mod json;
