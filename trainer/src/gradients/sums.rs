//! A step's gradients in one table, and their sums over the ranks.
//!
//! Most gradients are those of embeddings, and a step touches only the embeddings of its own words: the ranks exchange only
//! these and the gradients of the other parameters.

use tch::Tensor;

use crate::error::Result;
use crate::exchange::{Exchange, Reduction, Summed, Table, announcement};

/// Gradients that kernels add to.
pub(super) struct Sums<'r> {
    pub(super) table: Table,
    /// The exchange with the other ranks, if there are any.
    exchange: Option<Exchange<'r>>,
    /// Whether this rank has gradients of a word.
    touched: Vec<bool>,
}

impl<'r> Sums<'r> {
    /// Zero gradients for these parameters; the one at index `embedding` is the embedding, `[V, E]`.
    pub(super) fn new(
        parameters: &[Tensor],
        embedding: usize,
        exchange: Option<Exchange<'r>>,
    ) -> Result<Self> {
        let touched = vec![false; parameters[embedding].size()[0] as usize];
        Ok(Self { table: Table::zeros(parameters, embedding)?, exchange, touched })
    }

    /// Records words that now have gradients.
    pub(super) fn touch(&mut self, ids: &[u32]) {
        if self.exchange.is_none() {
            return;
        }
        for &id in ids {
            self.touched[id as usize] = true;
        }
    }

    /// What this rank tells the others before [`Sums::over_ranks`]; nothing if they do not exchange gradients.
    pub(super) fn announcement(&mut self) -> Vec<u8> {
        if self.exchange.is_none() {
            return Vec::new();
        }
        let announcement = announcement(1.0, &self.touched);
        self.touched.fill(false);
        announcement
    }

    /// Sums the gradients over all ranks, of which `announced` has the announcements. The result has identical bits on each
    /// rank. Returns the number of bytes that this rank sends.
    pub(super) fn over_ranks(&mut self, announced: &[Vec<u8>]) -> Result<u64> {
        let Some(exchange) = &self.exchange else { return Ok(0) };
        let Summed { ids, rows, sent } = exchange.sums(&self.table.rows, announced, Reduction::Sums, None)?;
        let _ = self.table.rows.f_index_copy_(0, &ids, &rows)?;
        Ok(sent)
    }
}
