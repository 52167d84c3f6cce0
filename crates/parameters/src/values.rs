//! Values of rows as bytes, and back.
//!
//! | encoding | bytes of a row |
//! |---|---|
//! | f32 | `dim` floats |
//! | bf16 | the upper halves of `dim` floats, rounded to the nearest, ties to even |
//! | top-k | `k` ascending indices, `u16` each, then their `k` floats; other values are 0 |
//!
//! All numbers are little-endian.

use std::str::FromStr;

use crate::messages::RowUpdates;
use crate::refusal::Refusal;

/// How values are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// 32 bits per value.
    F32,
    /// 16 bits per value.
    Bf16,
    /// The largest values of a row, 48 bits each.
    TopK(u32),
}

impl FromStr for Wire {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || "expected f32, bf16, or top-K with the number of values per row, such as top-16".to_owned();
        match text {
            "f32" => Ok(Self::F32),
            "bf16" => Ok(Self::Bf16),
            _ => {
                let k = text.strip_prefix("top-").and_then(|k| k.parse().ok()).filter(|&k| k > 0);
                k.map(Self::TopK).ok_or_else(expected)
            }
        }
    }
}

impl Wire {
    /// Bytes of a row.
    pub(crate) fn row_bytes(self, dim: usize) -> usize {
        match self {
            Self::F32 => 4 * dim,
            Self::Bf16 => 2 * dim,
            Self::TopK(k) => 6 * (k as usize).min(dim),
        }
    }

    /// The number of the encoding, and its k.
    pub(crate) fn to_fields(self, dim: usize) -> (u32, u32) {
        match self {
            Self::F32 => (0, 0),
            Self::Bf16 => (1, 0),
            Self::TopK(k) => (2, k.min(dim as u32)),
        }
    }

    /// Appends the bytes of rows, and subtracts what they stand for from the values: what is left was not sent.
    pub(crate) fn encode(self, values: &mut [f32], dim: usize, bytes: &mut Vec<u8>) {
        match self {
            Self::F32 => {
                bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                values.fill(0.0);
            }
            Self::Bf16 => {
                for value in values {
                    let sent = to_bf16(*value);
                    bytes.extend(sent.to_le_bytes());
                    *value -= of_bf16(sent);
                }
            }
            Self::TopK(k) => {
                let k = (k as usize).min(dim);
                let mut order: Vec<u16> = Vec::with_capacity(dim);
                for row in values.chunks_exact_mut(dim) {
                    order.clear();
                    order.extend(0..dim as u16);
                    let by_size =
                        |a: &u16, b: &u16| row[*b as usize].abs().total_cmp(&row[*a as usize].abs());
                    if k < dim {
                        order.select_nth_unstable_by(k - 1, by_size);
                    }
                    let sent = &mut order[..k];
                    sent.sort_unstable();
                    bytes.extend(sent.iter().flat_map(|at| at.to_le_bytes()));
                    for &at in &*sent {
                        bytes.extend(std::mem::take(&mut row[at as usize]).to_le_bytes());
                    }
                }
            }
        }
    }
}

/// The upper half of a float, rounded to the nearest, ties to even.
fn to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

fn of_bf16(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// The floats of bytes.
pub(crate) fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes))
}

/// Row numbers as bytes.
pub(crate) fn to_bytes(rows: &[u32]) -> Vec<u8> {
    rows.iter().flat_map(|row| row.to_le_bytes()).collect()
}

/// Row numbers of bytes.
pub(crate) fn of_bytes(bytes: &[u8]) -> Result<impl ExactSizeIterator<Item = u32> + Clone + '_, Refusal> {
    let (rows, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        let found = bytes.len();
        return Err(Refusal::invalid(format!("{found} bytes of row numbers, expected a multiple of 4")));
    }
    Ok(rows.iter().map(|&bytes| u32::from_le_bytes(bytes)))
}

/// The values of an update, decoded row by row: a message of top-k may stand for much more memory than it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded<'a> {
    bytes: &'a [u8],
    wire: Wire,
    row_bytes: usize,
}

impl<'a> Encoded<'a> {
    /// The values of `n_rows` rows. Refuses other lengths, and values that are not finite numbers.
    pub(crate) fn of(update: &'a RowUpdates, n_rows: usize, dim: usize) -> Result<Self, Refusal> {
        let wire = match (update.encoding, update.k) {
            (0, 0) => Wire::F32,
            (1, 0) => Wire::Bf16,
            (2, k) if k > 0 && k as usize <= dim => Wire::TopK(k),
            (encoding, k) => {
                return Err(Refusal::invalid(format!("encoding {encoding} with k {k}, expected 0, 1 or 2")));
            }
        };
        let row_bytes = wire.row_bytes(dim);
        if Some(update.values.len()) != n_rows.checked_mul(row_bytes) {
            let found = update.values.len();
            return Err(Refusal::invalid(format!(
                "{found} bytes of values for {n_rows} rows, expected {row_bytes} per row"
            )));
        }
        let encoded = Self { bytes: &update.values, wire, row_bytes };
        encoded.check(dim)?;
        Ok(encoded)
    }

    fn check(&self, dim: usize) -> Result<(), Refusal> {
        let is_finite = match self.wire {
            Wire::F32 => floats(self.bytes).all(f32::is_finite),
            Wire::Bf16 => halves(self.bytes).all(|half| of_bf16(half).is_finite()),
            Wire::TopK(k) => {
                for row in self.bytes.chunks_exact(self.row_bytes) {
                    let indices = halves(&row[..2 * k as usize]);
                    let is_ascending = indices.clone().zip(indices.clone().skip(1)).all(|(a, b)| a < b);
                    if !is_ascending || indices.last().is_some_and(|last| last as usize >= dim) {
                        return Err(Refusal::invalid(format!(
                            "indices of top-k, expected ascending ones below {dim}"
                        )));
                    }
                }
                let rows = self.bytes.chunks_exact(self.row_bytes);
                rows.flat_map(|row| floats(&row[2 * k as usize..])).all(f32::is_finite)
            }
        };
        if is_finite { Ok(()) } else { Err(Refusal::not_finite()) }
    }

    /// Calls `add` with each index and value of a row.
    #[inline]
    pub(crate) fn row(&self, at: usize, mut add: impl FnMut(usize, f32)) {
        let row = &self.bytes[at * self.row_bytes..][..self.row_bytes];
        match self.wire {
            Wire::F32 => floats(row).enumerate().for_each(|(at, value)| add(at, value)),
            Wire::Bf16 => halves(row).enumerate().for_each(|(at, half)| add(at, of_bf16(half))),
            Wire::TopK(k) => {
                let (indices, values) = row.split_at(2 * k as usize);
                halves(indices).zip(floats(values)).for_each(|(at, value)| add(at as usize, value));
            }
        }
    }
}

fn halves(bytes: &[u8]) -> impl Iterator<Item = u16> + Clone + '_ {
    bytes.as_chunks().0.iter().map(|&bytes| u16::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(wire: Wire, values: &[f32], dim: usize) -> (Vec<f32>, Vec<f32>) {
        let mut left = values.to_vec();
        let mut bytes = Vec::new();
        wire.encode(&mut left, dim, &mut bytes);
        let (encoding, k) = wire.to_fields(dim);
        let update = RowUpdates { encoding, k, values: bytes.into(), ..RowUpdates::default() };
        let n_rows = values.len() / dim;
        let encoded = Encoded::of(&update, n_rows, dim).unwrap();
        let mut decoded = vec![0.0; values.len()];
        for row in 0..n_rows {
            encoded.row(row, |at, value| decoded[row * dim + at] = value);
        }
        (decoded, left)
    }

    #[test]
    fn what_is_not_sent_is_left() {
        let values = [1.0, -3.0, 0.001, 2.0, 0.5, 0.25, -0.125, 1.000_123_4];
        assert_eq!(sent(Wire::F32, &values, 4), (values.to_vec(), vec![0.0; 8]));
        let (decoded, left) = sent(Wire::TopK(2), &values, 4);
        assert_eq!(decoded, [0.0, -3.0, 0.0, 2.0, 0.5, 0.0, 0.0, 1.000_123_4]);
        assert_eq!(left, [1.0, 0.0, 0.001, 0.0, 0.0, 0.25, -0.125, 0.0]);
        let (decoded, left) = sent(Wire::Bf16, &values, 4);
        assert_eq!((decoded[7], left[..2].to_vec()), (1.0, vec![0.0, 0.0]));
        let sums: Vec<f32> = decoded.iter().zip(&left).map(|(sent, left)| sent + left).collect();
        assert_eq!(sums, values);
    }

    #[test]
    fn malformed_values_are_refused() {
        let of = |encoding, k, values: &[u8]| {
            let update = RowUpdates { encoding, k, values: values.to_vec().into(), ..RowUpdates::default() };
            Encoded::of(&update, 1, 2).map(|_| ()).unwrap_err()
        };
        let refused = |message: &str| Refusal::invalid(message);
        assert_eq!(of(0, 0, &[0; 7]), refused("7 bytes of values for 1 rows, expected 8 per row"));
        assert_eq!(of(3, 0, &[]), refused("encoding 3 with k 0, expected 0, 1 or 2"));
        assert_eq!(of(2, 3, &[]), refused("encoding 2 with k 3, expected 0, 1 or 2"));
        let nan = [f32::NAN.to_le_bytes(), 1f32.to_le_bytes()].concat();
        assert_eq!(of(0, 0, &nan), Refusal::not_finite());
        assert_eq!(of(1, 0, &[0x80, 0x7f, 0, 0]), Refusal::not_finite());
        let indices = "indices of top-k, expected ascending ones below 2";
        assert_eq!(of(2, 1, &[2, 0, 0, 0, 0, 0]), refused(indices));
        assert_eq!(of(2, 2, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), refused(indices));
    }

    #[test]
    fn encodings_are_named() {
        assert_eq!("top-16".parse(), Ok(Wire::TopK(16)));
        assert_eq!("bf16".parse(), Ok(Wire::Bf16));
        assert!("top-0".parse::<Wire>().is_err() && "top-k".parse::<Wire>().is_err());
    }
}
