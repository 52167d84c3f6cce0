//! Writes word vectors as text: the format `.vec` of fastText.
//!
//! ```text
//! 2 3
//! the 0.01 -1.25 0.5
//! film 1e-05 2 -0.125
//! ```
//!
//! The first line has the number of words and the dimension. Values have five significant digits and end with a space.

use std::io::{BufWriter, Write};
use std::path::Path;

use super::bin;
use durable::{Result, new_file};

/// Significant digits, less one.
const DIGITS: usize = 4;

/// Writes the vectors of all words of a model: the mean of the row of the word and those of its character n-grams.
pub fn write_model(path: &Path, model: &bin::BinModel) -> Result<()> {
    let names = model.entries().dictionary().words().iter();
    write(path, model.args().dim, names, |word, vector| model.add_vector(word as u32, vector))
}

/// Writes the vectors of words. `add` adds the vector of a word, by its position, to zeros. The file must not exist; on
/// return, it is durable.
pub fn write<'a>(
    path: &Path,
    dim: usize,
    names: impl ExactSizeIterator<Item = &'a [u8]>,
    mut add: impl FnMut(usize, &mut [f32]),
) -> Result<()> {
    new_file(path, |file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        writeln!(out, "{} {dim}", names.len())?;
        let mut vector = vec![0.0; dim];
        let mut line = Vec::new();
        for (id, name) in names.enumerate() {
            vector.fill(0.0);
            add(id, &mut vector);
            line.clear();
            line.extend_from_slice(name);
            line.push(b' ');
            for &value in &vector {
                push_value(value, &mut line);
                line.push(b' ');
            }
            line.push(b'\n');
            out.write_all(&line)?;
        }
        out.flush()
    })
}

/// Appends a value as C's `%.5g` prints it.
fn push_value(value: f32, line: &mut Vec<u8>) {
    let scientific = format!("{value:.DIGITS$e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        // Not finite.
        line.extend_from_slice(scientific.as_bytes());
        return;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..=DIGITS as i32).contains(&exponent) {
        let decimals = (DIGITS as i32 - exponent) as usize;
        line.extend_from_slice(without_zeros(&format!("{value:.decimals$}")).as_bytes());
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let text = format!("{}e{sign}{:02}", without_zeros(digits), exponent.abs());
        line.extend_from_slice(text.as_bytes());
    }
}

/// Removes zeros at the end of a decimal fraction.
fn without_zeros(decimal: &str) -> &str {
    if decimal.contains('.') { decimal.trim_end_matches('0').trim_end_matches('.') } else { decimal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_as_by_c() {
        let printed = |value| {
            let mut line = Vec::new();
            push_value(value, &mut line);
            String::from_utf8(line).unwrap()
        };
        // From printf("%.5g").
        let expected = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-0.5, "-0.5"),
            (0.123_456_78, "0.12346"),
            (0.000_123_456, "0.00012346"),
            (0.000_012_345_6, "1.2346e-05"),
            (99_999.4, "99999"),
            (99_999.9, "1e+05"),
            (123_456.0, "1.2346e+05"),
            (0.099_999_99, "0.1"),
            (12.5, "12.5"),
            (1e-20, "1e-20"),
        ];
        for (value, text) in expected {
            assert_eq!(printed(value), text, "{value}");
        }
    }
}
