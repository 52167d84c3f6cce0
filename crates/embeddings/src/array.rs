//! Arrays of 32-bit floats `[rows, columns]` in NumPy's files.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Write};
use std::path::Path;

use durable::npy::{self, Header};
use durable::output::WriteNumbers;
use durable::{At, Error, Output, Result, Source};

/// Larger magnitudes are damage. Below this limit, no sum or product of vectors overflows.
pub(crate) const VALUE_LIMIT: f32 = 1e12;
const BUFFER_BYTES: usize = 1 << 20;
/// Floats that are computed before they are written.
const PIECE: usize = 1 << 18;

/// Writes an array whose rows `row` writes into a slice. Returns the first value that is not finite or too large, which
/// [`read`] would refuse.
pub(crate) fn write(
    out: &mut Output<'_>,
    [n_rows, n_columns]: [usize; 2],
    row: &(dyn Fn(usize, &mut [f32]) + Sync),
) -> io::Result<Option<f32>> {
    out.write_all(&npy::header(n_rows, n_columns))?;
    let together = (PIECE / n_columns).max(1);
    let mut values = vec![0.0; together * n_columns];
    for first in (0..n_rows).step_by(together) {
        let values = &mut values[..together.min(n_rows - first) * n_columns];
        values.chunks_exact_mut(n_columns).zip(first..).for_each(|(values, number)| row(number, values));
        if let Some(&bad) = values.iter().find(|value| !is_sound(value)) {
            return Ok(Some(bad));
        }
        out.floats(values)?;
    }
    Ok(None)
}

/// Whether a file can have a value: whether it is finite and of a magnitude below 1e12.
pub fn is_sound(value: &f32) -> bool {
    // The comparison is false for NaN.
    value.abs() < VALUE_LIMIT
}

/// Reads an array and its shape. Its size is compared with the bytes of the file before memory is allocated.
pub(crate) fn read(path: &Path, remedy: &'static str) -> Result<([usize; 2], Vec<f32>)> {
    let refused =
        |field: &str, found: String, expected: &str| Error::unexpected(path, field, found, expected, remedy);
    let file = File::open(path).at(path, "open it")?;
    let n_bytes = file.metadata().at(path, "read its metadata")?.len();
    let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
    let header = match Header::read(&mut file) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => None,
        read => read.at(path, "read it")?,
    };
    let Some(header) = header else {
        return Err(refused("its content", "something else".to_owned(), "an array of NumPy"));
    };
    let Some([n_rows, n_columns]) = header.shape() else {
        let expected = "'<f4' in C order with two dimensions, none of them 0: numpy.float32(array)";
        return Err(refused("the header", header.dict.trim().to_owned(), expected));
    };
    let mut source = Source::new(file, n_bytes.saturating_sub(header.bytes), path, remedy);
    let values = source.floats("the array", n_rows.saturating_mul(n_columns), VALUE_LIMIT)?;
    source.end("the array")?;
    // The values are in memory, so their number fits.
    Ok(([n_rows as usize, n_columns as usize], values))
}

/// Reads an array of this shape.
pub(crate) fn read_of_shape(path: &Path, shape: [usize; 2], remedy: &'static str) -> Result<Vec<f32>> {
    let (found, values) = read(path, remedy)?;
    match found == shape {
        true => Ok(values),
        false => {
            let [found, expected] = [found, shape].map(|[rows, columns]| format!("({rows}, {columns})"));
            Err(Error::unexpected(path, "the shape", found, expected, remedy))
        }
    }
}
