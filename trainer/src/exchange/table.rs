//! All numbers of some parameters, in rows as long as an embedding.

use tch::Tensor;

use crate::error::Result;

/// A number for each weight. A row of the embedding is a row, with the word's id as its number; the numbers of the other
/// weights follow, one after another, and zeros to the end of a row.
pub(crate) struct Table {
    /// `[rows, width]`.
    pub rows: Tensor,
    /// Views of the rows, by parameter, each with its shape.
    pub each: Vec<Tensor>,
}

impl Table {
    /// The numbers of these parameters; the one at `embedding` is the embedding, `[ids, width]`.
    pub(crate) fn of(parameters: &[Tensor], embedding: usize) -> Result<Self> {
        let table = Self::zeros(parameters, embedding)?;
        tch::no_grad(|| {
            for (own, parameter) in table.each.iter().zip(parameters) {
                own.shallow_clone().f_copy_(parameter)?;
            }
            Ok(table)
        })
    }

    /// Zeros for these parameters.
    pub(crate) fn zeros(parameters: &[Tensor], embedding: usize) -> Result<Self> {
        let (n_ids, width) = parameters[embedding].size2()?;
        let others = |at: &usize| *at != embedding;
        let n_others: i64 =
            (0..parameters.len()).filter(others).map(|at| parameters[at].numel() as i64).sum();
        let n_rows = n_ids + (n_others as u64).div_ceil(width as u64) as i64;
        let rows =
            Tensor::f_zeros([n_rows, width], (parameters[embedding].kind(), parameters[embedding].device()))?;
        let flat = rows.f_view([-1])?;
        let mut next = n_ids * width;
        let mut each = Vec::with_capacity(parameters.len());
        for (at, parameter) in parameters.iter().enumerate() {
            let length = parameter.numel() as i64;
            let begin = if at == embedding { 0 } else { next };
            next += if at == embedding { 0 } else { length };
            each.push(flat.f_narrow(0, begin, length)?.f_view(&parameter.size()[..])?);
        }
        Ok(Self { rows, each })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_embedding_has_the_first_rows_wherever_it_is_among_the_parameters() {
        let number =
            |begin: i64, end: i64| Tensor::arange_start(begin, end, (tch::Kind::Float, tch::Device::Cpu));
        let parameters = [number(0, 4).view([2, 2]), number(10, 16).view([2, 3]), number(20, 21)];
        let table = Table::of(&parameters, 1).unwrap();
        let expected = [[10.0f32, 11.0, 12.0], [13.0, 14.0, 15.0], [0.0, 1.0, 2.0], [3.0, 20.0, 0.0]];
        assert_eq!(table.rows, Tensor::from_slice2(&expected));
        for (own, parameter) in table.each.iter().zip(&parameters) {
            assert_eq!(own, parameter);
        }
    }
}
