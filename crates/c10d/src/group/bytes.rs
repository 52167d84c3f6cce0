//! Exchange of bytes, of which each rank may have another number.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tch::Tensor;

use super::ProcessGroup;
use crate::error::{Error, Result};

/// Smallest and largest number of bytes in a frame, which ends with the number of bytes of the message.
const FRAME_MIN: usize = 256;
const FRAME_MAX: usize = 1 << 20;

/// The number of bytes that each rank sends at once. It follows from the lengths of the last call, which all ranks know.
#[derive(Debug)]
pub(super) struct Frame(AtomicUsize);

impl Frame {
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(FRAME_MIN))
    }

    /// For the next call, if the longest message of this one had this length: an eighth more.
    fn follow(&self, longest: usize) {
        self.0.store(longest.saturating_add(longest / 8).clamp(FRAME_MIN, FRAME_MAX), Relaxed);
    }
}

impl ProcessGroup {
    /// Returns every rank's bytes, by rank. Their numbers may differ and may be 0. Makes one collective, or two if a rank has
    /// over an eighth more than the most in the last call, or more than 1 MiB.
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
        let length = |frame: &mut Vec<u8>| -> usize {
            let length = frame.split_off(n);
            length.first_chunk().map_or(0, |length| u64::from_le_bytes(*length) as usize)
        };
        let lengths: Vec<usize> = all.iter_mut().map(length).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
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

    fn gather_frames(&self, call: &'static str, frame: &[u8]) -> Result<Vec<Vec<u8>>> {
        let torch = |error: tch::TchError| Error::torch(call, &error);
        let frame = Tensor::from_slice(frame).f_to_device(self.device()).map_err(torch)?;
        let copied = self.gather_equal(call, &frame)?.into_iter().map(|frame| {
            let mut copy = vec![0; frame.numel()];
            frame.f_copy_data(&mut copy, frame.numel()).map_err(torch)?;
            Ok(copy)
        });
        copied.collect()
    }
}
