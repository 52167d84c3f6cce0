//! Encodes shapes as tensors, so that ranks can compare them.

use tch::{Kind, Tensor};

use crate::error::{Error, Result};

/// Maximum dimensions of a tensor whose shape is compared; practical tensors have fewer.
pub(crate) const DIMENSIONS_MAX: usize = 8;
/// Length of an encoded shape: kind, number of dimensions, sizes.
const NUMBERS: usize = 2 + DIMENSIONS_MAX;

/// Element kinds; the index encodes the kind.
const KINDS: [Kind; 12] = [
    Kind::Uint8,
    Kind::Int8,
    Kind::Int16,
    Kind::Int,
    Kind::Int64,
    Kind::Half,
    Kind::BFloat16,
    Kind::Float,
    Kind::Double,
    Kind::ComplexFloat,
    Kind::ComplexDouble,
    Kind::Bool,
];

/// A tensor's kind and sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    kind: i64,
    sizes: Vec<i64>,
}

impl Shape {
    /// None if the kind or the number of dimensions is not supported.
    pub fn of(tensor: &Tensor) -> Option<Self> {
        let sizes = tensor.size();
        let kind = KINDS.iter().position(|&kind| kind == tensor.kind())? as i64;
        (sizes.len() <= DIMENSIONS_MAX).then_some(Self { kind, sizes })
    }

    /// `[NUMBERS]`, int64.
    pub fn to_tensor(&self) -> Tensor {
        let mut numbers = vec![self.kind, self.sizes.len() as i64];
        numbers.extend(&self.sizes);
        numbers.resize(NUMBERS, 0);
        Tensor::from_slice(&numbers)
    }

    /// `[NUMBERS]`: a buffer for a shape.
    pub fn blank() -> Tensor {
        Tensor::zeros([NUMBERS as i64], (Kind::Int64, tch::Device::Cpu))
    }

    /// A tensor of this shape with arbitrary content.
    pub fn empty(&self, call: &str, device: tch::Device) -> Result<Tensor> {
        let kind = usize::try_from(self.kind).ok().and_then(|place| KINDS.get(place)).copied();
        Tensor::f_empty(&self.sizes, (kind.unwrap_or(Kind::Uint8), device))
            .map_err(|error| Error::torch(call, &error))
    }

    /// The inverse of `to_tensor`.
    pub fn from_tensor(call: &str, tensor: &Tensor) -> Result<Self> {
        let numbers = Vec::<i64>::try_from(tensor).map_err(|error| Error::torch(call, &error))?;
        let n_dimensions = usize::try_from(numbers[1]).unwrap_or(0).min(DIMENSIONS_MAX);
        Ok(Self { kind: numbers[0], sizes: numbers[2..2 + n_dimensions].to_vec() })
    }

    /// The first dimension; 0 if there is none.
    pub fn rows(&self) -> i64 {
        self.sizes.first().copied().unwrap_or(0)
    }

    pub fn agrees_but_for_rows(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.sizes.len() == other.sizes.len()
            && self.sizes.get(1..) == other.sizes.get(1..)
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = usize::try_from(self.kind).ok().and_then(|place| KINDS.get(place));
        match kind {
            Some(kind) => write!(f, "shape {:?} and kind {kind:?}", self.sizes),
            None => write!(f, "shape {:?} and an unknown kind", self.sizes),
        }
    }
}
