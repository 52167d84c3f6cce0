//! Word vectors: their neighbours, analogies, similarities and distances, and files of other programs. Nothing here
//! needs tensors.

mod convert;
mod evaluate;
mod pip;

use std::io::{self, Write};

use serde::Serialize;

use crate::arguments::{Vectors, VectorsAction};
use crate::error::{Error, Result, STANDARD_OUTPUT};

/// Runs a command of word vectors.
pub(super) fn vectors(arguments: &Vectors) -> Result<()> {
    match &arguments.action {
        VectorsAction::Neighbours(arguments) => evaluate::neighbours(arguments),
        VectorsAction::Analogy(arguments) => evaluate::analogy(arguments),
        VectorsAction::Similarity(arguments) => evaluate::similarity(arguments),
        VectorsAction::Pip(arguments) => pip::pip(arguments),
        VectorsAction::Convert(arguments) => convert::convert(arguments),
    }
}

/// Prints an object as a line of JSON.
fn print_json(value: &impl Serialize) -> Result<()> {
    print_line(&serde_json::to_string(value).map_err(|error| Error::internal(&error))?)
}

fn print_line(line: &str) -> Result<()> {
    writeln!(io::stdout(), "{line}").map_err(|source| Error::io(STANDARD_OUTPUT.as_ref(), source))
}
