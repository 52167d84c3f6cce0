//! A collective, a send or a receive that was started.

use tch::Tensor;

use super::ProcessGroup;
use super::check::Announced;
use crate::error::{Error, Result};
use crate::ffi;

/// A collective, a send or a receive that was started. Its result is available after [`wait`](Self::wait). If this
/// value is dropped, the communication still takes place, but its errors are lost.
///
/// ```
/// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
/// # use tch::Tensor;
/// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
/// let (mut loss, mut rows) = (Tensor::from_slice(&[0.5f64]), Tensor::from_slice(&[32i64]));
/// // Both run at the same time. Every rank starts them in the same order.
/// let works = [
///     group.start_all_reduce(&mut loss, ReduceOp::Sum)?,
///     group.start_all_reduce(&mut rows, ReduceOp::Sum)?,
/// ];
/// works.into_iter().try_for_each(|work| work.wait())?;
/// # Ok::<(), c10d::Error>(())
/// ```
#[must_use = "the result is available after waiting for the work"]
pub struct Work<'g> {
    pub(super) group: &'g ProcessGroup,
    pub(super) call: &'static str,
    pub(super) inner: Started,
    pub(super) copy_back: Option<CopyBack>,
    /// For a send in a checked group.
    pub(super) announcement: Option<ffi::WorkHandle>,
}

pub(super) enum Started {
    Work(ffi::WorkHandle),
    /// A receive in a checked group.
    Announced(Announced),
}

impl Work<'_> {
    /// Waits for the end of the communication. On a GPU, the current stream waits, not the calling thread.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// # let mut sum = tch::Tensor::from_slice(&[2.0f32]);
    /// let work = group.start_all_reduce(&mut sum, ReduceOp::Mean)?;
    /// work.wait()?;
    /// assert_eq!(sum, tch::Tensor::from_slice(&[2.0f32]));
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn wait(self) -> Result<()> {
        let explain = |failure| self.group.explain(self.call, failure);
        if let Some(announcement) = self.announcement {
            announcement.wait().map_err(explain)?;
        }
        match self.inner {
            Started::Work(work) => work.wait().map_err(explain)?,
            Started::Announced(announced) => announced.receive(self.group)?,
        }
        if let Some(CopyBack { from, mut to }) = self.copy_back {
            tch::no_grad(|| to.f_copy_(&from).map(drop)).map_err(|error| Error::torch(self.call, &error))?;
        }
        Ok(())
    }

    /// Whether [`wait`](Self::wait) would return immediately. A send or receive over Gloo is never reported as done
    /// before it is waited for.
    ///
    /// ```
    /// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// # let mut sum = tch::Tensor::from_slice(&[2.0f32]);
    /// let work = group.start_all_reduce(&mut sum, ReduceOp::Sum)?;
    /// while !work.is_done() {
    ///     // ... something else ...
    ///     std::thread::yield_now();
    /// }
    /// work.wait()?;
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn is_done(&self) -> bool {
        match &self.inner {
            Started::Work(work) => work.is_done(),
            Started::Announced(_) => false,
        }
    }
}

/// A contiguous copy of a tensor that is not contiguous, and the tensor to copy the result to.
pub(super) struct CopyBack {
    pub(super) from: Tensor,
    pub(super) to: Tensor,
}
