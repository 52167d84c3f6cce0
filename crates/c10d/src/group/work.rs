//! A communication that has been started.

use tch::Tensor;

use super::ProcessGroup;
use super::check::Announced;
use crate::error::{Error, Result};
use crate::ffi;

/// A communication that has been started. Its result is there when it has been waited for. One that is dropped instead
/// is carried out all the same, and nobody learns whether it was.
///
/// ```
/// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
/// # use tch::Tensor;
/// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
/// let (mut loss, mut rows) = (Tensor::from_slice(&[0.5f64]), Tensor::from_slice(&[32i64]));
/// // Both at once; in the same order on every rank.
/// let works = [
///     group.start_all_reduce(&mut loss, ReduceOp::Sum)?,
///     group.start_all_reduce(&mut rows, ReduceOp::Sum)?,
/// ];
/// works.into_iter().try_for_each(|work| work.wait())?;
/// # Ok::<(), c10d::Error>(())
/// ```
#[must_use = "the result is there when the work has been waited for"]
pub struct Work<'g> {
    pub(super) group: &'g ProcessGroup,
    pub(super) call: &'static str,
    pub(super) inner: Started,
    pub(super) copy_back: Option<CopyBack>,
    /// Of a send in a group that is checked.
    pub(super) announcement: Option<ffi::Work>,
}

pub(super) enum Started {
    Work(ffi::Work),
    /// A receive in a group that is checked.
    Announced(Announced),
}

impl Work<'_> {
    /// Waits for its end. On a GPU the current stream waits, and not the processor.
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

    /// Whether [`wait`](Self::wait) would return at once. Of a send or a receive over Gloo only waiting for it tells:
    /// it is never done before.
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

/// A contiguous stand-in for a tensor that is not, and where its content is to go.
pub(super) struct CopyBack {
    pub(super) from: Tensor,
    pub(super) to: Tensor,
}
