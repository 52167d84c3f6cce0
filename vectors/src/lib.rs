//! The program `vectors`. Its commands ([`commands`]) convert flags ([`arguments`], [`flags`]) into calls of the crates
//! [`embeddings`], which trains and compares vectors, and [`parameters`], by which workers train together.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

pub mod arguments;
pub mod commands;
pub mod flags;
