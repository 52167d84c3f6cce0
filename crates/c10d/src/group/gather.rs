//! Gathers: each rank receives what all ranks have.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tch::Tensor;

use super::{ProcessGroup, contiguous, invalid, shown};
use crate::error::{Error, Result};
use crate::shape::{DIMENSIONS_MAX, Shape};

/// How Gloo gathers. All ranks must choose alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Each tensor is passed on n - 1 times.
    Ring,
    /// Each rank sends its tensor to all others at once.
    Direct,
}

impl Way {
    const DIRECT_BYTES_MAX: usize = 4096;

    /// For tensors with this number of bytes.
    fn of(n_bytes: usize) -> Self {
        if n_bytes <= Self::DIRECT_BYTES_MAX { Self::Direct } else { Self::Ring }
    }
}

/// Smallest and largest number of bytes of a message in a frame. The frame ends with the length of the message.
const FRAME_MIN: usize = 256;
const FRAME_MAX: usize = 1 << 20;
/// Largest number of bytes of a message.
const MESSAGE_MAX: u64 = 1 << 36;

/// The number of bytes that each rank sends at once. It follows from the lengths of the last call, which all ranks know.
#[derive(Debug)]
pub(super) struct FrameBytes(AtomicUsize);

impl FrameBytes {
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(FRAME_MIN))
    }

    /// For the next call, if the longest message of this one had this length: an eighth more.
    fn follow(&self, longest: usize) {
        self.0.store(longest.saturating_add(longest / 8).clamp(FRAME_MIN, FRAME_MAX), Relaxed);
    }
}

impl ProcessGroup {
    /// Returns every rank's tensor, by rank. Takes every kind; shape and kind must be equal on all ranks. A rank in
    /// Python calls `torch.distributed.all_gather`.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// # use tch::Tensor;
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let all = group.all_gather(&Tensor::from_slice(&[7i32]))?;
    /// assert_eq!(all, [Tensor::from_slice(&[7i32])]);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn all_gather(&self, tensor: &Tensor) -> Result<Vec<Tensor>> {
        const CALL: &str = "all_gather";
        self.check_device(CALL, tensor)?;
        self.agree(CALL, || format!(", {}", shown(tensor)))?;
        Ok(by_rank(&self.gather(CALL, tensor, Way::Ring)?))
    }

    /// Returns every rank's tensor, by rank. The number of rows (the first dimension) may differ and may be 0. Makes
    /// two collectives: one for the shapes, and one for the rows, padded to the maximum. `torch.distributed` has no
    /// counterpart.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// # use tch::{Kind, Tensor, Device};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let all = group.all_gather_unequal(&Tensor::zeros([0, 3], (Kind::Float, Device::Cpu)))?;
    /// assert_eq!(all[0].size(), [0, 3]);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn all_gather_unequal(&self, tensor: &Tensor) -> Result<Vec<Tensor>> {
        const CALL: &str = "all_gather_unequal";
        self.check_device(CALL, tensor)?;
        let torch = |error: tch::TchError| Error::torch(CALL, &error);
        let own = Shape::of(tensor).filter(|_| tensor.dim() > 0).ok_or_else(|| {
            let (shape, kind) = (tensor.size(), tensor.kind());
            let detail = format!(
                "shape {shape:?} of kind {kind:?}, expected 1 to {DIMENSIONS_MAX} dimensions and a supported kind"
            );
            invalid(CALL, detail)
        })?;
        self.agree(CALL, String::new)?;
        let shapes = self.gather_equal(CALL, &own.to_tensor().f_to_device(self.device()).map_err(torch)?)?;
        let shape_of = |shape| Shape::from_tensor(CALL, &self.to_host(CALL, shape)?);
        let shapes = shapes.iter().map(shape_of).collect::<Result<Vec<_>>>()?;
        if let Some((rank, other)) =
            shapes.iter().enumerate().find(|(_, other)| !own.agrees_but_for_rows(other))
        {
            let detail = format!(
                "{own} on rank {}, {other} on rank {rank}: only the first dimension may differ",
                self.rank
            );
            return Err(invalid(CALL, detail));
        }
        let most = shapes.iter().map(Shape::rows).max().unwrap_or(0);
        let mut padded_shape = tensor.size();
        padded_shape[0] = most;
        let padded = if own.rows() == most {
            contiguous(CALL, tensor)?
        } else {
            let padded = Tensor::f_zeros(&padded_shape, (tensor.kind(), tensor.device())).map_err(torch)?;
            padded
                .f_narrow(0, 0, own.rows())
                .and_then(|mut head| head.f_copy_(tensor).map(drop))
                .map_err(torch)?;
            padded
        };
        let all = self.gather_equal(CALL, &padded)?;
        Ok(all.iter().zip(&shapes).map(|(rows, shape)| rows.narrow(0, 0, shape.rows())).collect())
    }

    /// Returns every rank's bytes, by rank. Their lengths may differ and may be 0. Makes one collective, or two if a
    /// rank has over an eighth more than the most in the last call, or more than 1 MiB. More than 64 GiB are an error.
    /// `torch.distributed` has no counterpart.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// assert_eq!(group.all_gather_bytes(b"rows")?, [b"rows"]);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn all_gather_bytes(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        const CALL: &str = "all_gather_bytes";
        self.agree(CALL, String::new)?;
        let n = self.frame.0.load(Relaxed);
        let (head, rest) = bytes.split_at(n.min(bytes.len()));
        let mut frame = head.to_vec();
        frame.resize(n, 0);
        frame.extend((bytes.len() as u64).to_le_bytes());
        let mut all = self.gather_frames(CALL, &frame)?;
        let length = |frame: &mut Vec<u8>| -> u64 {
            let length = frame.split_off(n);
            length.first_chunk().map_or(0, |length| u64::from_le_bytes(*length))
        };
        let lengths: Vec<u64> = all.iter_mut().map(length).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        if longest > MESSAGE_MAX {
            let rank = lengths.iter().position(|&length| length == longest).unwrap_or(0);
            return Err(invalid(
                CALL,
                format!("{longest} bytes from rank {rank}, expected at most {MESSAGE_MAX}"),
            ));
        }
        let (longest, lengths) = (longest as usize, lengths.into_iter().map(|length| length as usize));
        self.frame.follow(longest);
        if longest > n {
            let mut rest = rest.to_vec();
            rest.resize(longest - n, 0);
            for (bytes, rest) in all.iter_mut().zip(self.gather_frames(CALL, &rest)?) {
                bytes.extend(rest);
            }
        }
        all.iter_mut().zip(lengths).for_each(|(bytes, length)| bytes.truncate(length));
        Ok(all)
    }

    /// Returns every rank's shapes. Each rank has at least one.
    pub(crate) fn all_gather_shapes(&self, call: &'static str, own: &[Shape]) -> Result<Vec<Vec<Shape>>> {
        let rows: Vec<Tensor> = own.iter().map(Shape::to_tensor).collect();
        let own = Tensor::f_stack(&rows, 0).and_then(|own| own.f_to_device(self.device()));
        let all = self.all_gather_unequal(&own.map_err(|error| Error::torch(call, &error))?)?;
        all.iter()
            .map(|rows| {
                let rows = self.to_host(call, rows)?;
                (0..rows.size()[0]).map(|row| Shape::from_tensor(call, &rows.select(0, row))).collect()
            })
            .collect()
    }

    /// The equal frames of all ranks.
    fn gather_frames(&self, call: &'static str, frame: &[u8]) -> Result<Vec<Vec<u8>>> {
        let torch = |error: tch::TchError| Error::torch(call, &error);
        let own = Tensor::from_slice(frame).f_to_device(self.device()).map_err(torch)?;
        let all = self.to_host(call, &self.gather(call, &own, Way::of(frame.len()))?)?;
        let mut bytes = vec![0; all.numel()];
        all.f_copy_data(&mut bytes, all.numel()).map_err(torch)?;
        Ok(bytes.chunks_exact(frame.len()).map(<[u8]>::to_vec).collect())
    }

    /// Returns every rank's tensor, by rank.
    pub(super) fn gather_equal(&self, call: &'static str, tensor: &Tensor) -> Result<Vec<Tensor>> {
        let n_bytes = tensor.numel() * tensor.kind().elt_size_in_bytes();
        Ok(by_rank(&self.gather(call, tensor, Way::of(n_bytes))?))
    }

    /// The tensors of all ranks, stacked.
    fn gather(&self, call: &'static str, tensor: &Tensor, way: Way) -> Result<Tensor> {
        let torch = |error: tch::TchError| Error::torch(call, &error);
        let dense = contiguous(call, tensor)?;
        let mut shape = vec![self.world_size as i64];
        shape.extend(dense.size());
        let all = Tensor::f_empty(&shape, (dense.kind(), dense.device())).map_err(torch)?;
        self.begin(call, self.inner.all_gather(&all, &dense, way == Way::Direct), None)?.wait()?;
        Ok(all)
    }
}

fn by_rank(all: &Tensor) -> Vec<Tensor> {
    (0..all.size()[0]).map(|rank| all.select(0, rank)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_4_kib_are_sent_directly() {
        assert_eq!([0, 264, 4096, 4097].map(Way::of), [Way::Direct, Way::Direct, Way::Direct, Way::Ring]);
    }
}
