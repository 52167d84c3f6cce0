//! A model's weights by PyTorch's names, so that a state dict moves both ways.

use std::io;
use std::path::Path;

use tch::{Device, Kind, Tensor};

use super::weights_file::{self, Expected};
use crate::error::{Error, Result};

/// Named weights, in the order in which the model made them.
#[derive(Debug)]
pub struct Parameters {
    names: Vec<String>,
    tensors: Vec<Tensor>,
}

impl Parameters {
    pub(super) fn new() -> Self {
        Self { names: Vec::new(), tensors: Vec::new() }
    }

    /// Adds a weight to be trained; its place.
    pub(super) fn add(&mut self, name: String, value: &Tensor) -> usize {
        self.names.push(name);
        self.tensors.push(value.set_requires_grad(true));
        self.tensors.len() - 1
    }

    pub(super) fn at(&self, place: usize) -> &Tensor {
        &self.tensors[place]
    }

    /// All of them.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Their names, in the same order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many numbers are trained.
    pub fn n_numbers(&self) -> usize {
        self.tensors.iter().map(Tensor::numel).sum()
    }

    /// The gradients, an undefined tensor where there is none.
    pub fn gradients(&self) -> Vec<Tensor> {
        self.tensors.iter().map(Tensor::grad).collect()
    }

    /// Copies of the weights, for what may be put back later.
    pub fn copies(&self) -> Vec<Tensor> {
        self.tensors.iter().map(|tensor| tensor.detach().copy()).collect()
    }

    /// Puts values in the place of the weights, which are alike in number and shape.
    pub fn put(&mut self, values: &[Tensor]) -> Result<()> {
        copy(self.tensors.iter().zip(values))
    }

    /// Writes a safetensors file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write(&self.names, &self.tensors, path)
    }

    /// Reads what [`Parameters::write`] wrote; names, shapes and type must be this model's.
    pub fn read(&mut self, path: &Path) -> Result<()> {
        let values = read_like(&self.names, &self.tensors, path)?;
        self.put(&values)
    }

    /// Puts those weights of another model whose names are wanted in the place of this model's, which must have them.
    /// `path`: where the other model is from.
    pub(super) fn put_some(
        &mut self,
        other: &Self,
        path: &Path,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let mut pairs = Vec::new();
        for (name, value) in other.names.iter().zip(&other.tensors).filter(|(name, _)| is_wanted(name)) {
            let place = self.names.iter().position(|own| own == name).ok_or_else(|| Error::Weights {
                path: path.to_owned(),
                found: format!("a tensor {name}"),
                expected: format!("only such as the model has, {}", self.names.join(", ")),
            })?;
            let (to, expected) = (&self.tensors[place], self.tensors[place].size());
            if expected != value.size() {
                return Err(Error::Weights {
                    path: path.to_owned(),
                    found: format!("{name} of shape {:?}", value.size()),
                    expected: format!("shape {expected:?}"),
                });
            }
            pairs.push((to, value));
        }
        copy(pairs.into_iter())
    }
}

/// Puts each second tensor's numbers in the place of the first one's.
fn copy<'a>(mut pairs: impl Iterator<Item = (&'a Tensor, &'a Tensor)>) -> Result<()> {
    tch::no_grad(|| pairs.try_for_each(|(to, from)| Ok(to.shallow_clone().f_copy_(from)?)))
}

/// Writes tensors by name into a safetensors file.
pub(crate) fn write(names: &[String], tensors: &[Tensor], path: &Path) -> io::Result<()> {
    let on_cpu: Vec<Tensor> =
        tensors.iter().map(|tensor| tensor.detach().to_device(Device::Cpu).contiguous()).collect();
    let named: Vec<(&str, &Tensor)> = names.iter().map(String::as_str).zip(&on_cpu).collect();
    Tensor::write_safetensors(&named, path).map_err(io::Error::other)
}

/// The tensors of a safetensors file, which are those of these names and no others, like these in shape and type.
pub(crate) fn read_like(names: &[String], like: &[Tensor], path: &Path) -> Result<Vec<Tensor>> {
    let expected: Vec<Expected> = names
        .iter()
        .zip(like)
        .map(|(name, like)| Expected { name: name.clone(), shape: like.size() })
        .collect();
    // Where there is none, no number is read.
    let kind = like.first().map_or(Kind::Float, Tensor::kind);
    weights_file::read(&expected, kind, path)
}

/// Uniform in [-bound, bound], drawn on the processor, so that a seed gives the same weights on every device.
pub(super) fn uniform(shape: &[i64], bound: f64, place: (Kind, Device)) -> Tensor {
    (Tensor::rand(shape, (Kind::Double, Device::Cpu)) * (2.0 * bound) - bound)
        .to_kind(place.0)
        .to_device(place.1)
}

/// Normal with mean 0 and variance 1, drawn on the processor.
pub(super) fn normal(shape: &[i64], place: (Kind, Device)) -> Tensor {
    Tensor::randn(shape, (Kind::Double, Device::Cpu)).to_kind(place.0).to_device(place.1)
}
