//! Rows from each rank to each rank.

use tch::{Kind, Tensor};

use super::{ProcessGroup, contiguous, invalid};
use crate::error::{Error, Result};

impl ProcessGroup {
    /// Sends rows (the first dimension) of bytes: the first `sent[0]` to rank 0, the next `sent[1]` to rank 1, and so on.
    /// Returns the rows that all ranks sent to this one, by rank, of which `received` has the numbers. A number may be 0;
    /// the number that one rank sends is the number that the other one receives. A rank in Python calls
    /// `torch.distributed.all_to_all_single`.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// # use tch::Tensor;
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let rows = Tensor::from_slice(&[7u8, 8]).view([2, 1]);
    /// assert_eq!(group.all_to_all(&rows, &[2], &[2])?, rows);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn all_to_all(&self, rows: &Tensor, sent: &[usize], received: &[usize]) -> Result<Tensor> {
        const CALL: &str = "all_to_all";
        self.check_device(CALL, rows)?;
        let mut shape = rows.size();
        let n_sent: usize = sent.iter().sum();
        if rows.kind() != Kind::Uint8
            || shape.first() != Some(&(n_sent as i64))
            || [sent, received].map(<[usize]>::len) != [self.world_size; 2]
        {
            let detail = format!(
                "shape {shape:?} of kind {:?}, {sent:?} rows to send and {received:?} to receive, expected the sum of the \
                 rows to send as the first dimension, of kind Uint8, and a number of rows for each of {} ranks",
                rows.kind(),
                self.world_size
            );
            return Err(invalid(CALL, detail));
        }
        self.agree(CALL, || format!(", rows of shape {:?}", &shape[1..]))?;
        let dense = contiguous(CALL, rows)?;
        shape[0] = received.iter().sum::<usize>() as i64;
        let all = Tensor::f_empty(&shape, (Kind::Uint8, dense.device()))
            .map_err(|error| Error::torch(CALL, &error))?;
        let [sent, received] =
            [sent, received].map(|numbers| numbers.iter().map(|&number| number as i64).collect::<Vec<_>>());
        self.begin(CALL, self.inner.all_to_all(&all, &dense, &sent, &received), None)?.wait()?;
        Ok(all)
    }
}
