//! The description of a table: sizes, first values, and what a push does.

use program::random::Random;
use serde::{Deserialize, Serialize};

use crate::messages::CreateRequest;
use crate::refusal::Refusal;

/// Maximum length of a name.
const NAME_BYTES_MAX: usize = 100;
/// Maximum length of [`Spec::content`].
const CONTENT_BYTES_MAX: usize = 1 << 16;
/// Maximum length of the key of random numbers.
const KEY_MAX: usize = 16;
/// Maximum number of floats per row: indices of top-k are `u16`.
pub const DIM_MAX: u32 = 1 << 16;

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Its name. All workers that create a table of this name share it.
    pub name: String,
    /// Number of rows on all servers, below 2^32.
    pub n_rows: u64,
    /// Floats per row.
    pub dim: u32,
    /// First values.
    pub initial: Initial,
    /// What a push does.
    pub optimizer: Optimizer,
    /// What the rows mean, one fact per line, such as a digest of the vocabulary. Workers with another text are refused, with
    /// the first line that differs.
    pub content: String,
    /// A key that was counted this often has a row. All tables with keys have the rows of the same ones. 0: the rows have no
    /// keys.
    #[serde(default)]
    pub min_count: u64,
}

/// First values of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Initial {
    /// All are 0.
    Zero,
    /// (u - 1/2) / divisor, with u uniform from 0 to 1. The random numbers of a row depend on the key, followed by the
    /// number of the row, so that they do not depend on the number of servers.
    Uniform {
        /// Key of the random numbers.
        key: Vec<u64>,
        /// Divisor, positive.
        divisor: f32,
    },
}

/// What a push does with values g and a row w.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Optimizer {
    /// w += g
    Sum,
    /// Adagrad (Duchi et al. 2011): G += g², w -= rate · g / (√G + 10⁻⁸)
    Adagrad {
        /// Learning rate.
        rate: f32,
    },
    /// w += the mean of g over the workers that push the row in this step, with a staleness of 0
    Mean,
}

impl Spec {
    /// Number of rows on a server.
    pub(crate) fn rows_of(&self, shard: u32, n_shards: u32) -> usize {
        let (shard, n_shards) = (u64::from(shard), u64::from(n_shards));
        (self.n_rows.saturating_sub(shard)).div_ceil(n_shards) as usize
    }

    /// Floats of a row with the state of the optimizer.
    pub(crate) fn width(&self) -> usize {
        let parts = match self.optimizer {
            Optimizer::Sum => 1,
            Optimizer::Adagrad { .. } => 2,
            // The row before the step and the sum of the step; their number and the step follow.
            Optimizer::Mean => return 3 * self.dim as usize + 2,
        };
        parts * self.dim as usize
    }

    /// Writes the first values of a row; the state of the optimizer is 0.
    pub(crate) fn begin(&self, row: u64, values: &mut [f32]) {
        if let Initial::Uniform { key, divisor } = &self.initial {
            let key: Vec<u64> = key.iter().copied().chain([row]).collect();
            let mut random = Random::of(&key);
            values[..self.dim as usize].fill_with(|| (random.uniform() - 0.5) / divisor);
        }
    }

    pub(crate) fn to_request(&self, shard: u32, n_shards: u32) -> CreateRequest {
        let (key, divisor) = match &self.initial {
            Initial::Zero => (Vec::new(), 0.0),
            Initial::Uniform { key, divisor } => (key.clone(), *divisor),
        };
        CreateRequest {
            name: self.name.clone(),
            n_rows: self.n_rows,
            dim: self.dim,
            divisor,
            key,
            rate: match self.optimizer {
                Optimizer::Sum | Optimizer::Mean => 0.0,
                Optimizer::Adagrad { rate } => rate,
            },
            is_mean: self.optimizer == Optimizer::Mean,
            content: self.content.clone(),
            min_count: self.min_count,
            shard,
            n_shards,
        }
    }

    pub(crate) fn of_request(request: CreateRequest) -> Result<Self, Refusal> {
        let CreateRequest { name, n_rows, dim, divisor, key, rate, content, is_mean, min_count, .. } =
            request;
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let found = name.len();
            return Err(Refusal::invalid(format!("a name of {found} bytes, expected 1 to {NAME_BYTES_MAX}")));
        }
        if n_rows == 0 || n_rows > u64::from(u32::MAX) {
            return Err(Refusal::invalid(format!("table {name:?} of {n_rows} rows, expected 1 to 2^32 - 1")));
        }
        if dim == 0 || dim > DIM_MAX {
            return Err(Refusal::invalid(format!("table {name:?} of {dim} floats, expected 1 to {DIM_MAX}")));
        }
        if !(divisor >= 0.0 && divisor.is_finite() && rate >= 0.0 && rate.is_finite()) {
            return Err(Refusal::invalid(format!(
                "table {name:?} with divisor {divisor} and rate {rate}, expected numbers of 0 or more"
            )));
        }
        if key.len() > KEY_MAX || content.len() > CONTENT_BYTES_MAX {
            return Err(Refusal::invalid(format!(
                "table {name:?} with a key of {} numbers and {} bytes of content, expected at most {KEY_MAX} and \
                 {CONTENT_BYTES_MAX}",
                key.len(),
                content.len()
            )));
        }
        let initial = if divisor == 0.0 { Initial::Zero } else { Initial::Uniform { key, divisor } };
        let optimizer = match rate {
            0.0 if is_mean => Optimizer::Mean,
            0.0 => Optimizer::Sum,
            rate => Optimizer::Adagrad { rate },
        };
        Ok(Self { name, n_rows, dim, initial, optimizer, content, min_count })
    }

    /// Refuses a table of the same name with another description.
    pub(crate) fn check_equal(&self, other: &Self) -> Result<(), Refusal> {
        let name = &self.name;
        let refused = |what, found: &dyn std::fmt::Debug, expected: &dyn std::fmt::Debug| {
            let remedy = "start all workers with the same input and settings, or the server in a new folder";
            Err(Refusal::conflict(format!(
                "table {name:?}: {what} is {expected:?}, expected {found:?}, as on the server; {remedy}"
            )))
        };
        if self.content != other.content {
            // Only the first line that differs is shown.
            let mut lines = self.content.lines().zip(other.content.lines());
            let (here, there) =
                lines.find(|(here, there)| here != there).unwrap_or((&self.content, &other.content));
            return refused("the content", &here, &there);
        }
        if (self.n_rows, self.dim) != (other.n_rows, other.dim) {
            return refused("the size", &(self.n_rows, self.dim), &(other.n_rows, other.dim));
        }
        if self.min_count != other.min_count {
            return refused("the count of a key with a row", &self.min_count, &other.min_count);
        }
        if self.initial != other.initial {
            return refused("the first value", &self.initial, &other.initial);
        }
        if self.optimizer != other.optimizer {
            return refused("the optimizer", &self.optimizer, &other.optimizer);
        }
        Ok(())
    }
}
