//! Rows as bytes.

use runs::recipe::Wire;
use tch::{Kind, Tensor};

use crate::error::Result;

/// How rows are sent.
#[derive(Clone, Copy)]
pub(super) struct Coding(pub Wire);

impl Coding {
    /// Bytes of a row.
    pub(super) fn row_bytes(self, width: i64, kind: Kind) -> i64 {
        match self.0 {
            Wire::Full => width * kind.elt_size_in_bytes() as i64,
            Wire::Bf16 => 2 * width,
            // The scale, then the values.
            Wire::Int8 => 4 + width,
            Wire::Int4 => 4 + (width + 1) / 2,
        }
    }

    /// The bytes of rows that are sent, `[rows, bytes]`. Adds what was not sent of them before, then divides; keeps what is not
    /// sent now, before the division.
    pub(super) fn sent(
        self,
        ids: &Tensor,
        rows: &mut Tensor,
        unsent: Option<&mut Tensor>,
        divisors: Option<&Tensor>,
    ) -> Result<Tensor> {
        if let Some(unsent) = &unsent {
            let _ = rows.f_add_(&unsent.f_index_select(0, ids)?)?;
        }
        if let Some(divisors) = divisors {
            let _ = rows.f_div_(divisors)?;
        }
        let bytes = self.encoded(rows)?;
        if let Some(unsent) = unsent {
            let (width, kind) = (rows.size()[1], rows.kind());
            let mut rest = rows.f_sub(&self.decoded(&bytes, width, kind)?)?;
            if let Some(divisors) = divisors {
                let _ = rest.f_mul_(divisors)?;
            }
            let _ = unsent.f_index_copy_(0, ids, &rest)?;
        }
        Ok(bytes)
    }

    fn encoded(self, rows: &Tensor) -> Result<Tensor> {
        let bytes_of = |tensor: &Tensor| tensor.f_contiguous()?.f_view_dtype(Kind::Uint8);
        Ok(match self.0 {
            Wire::Full => bytes_of(rows)?,
            Wire::Bf16 => bytes_of(&rows.f_to_kind(Kind::BFloat16)?)?,
            Wire::Int8 => {
                let (scales, values) = scaled(rows, 127.0)?;
                Tensor::f_cat(&[bytes_of(&scales)?, bytes_of(&values)?], 1)?
            }
            Wire::Int4 => {
                let (scales, values) = scaled(rows, 7.0)?;
                let values = values.f_add_scalar(8)?.f_to_kind(Kind::Uint8)?;
                let width = rows.size()[1];
                let values = if width % 2 == 1 { values.f_constant_pad_nd([0, 1])? } else { values };
                let (high, low) = (values.f_slice(1, 0, None, 2)?, values.f_slice(1, 1, None, 2)?);
                let pairs = high.f_mul_scalar(16)?.f_add(&low)?;
                Tensor::f_cat(&[bytes_of(&scales)?, pairs], 1)?
            }
        })
    }

    /// The values of rows.
    pub(super) fn decoded(self, bytes: &Tensor, width: i64, kind: Kind) -> Result<Tensor> {
        // A copy begins at a multiple of 4 bytes.
        let scales = || bytes.f_narrow_copy(1, 0, 4)?.f_view_dtype(Kind::Float)?.f_to_kind(kind);
        Ok(match self.0 {
            Wire::Full => bytes.f_view_dtype(kind)?,
            Wire::Bf16 => bytes.f_view_dtype(Kind::BFloat16)?.f_to_kind(kind)?,
            Wire::Int8 => {
                bytes.f_narrow(1, 4, width)?.f_view_dtype(Kind::Int8)?.f_to_kind(kind)?.f_mul_(&scales()?)?
            }
            Wire::Int4 => {
                let pairs = bytes.f_narrow(1, 4, (width + 1) / 2)?;
                let high = pairs.f_divide_scalar_mode(16, "floor")?;
                let low = pairs.f_sub(&high.f_mul_scalar(16)?)?;
                let values = Tensor::f_stack(&[high, low], 2)?.f_flatten(1, -1)?.f_narrow(1, 0, width)?;
                values.f_to_kind(kind)?.f_sub_scalar_(8)?.f_mul_(&scales()?)?
            }
        })
    }
}

/// The scale of each row, and its values as whole multiples of it, up to `most`.
fn scaled(rows: &Tensor, most: f64) -> Result<(Tensor, Tensor)> {
    let scales = rows.f_abs()?.f_amax(1, true)?.f_div_scalar(most)?.f_to_kind(Kind::Float)?;
    // A row of zeros has scale 0.
    let divisors = scales.f_clamp_min(f64::from(f32::MIN_POSITIVE))?;
    let values = rows.f_div(&divisors)?.f_round_()?.f_to_kind(Kind::Int8)?;
    Ok((scales, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_and_what_is_not_are_the_rows() {
        for kind in [Kind::Float, Kind::Double] {
            let ids = Tensor::from_slice(&[4i64, 0, 2]);
            let rows = Tensor::from_slice(&[0.5f64, -3.0, 1e-3, 0.0, 0.0, 0.0, 7.0, 1e30, -2.0])
                .view([3, 3])
                .to_kind(kind);
            let before =
                Tensor::from_slice(&[1.0f64, 2.0, 3.0, 4.0, 5.0]).unsqueeze(1).repeat([1, 3]).to_kind(kind);
            let divisors = Tensor::from_slice(&[2.0f64, 0.25, 1.0]).unsqueeze(1).to_kind(kind);
            for (wire, within) in [
                (Wire::Full, 0.0),
                (Wire::Bf16, 1.0 / 256.0),
                (Wire::Int8, 0.5 / 127.0),
                (Wire::Int4, 0.5 / 7.0),
            ] {
                let (mut given, mut unsent) = (rows.copy(), before.copy());
                let bytes = Coding(wire).sent(&ids, &mut given, Some(&mut unsent), Some(&divisors)).unwrap();
                assert_eq!(bytes.size(), [3, Coding(wire).row_bytes(3, kind)]);
                let sent = Coding(wire).decoded(&bytes, 3, kind).unwrap();
                let whole = (&rows + before.index_select(0, &ids)) / &divisors;
                let largest = whole.abs().amax(1, true);
                assert!(
                    bool::try_from((&sent - &whole).abs().le_tensor(&(largest * (within * 1.001))).all())
                        .unwrap()
                );
                let rest = unsent.index_select(0, &ids) / &divisors;
                let sum = &sent + rest;
                assert!(
                    bool::try_from(sum.isclose(&whole, 1e-6, 1e-12, false).all()).unwrap(),
                    "{wire:?} {kind:?}"
                );
                // Rows that were not sent keep what they had.
                assert_eq!(unsent.get(1), before.get(1));
            }
        }
    }
}
