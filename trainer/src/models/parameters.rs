//! A model's weights by PyTorch's names, so that a state dict moves both ways.

use std::io;
use std::path::Path;

use tch::{Device, Kind, Tensor};

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

    /// Reads what [`Parameters::write`] wrote; the names and shapes must be this model's.
    pub fn read(&mut self, path: &Path) -> Result<()> {
        let values = read(&self.names, path)?;
        let places: Vec<usize> = (0..values.len()).collect();
        self.put_at(&places, &values, path)
    }

    /// Reads those weights of another model whose names are wanted, and which this model must have.
    pub fn read_some(&mut self, path: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<()> {
        let (mut places, mut values) = (Vec::new(), Vec::new());
        let mut found = Tensor::read_safetensors(path)?;
        // They come in any order, and an error is to name the same one each time.
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (name, value) in found.into_iter().filter(|(name, _)| is_wanted(name)) {
            places.push(self.names.iter().position(|own| *own == name).ok_or_else(|| Error::Weights {
                path: path.to_owned(),
                found: format!("a tensor {name}"),
                expected: format!("only such as the model has, {}", self.names.join(", ")),
            })?);
            values.push(value);
        }
        self.put_at(&places, &values, path)
    }

    fn put_at(&mut self, places: &[usize], values: &[Tensor], path: &Path) -> Result<()> {
        for (&place, value) in places.iter().zip(values) {
            let (name, expected) = (&self.names[place], self.tensors[place].size());
            if expected != value.size() {
                return Err(Error::Weights {
                    path: path.to_owned(),
                    found: format!("{name} of shape {:?}", value.size()),
                    expected: format!("shape {expected:?}"),
                });
            }
        }
        copy(places.iter().map(|&place| &self.tensors[place]).zip(values))
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

/// The tensors of a safetensors file, in the order of these names; no other may be in it.
pub(crate) fn read(names: &[String], path: &Path) -> Result<Vec<Tensor>> {
    let mut found = Tensor::read_safetensors(path)?;
    let mut values = Vec::with_capacity(names.len());
    for name in names {
        let place = found.iter().position(|(found, _)| found == name).ok_or_else(|| Error::Weights {
            path: path.to_owned(),
            found: "no such tensor".to_owned(),
            expected: name.clone(),
        })?;
        values.push(found.swap_remove(place).1);
    }
    if let Some(name) = found.iter().map(|(name, _)| name).min() {
        return Err(Error::Weights {
            path: path.to_owned(),
            found: format!("a tensor {name}"),
            expected: format!("only those of the model, {}", names.join(", ")),
        });
    }
    Ok(values)
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
