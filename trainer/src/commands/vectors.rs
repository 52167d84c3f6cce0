//! Word vectors: their neighbours, analogies, similarities and distances, and files of other programs. Nothing here
//! needs tensors.

mod convert;
mod evaluate;
mod pip;

use crate::arguments::{Vectors, VectorsAction};
use crate::error::Result;

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
