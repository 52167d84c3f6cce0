//! Computes the classifier with the built-in kernels on the CPU.

use batches::Batch;
use kernels::{Engine, Share};
use runs::recipe::{Dropout, LstmSettings, Pool, Precision, Recipe};
use tch::{Kind, Tensor};

use super::loss::{row_loss, soft_row_loss};
use super::{Classifier, Places};
use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::families::lstm::Lstm;
use crate::families::words::drop_words;
use crate::ffi::{numbers, numbers_mut};
use crate::inputs::token_rows;
use crate::train::step::InStep;

/// Kernels for a classifier, if its sizes are supported.
pub(crate) fn engine(classifier: &Classifier, compute: &Compute, dropout: Dropout) -> Option<Engine> {
    let sizes = classifier.kernel_sizes()?;
    let is_supported = sizes.is_supported()
        && dropout.embedding == 0.0
        && classifier.lstm.parameters().tensors().iter().all(|tensor| tensor.kind() == Kind::Float);
    compute.shared_team().filter(|_| is_supported).map(|team| Engine::new(sizes, team))
}

/// Returns a setting of the recipe that the kernels do not support, and the values that they support; `None`
/// if they support the recipe.
pub fn unsupported(recipe: &Recipe) -> Option<(String, &'static str)> {
    let LstmSettings { hidden, bidirectional, .. } = recipe.model;
    if bidirectional {
        Some(("--bidirectional is set".to_owned(), "one direction"))
    } else if !(hidden as usize).is_multiple_of(kernels::Sizes::HIDDEN_MULTIPLE) {
        Some((format!("--hidden is {hidden}"), "multiples of 16"))
    } else if recipe.dropout.embedding > 0.0 {
        Some((format!("--dropout-embedding is {}", recipe.dropout.embedding), "0"))
    } else if recipe.precision != Precision::F32 {
        Some(("--precision is not f32".to_owned(), "f32"))
    } else {
        None
    }
}

/// Adds the gradients of a share's rows. `soft` has their soft labels, `[B, K]`, if there are any. Returns the weighted sum of their losses.
pub(crate) fn add_gradients(
    engine: &mut Engine,
    gradients: &mut [Tensor],
    dropout: Dropout,
    classifier: &Classifier,
    batch: &Batch,
    soft: Option<&[f32]>,
    step: InStep,
) -> Result<f64> {
    let objective = classifier.settings.objective;
    let soft = soft.map(|soft| (soft, soft.len() / batch.rows.len()));
    let tokens = drop_words(batch, dropout.words, step.masks);
    let rows = token_rows(batch, &tokens);
    let loss = |row: usize, outputs: &[f32], gradients: &mut [f32]| {
        let weight = batch.weights[row];
        let loss = match soft {
            Some((soft, n_classes)) => {
                soft_row_loss(objective, outputs, &soft[row * n_classes..][..n_classes], gradients)
            }
            None => row_loss(objective, outputs, batch.labels[row], batch.ratings[row], gradients),
        };
        let by = weight / step.rows as f64;
        gradients.iter_mut().for_each(|gradient| *gradient = (f64::from(*gradient) * by) as f32);
        loss * weight
    };
    let dropout = masks_of(dropout, step.masks, batch.first_row);
    let weights = classifier.weights()?;
    let mut gradients = classifier.numbers_of(gradients)?;
    Ok(engine.train(&weights, rows, &dropout, &loss, &mut gradients))
}

fn masks_of(dropout: Dropout, seed: u64, first_row: usize) -> kernels::Dropout {
    kernels::Dropout { layers: Share::of(dropout.layers), head: Share::of(dropout.head), seed, first_row }
}

impl Classifier {
    /// Its sizes for the kernels, if the kernels support this kind of model.
    fn kernel_sizes(&self) -> Option<kernels::Sizes> {
        let LstmSettings { ids, embedding, hidden, layers, bidirectional: false } = *self.lstm.settings()
        else {
            return None;
        };
        Some(kernels::Sizes {
            ids: ids as usize,
            embedding: embedding as usize,
            hidden: hidden as usize,
            layers,
            linear: self.settings.linear as usize,
            outputs: self.settings.objective.n_outputs(),
            pool: match self.settings.pool {
                Pool::Last => kernels::Pool::Last,
                Pool::MeanMax => kernels::Pool::MeanMax,
            },
        })
    }

    /// Its weights, which must be 32-bit tensors on the CPU.
    pub(super) fn weights(&self) -> Result<kernels::Parameters<&[f32]>> {
        let numbers = self.lstm.parameters().tensors().iter().map(numbers).collect::<Option<Vec<_>>>();
        Ok(self.arranged(numbers.ok_or_else(not_plain)?))
    }

    /// The elements of tensors with the same shapes as its weights, mutable.
    fn numbers_of<'a>(&self, tensors: &'a mut [Tensor]) -> Result<kernels::Parameters<&'a mut [f32]>> {
        let numbers = tensors.iter_mut().map(numbers_mut).collect::<Option<Vec<_>>>();
        Ok(self.arranged(numbers.ok_or_else(not_plain)?))
    }

    /// Arranges one item per weight in the order of the kernels.
    fn arranged<T>(&self, each: Vec<T>) -> kernels::Parameters<T> {
        let Places { linear, output } = self.places;
        let mut each: Vec<Option<T>> = each.into_iter().map(Some).collect();
        let mut take = |place: usize| each[place].take().expect("each weight has one place in the model");
        kernels::Parameters {
            embedding: take(Lstm::EMBEDDING),
            layers: self.lstm.layers().iter().map(|directions| directions[0].map(&mut take)).collect(),
            linear: linear.map(&mut take),
            output: output.map(&mut take),
        }
    }
}

fn not_plain() -> Error {
    Error::internal(&"a tensor of the kernels is not contiguous with f32 elements")
}
