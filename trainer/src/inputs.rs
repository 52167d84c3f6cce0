//! Converts batches into tensors on the model's device.
//!
//! B: rows of a share; T: tokens of its longest row; N: tokens of all rows of a split.
//!
//! If the tokens of the training split fit on the GPU, they stay there. A batch is then gathered on the GPU, and only
//! the indices of its rows are copied. The tensors are the same in both cases.

use batches::{Batch, Table, Tokens};
use kernels::TokenRows;
use tch::kind::Element;
use tch::{Device, Kind, Tensor};

use crate::error::Result;
use crate::soft_targets::SoftTargets;

/// Labels and ratings of a share's rows.
#[derive(Debug)]
pub struct Targets {
    /// Probabilities of K classes, `[B, K]`, 32-bit, to learn in place of the labels.
    pub soft: Option<Tensor>,
    /// 0 or 1, `[B]`.
    pub labels: Tensor,
    /// 1 to 5, `[B]`.
    pub ratings: Tensor,
}

/// The rows of a batch, with their tokens replaced by `tokens`.
pub(crate) fn token_rows<'a>(batch: &'a Batch, tokens: &'a [i64]) -> TokenRows<'a> {
    TokenRows { tokens, longest: batch.longest, lengths: &batch.lengths }
}

/// Converts batches into tensors.
#[derive(Debug)]
pub struct Inputs<'a> {
    device: Device,
    resident: Option<Resident<'a>>,
    soft: Option<&'a SoftTargets>,
}

/// All tokens of a split, on the device.
#[derive(Debug)]
struct Resident<'a> {
    table: &'a Table,
    /// `[N]`, 32-bit.
    tokens: Tensor,
}

impl<'a> Inputs<'a> {
    /// Copies each batch to the device.
    pub fn copied(device: Device) -> Self {
        Self { device, resident: None, soft: None }
    }

    /// Keeps the tokens of this table on the device.
    pub fn resident(device: Device, table: &'a Table) -> Result<Self> {
        let tokens: Vec<i32> = match table.tokens() {
            Tokens::U16(all) => all.iter().map(|&token| i32::from(token)).collect(),
            Tokens::U32(all) => all.iter().map(|&token| token as i32).collect(),
        };
        let tokens = on_device(&tokens, Kind::Int, device)?;
        Ok(Self { device, resident: Some(Resident { table, tokens }), soft: None })
    }

    /// Uses these soft labels as targets.
    pub fn with_soft(self, soft: Option<&'a SoftTargets>) -> Self {
        Self { soft, ..self }
    }

    /// The soft labels of a batch's rows, `[B, K]`.
    pub fn soft(&self, batch: &Batch) -> Option<Vec<f32>> {
        self.soft.map(|soft| soft.of_batch(batch))
    }

    /// Memory of a table's tokens on a device, in bytes.
    pub fn resident_bytes(table: &Table) -> u64 {
        4 * table.tokens().len() as u64
    }

    /// A batch's tokens, `[B, T]`, and lengths, `[B]`.
    pub fn tokens_and_lengths(&self, batch: &Batch) -> Result<(Tensor, Tensor)> {
        let lengths = on_device(&batch.lengths, Kind::Int64, self.device)?;
        let shape = [batch.rows.len() as i64, batch.longest as i64];
        let tokens = match &self.resident {
            None => on_device(&batch.tokens, Kind::Int64, self.device)?.f_view(shape)?,
            Some(resident) => resident.gather(batch, &lengths, shape)?,
        };
        Ok((tokens, lengths))
    }

    /// A batch's labels and ratings, `[B]` each, and its soft labels.
    pub fn targets(&self, batch: &Batch) -> Result<Targets> {
        let of_classes = |soft: &SoftTargets| -> Result<Tensor> {
            let probabilities = on_device(&soft.of_batch(batch), Kind::Float, self.device)?;
            Ok(probabilities.f_view([-1, soft.n_classes() as i64])?)
        };
        Ok(Targets {
            soft: self.soft.map(of_classes).transpose()?,
            labels: on_device(&batch.labels, Kind::Uint8, self.device)?,
            ratings: on_device(&batch.ratings, Kind::Int64, self.device)?,
        })
    }

    /// The weights of a batch's rows, `[B]`.
    pub fn weights(&self, batch: &Batch, kind: Kind) -> Result<Tensor> {
        on_device(&batch.weights, kind, self.device)
    }
}

impl Resident<'_> {
    fn gather(&self, batch: &Batch, lengths: &Tensor, shape: [i64; 2]) -> Result<Tensor> {
        // The table's rows are sorted by their index in the file.
        let rows = self.table.rows();
        let begin = |row: &u32| self.table.span(rows.partition_point(|other| other < row)).0 as i64;
        let begins: Vec<i64> = batch.rows.iter().map(begin).collect();
        let device = self.tokens.device();
        let columns = Tensor::f_arange(shape[1], (Kind::Int64, device))?.f_unsqueeze(0)?; // [1, T]
        let begins = on_device(&begins, Kind::Int64, device)?.f_unsqueeze(1)?; // [B, 1]
        let last = self.tokens.size()[0] - 1;
        let places = begins.f_add(&columns)?.f_clamp_max(last)?.f_view(-1)?; // [B T]
        let tokens = self.tokens.f_index_select(0, &places)?.f_view(shape)?.f_to_kind(Kind::Int64)?;
        let is_padding = columns.f_ge_tensor(&lengths.f_unsqueeze(1)?)?; // [B, T]
        Ok(tokens.f_masked_fill(&is_padding, 0)?)
    }
}

/// Copies numbers to a device; to a GPU from pinned memory, so that the copy waits for nothing that the GPU computes.
pub(crate) fn on_device<T: Element>(numbers: &[T], kind: Kind, device: Device) -> Result<Tensor> {
    /// PyTorch rounds pinned blocks up to a power of two and never frees them.
    const PINNED_MAX: usize = 64 << 20;
    let here = Tensor::f_from_slice(numbers)?.f_to_kind(kind)?;
    if device == Device::Cpu {
        return Ok(here);
    }
    if here.numel() * kind.elt_size_in_bytes() > PINNED_MAX {
        return Ok(here.f_to_device(device)?);
    }
    // Each call of `pin_memory` with a device prints two warnings.
    Ok(here.f_internal_pin_memory(device)?.f_to_device_(device, kind, true, false)?)
}
