//! Matrices of a model, dense or quantised, and sums of their rows in the order of the program.

use std::io::{self, BufRead, Write};

use super::VALUE_LIMIT;
use super::quantizer::{Codes, Quantizer, write_floats};
use durable::{Result, Source};

/// Centroids and norms of a quantised matrix; their product stays below [`VALUE_LIMIT`].
const FACTOR_LIMIT: f32 = 1e6;

/// A matrix of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Matrix {
    /// All values.
    Dense(Dense),
    /// A byte per group of values.
    Quantised(Quantised),
}

/// All values of a matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    rows: usize,
    columns: usize,
    values: Vec<f32>,
}

/// A matrix whose rows are stored as codes of centroids.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantised {
    pub(super) rows: usize,
    pub(super) codes: Codes,
    /// If the rows are stored without their norms: the codes of the norms.
    pub(super) norms: Option<Codes>,
}

impl Matrix {
    pub(super) fn parse(source: &mut Source<'_, impl BufRead>, name: &'static str) -> Result<Self> {
        let is_quantised = source.bool(format_args!("the kind of {name}"))?;
        if is_quantised {
            parse_quantised(source, name).map(Self::Quantised)
        } else {
            parse_dense(source, name)
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.rows,
            Self::Quantised(quantised) => quantised.rows,
        }
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.columns,
            Self::Quantised(quantised) => quantised.codes.quantizer.columns,
        }
    }

    /// Adds a row to `sum`.
    pub fn add_row(&self, row: usize, sum: &mut [f32]) {
        match self {
            Self::Dense(dense) => {
                for (sum, value) in sum.iter_mut().zip(dense.row(row)) {
                    *sum += value;
                }
            }
            Self::Quantised(quantised) => {
                let norm = quantised.norm(row);
                quantised
                    .codes
                    .values(row)
                    .zip(sum)
                    .for_each(|(value, sum)| *sum = norm.mul_add(value, *sum));
            }
        }
    }

    /// The product of a row and a vector.
    pub fn dot_row(&self, row: usize, vector: &[f32]) -> f32 {
        let dot = |product: f32, (value, other): (f32, &f32)| value.mul_add(*other, product);
        match self {
            Self::Dense(dense) => dense.row(row).iter().copied().zip(vector).fold(0.0, dot),
            Self::Quantised(quantised) => {
                quantised.codes.values(row).zip(vector).fold(0.0, dot) * quantised.norm(row)
            }
        }
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Dense(dense) => {
                out.write_all(&[0])?;
                write_shape(out, dense.rows, dense.columns)?;
                write_floats(out, &dense.values)
            }
            Self::Quantised(quantised) => {
                out.write_all(&[1, u8::from(quantised.norms.is_some())])?;
                write_shape(out, quantised.rows, quantised.codes.quantizer.columns)?;
                let n = i32::try_from(quantised.codes.codes.len())
                    .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
                out.write_all(&n.to_le_bytes())?;
                quantised.codes.write(out)?;
                quantised.norms.iter().try_for_each(|norms| norms.write(out))
            }
        }
    }
}

impl Dense {
    /// A matrix of these values, row by row, or `None` if they do not fill whole rows.
    pub fn new(columns: usize, values: Vec<f32>) -> Option<Self> {
        let rows = values.len().checked_div(columns)?;
        (rows * columns == values.len()).then_some(Self { rows, columns, values })
    }

    /// The values of a row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.columns..][..self.columns]
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All values, row by row.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }
}

impl Quantised {
    fn norm(&self, row: usize) -> f32 {
        self.norms.as_ref().map_or(1.0, |norms| norms.values(row).next().unwrap_or(1.0))
    }
}

pub(super) fn write_shape(out: &mut impl Write, rows: usize, columns: usize) -> io::Result<()> {
    out.write_all(&(rows as i64).to_le_bytes())?;
    out.write_all(&(columns as i64).to_le_bytes())
}

fn parse_dense(source: &mut Source<'_, impl BufRead>, name: &'static str) -> Result<Matrix> {
    let (rows, columns) = parse_shape(source, name)?;
    let values = source.floats(name, (rows as u64).saturating_mul(columns as u64), VALUE_LIMIT)?;
    Ok(Matrix::Dense(Dense { rows, columns, values }))
}

fn parse_quantised(source: &mut Source<'_, impl BufRead>, name: &'static str) -> Result<Quantised> {
    let has_norms = source.bool(format_args!("the kind of norms of {name}"))?;
    let (rows, columns) = parse_shape(source, name)?;
    let n_codes = source.size_i32(format_args!("the number of codes of {name}"), i32::MAX as u32)?;
    let codes = source.bytes(format_args!("the codes of {name}"), n_codes as u64)?;
    let limit = if has_norms { FACTOR_LIMIT } else { VALUE_LIMIT };
    let quantizer = Quantizer::parse(source, name, columns, limit)?;
    if rows.checked_mul(quantizer.parts) != Some(n_codes) {
        let expected = format!("{rows} rows × {} parts", quantizer.parts);
        return Err(source.unexpected(format_args!("the number of codes of {name}"), n_codes, expected));
    }
    let norms = match has_norms {
        false => None,
        true => {
            let codes = source.bytes(format_args!("the norms of {name}"), rows as u64)?;
            Some(Codes { codes, quantizer: Quantizer::parse(source, name, 1, FACTOR_LIMIT)? })
        }
    };
    Ok(Quantised { rows, codes: Codes { codes, quantizer }, norms })
}

/// Rows and columns. Their product is not checked here: it fits in the file if the values do.
fn parse_shape(source: &mut Source<'_, impl BufRead>, name: &'static str) -> Result<(usize, usize)> {
    let mut size = |what: &str| {
        let found = source.i64(format_args!("the number of {what} of {name}"))?;
        let size = u32::try_from(found).ok().filter(|&size| size <= i32::MAX as u32);
        let field = format_args!("the number of {what} of {name}");
        size.map(|size| size as usize)
            .ok_or_else(|| source.unexpected(field, found, format_args!("0 to {}", i32::MAX)))
    };
    Ok((size("rows")?, size("columns")?))
}
