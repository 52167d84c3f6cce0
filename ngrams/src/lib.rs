//! The program `ngrams`. Its commands ([`commands`]) convert flags ([`arguments`], [`flags`]) into calls of the crate
//! [`mod@classifiers`], whose models the [`classifier`] evaluates, explains and asks for answers.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

pub mod arguments;
pub mod classifier;
pub mod commands;
pub mod flags;
mod input;
