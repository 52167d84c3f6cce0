//! A model's weights under PyTorch's names, for exchange of state dicts.

use std::io;
use std::path::Path;

use safetensors::SafeTensorError;
use tch::{Device, Kind, TchError, Tensor};

use super::weights_file::{self, Expected};
use crate::error::{Error, Result};

/// Named weights, in order of creation.
#[derive(Debug)]
pub struct Parameters {
    names: Vec<String>,
    tensors: Vec<Tensor>,
}

impl Parameters {
    pub(super) fn new() -> Self {
        Self { names: Vec::new(), tensors: Vec::new() }
    }

    /// Adds a weight to train. Returns its index.
    pub(super) fn add(&mut self, name: String, value: &Tensor) -> usize {
        self.names.push(name);
        self.tensors.push(value.set_requires_grad(true));
        self.tensors.len() - 1
    }

    pub(super) fn at(&self, place: usize) -> &Tensor {
        &self.tensors[place]
    }

    /// The weights.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Their names, in the same order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of trained parameters.
    pub fn n_numbers(&self) -> usize {
        self.tensors.iter().map(Tensor::numel).sum()
    }

    /// The gradients; an undefined tensor if there is none.
    pub fn gradients(&self) -> Vec<Tensor> {
        self.tensors.iter().map(Tensor::grad).collect()
    }

    /// Copies of the weights, to restore later.
    pub fn copies(&self) -> Result<Vec<Tensor>> {
        self.tensors.iter().map(|tensor| Ok(tensor.detach().f_detach_copy()?)).collect()
    }

    /// Copies values with the same shapes into the weights.
    pub fn put(&mut self, values: &[Tensor]) -> Result<()> {
        copy(self.tensors.iter().zip(values))
    }

    /// Writes a safetensors file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write(&self.names, &self.tensors, path)
    }

    /// Reads a file of [`Parameters::write`]. Names, shapes and type must match this model's.
    pub fn read(&mut self, path: &Path) -> Result<()> {
        let values = read_like(&self.names, &self.tensors, path)?;
        self.put(&values)
    }

    /// Copies the weights of another model that `is_wanted` selects. This model must have weights with the same names
    /// and shapes. `path`: the file of the other model.
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
                expected: format!("only the tensors of the model, {}", self.names.join(", ")),
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

/// Copies each second tensor into the first one.
fn copy<'a>(mut pairs: impl Iterator<Item = (&'a Tensor, &'a Tensor)>) -> Result<()> {
    tch::no_grad(|| pairs.try_for_each(|(to, from)| Ok(to.shallow_clone().f_copy_(from)?)))
}

/// Writes tensors by name into a safetensors file.
pub(crate) fn write(names: &[String], tensors: &[Tensor], path: &Path) -> io::Result<()> {
    let on_cpu = tensors.iter().map(|tensor| tensor.detach().f_to_device(Device::Cpu)?.f_contiguous());
    let on_cpu: Vec<Tensor> = on_cpu.collect::<std::result::Result<_, _>>().map_err(io::Error::other)?;
    let named: Vec<(&str, &Tensor)> = names.iter().map(String::as_str).zip(&on_cpu).collect();
    Tensor::write_safetensors(&named, path).map_err(|error| match error {
        // Its text has the debug format of the error of the operating system, which messages translate.
        TchError::SafeTensorError { err: SafeTensorError::IoError(source), .. } => source,
        error => io::Error::other(error),
    })
}

/// Reads a safetensors file with exactly these tensor names, and the shapes and types of `like`.
pub(crate) fn read_like(names: &[String], like: &[Tensor], path: &Path) -> Result<Vec<Tensor>> {
    let expected: Vec<Expected> = names
        .iter()
        .zip(like)
        .map(|(name, like)| Expected { name: name.clone(), shape: like.size() })
        .collect();
    // Without tensors, the type does not matter.
    let kind = like.first().map_or(Kind::Float, Tensor::kind);
    weights_file::read(&expected, kind, path)
}

/// Uniform in [-bound, bound]. Drawn on the CPU, so that a seed gives the same weights on every device.
pub(super) fn uniform(shape: &[i64], bound: f64, (kind, device): (Kind, Device)) -> Result<Tensor> {
    let from_0_to_1 = Tensor::f_rand(shape, (Kind::Double, Device::Cpu))?;
    let numbers = from_0_to_1.f_mul_scalar(2.0 * bound)?.f_sub_scalar(bound)?;
    Ok(numbers.f_to_kind(kind)?.f_to_device(device)?)
}

/// Normal, with mean 0. Drawn on the CPU.
pub(super) fn normal(shape: &[i64], std: f64, (kind, device): (Kind, Device)) -> Result<Tensor> {
    let numbers = Tensor::f_randn(shape, (Kind::Double, Device::Cpu))?.f_mul_scalar(std)?;
    Ok(numbers.f_to_kind(kind)?.f_to_device(device)?)
}
