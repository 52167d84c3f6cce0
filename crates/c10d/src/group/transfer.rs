//! Tensors from one rank to another.

use tch::Tensor;

use super::work::Started;
use super::{ProcessGroup, Work, contiguous, in_place, invalid};
use crate::error::Result;
use crate::options::Backend;

impl ProcessGroup {
    /// Sends a tensor to another rank, which must receive it with the same tag. NCCL has no tags: use Gloo, or
    /// [`all_to_all`](Self::all_to_all).
    ///
    /// ```
    /// # use c10d::{Backend, Options, ProcessGroup, TcpStore};
    /// # use std::{thread, time::Duration};
    /// # use tch::Tensor;
    /// # let server = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(10))?;
    /// # let port = server.port();
    /// # let group_of_rank = move |rank| {
    /// #     let store = TcpStore::connect("127.0.0.1", port, Duration::from_secs(10))?;
    /// #     ProcessGroup::new(&store, rank, 2, Backend::Gloo, &Options::default())
    /// # };
    /// // Rank 1, here a thread:
    /// let other = thread::spawn(move || {
    ///     let group = group_of_rank(1)?;
    ///     let mut rows = Tensor::from_slice(&[0i64, 0]);
    ///     group.receive(&mut rows, 0, 7)?;
    ///     c10d::Result::Ok(rows)
    /// });
    /// // Rank 0:
    /// let group = group_of_rank(0)?;
    /// group.send(&Tensor::from_slice(&[4i64, 5]), 1, 7)?;
    /// drop(group);
    /// assert_eq!(other.join().unwrap()?, Tensor::from_slice(&[4i64, 5]));
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn send(&self, tensor: &Tensor, to: usize, tag: u16) -> Result<()> {
        self.start_send(tensor, to, tag)?.wait()
    }

    /// Starts [`send`](Self::send), so that two ranks can exchange tensors.
    ///
    /// ```
    /// # use c10d::{Backend, Options, ProcessGroup, TcpStore};
    /// # use std::{thread, time::Duration};
    /// # use tch::Tensor;
    /// # let server = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(10))?;
    /// # let port = server.port();
    /// # let group_of_rank = move |rank| {
    /// #     let store = TcpStore::connect("127.0.0.1", port, Duration::from_secs(10))?;
    /// #     ProcessGroup::new(&store, rank, 2, Backend::Gloo, &Options::default())
    /// # };
    /// // Rank 1, here a thread:
    /// let other = thread::spawn(move || {
    ///     let group = group_of_rank(1)?;
    ///     let mut received = Tensor::from_slice(&[0i64]);
    ///     let sent = group.start_send(&Tensor::from_slice(&[11i64]), 0, 3)?;
    ///     group.receive(&mut received, 0, 3)?;
    ///     sent.wait()?;
    ///     c10d::Result::Ok(received)
    /// });
    /// // Rank 0:
    /// let group = group_of_rank(0)?;
    /// let mut received = Tensor::from_slice(&[0i64]);
    /// let sent = group.start_send(&Tensor::from_slice(&[10i64]), 1, 3)?;
    /// group.receive(&mut received, 1, 3)?;
    /// sent.wait()?;
    /// drop(group);
    /// assert_eq!(received, Tensor::from_slice(&[11i64]));
    /// assert_eq!(other.join().unwrap()?, Tensor::from_slice(&[10i64]));
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn start_send(&self, tensor: &Tensor, to: usize, tag: u16) -> Result<Work<'_>> {
        const CALL: &str = "send";
        self.check_device(CALL, tensor)?;
        self.check_pair(CALL, to)?;
        let dense = contiguous(CALL, tensor)?;
        let announcement = self.announce(CALL, &dense, to, tag)?;
        let mut work = self.begin(CALL, self.inner.send(&dense, to, i32::from(tag)), None)?;
        work.announcement = announcement;
        Ok(work)
    }

    /// Receives a tensor from another rank into `tensor`, which must have the same shape and kind.
    ///
    /// ```
    /// # use c10d::{Backend, Options, ProcessGroup, TcpStore};
    /// # use std::{thread, time::Duration};
    /// # use tch::Tensor;
    /// # let server = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(10))?;
    /// # let port = server.port();
    /// # let group_of_rank = move |rank| {
    /// #     let store = TcpStore::connect("127.0.0.1", port, Duration::from_secs(10))?;
    /// #     ProcessGroup::new(&store, rank, 2, Backend::Gloo, &Options::default())
    /// # };
    /// // Rank 1, here a thread:
    /// let other = thread::spawn(move || {
    ///     let group = group_of_rank(1)?;
    ///     group.send(&Tensor::from_slice(&[6.5f32]), 0, 0)
    /// });
    /// // Rank 0:
    /// let group = group_of_rank(0)?;
    /// let mut number = Tensor::from_slice(&[0.0f32]);
    /// group.receive(&mut number, 1, 0)?;
    /// assert_eq!(number, Tensor::from_slice(&[6.5f32]));
    /// let refused = group.receive(&mut number, 0, 0).unwrap_err();
    /// assert_eq!(refused.to_string(), "receive: rank 0 is this process");
    /// drop(group);
    /// other.join().unwrap()?;
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn receive(&self, tensor: &mut Tensor, from: usize, tag: u16) -> Result<()> {
        self.start_receive(tensor, from, tag)?.wait()
    }

    /// Starts [`receive`](Self::receive). Do not use the tensor before waiting for the returned work.
    ///
    /// ```
    /// # use c10d::{Backend, Options, ProcessGroup, TcpStore};
    /// # use std::{thread, time::Duration};
    /// # use tch::Tensor;
    /// # let server = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(10))?;
    /// # let port = server.port();
    /// # let group_of_rank = move |rank| {
    /// #     let store = TcpStore::connect("127.0.0.1", port, Duration::from_secs(10))?;
    /// #     ProcessGroup::new(&store, rank, 2, Backend::Gloo, &Options::default())
    /// # };
    /// // Rank 1, here a thread:
    /// let other = thread::spawn(move || {
    ///     let group = group_of_rank(1)?;
    ///     let mut received = [Tensor::from_slice(&[0i64]), Tensor::from_slice(&[0i64])];
    ///     let [first, second] = &mut received;
    ///     // Waits first for the message that was sent last.
    ///     let works = [group.start_receive(second, 0, 2)?, group.start_receive(first, 0, 1)?];
    ///     works.into_iter().try_for_each(|work| work.wait())?;
    ///     c10d::Result::Ok(received)
    /// });
    /// // Rank 0:
    /// let group = group_of_rank(0)?;
    /// let works = [
    ///     group.start_send(&Tensor::from_slice(&[1i64]), 1, 1)?,
    ///     group.start_send(&Tensor::from_slice(&[2i64]), 1, 2)?,
    /// ];
    /// works.into_iter().try_for_each(|work| work.wait())?;
    /// drop(group);
    /// let received = other.join().unwrap()?;
    /// assert_eq!(received, [Tensor::from_slice(&[1i64]), Tensor::from_slice(&[2i64])]);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn start_receive(&self, tensor: &mut Tensor, from: usize, tag: u16) -> Result<Work<'_>> {
        const CALL: &str = "receive";
        self.check_device(CALL, tensor)?;
        self.check_pair(CALL, from)?;
        let (dense, copy_back) = in_place(CALL, tensor)?;
        if self.checked {
            let announced = self.await_announcement(CALL, &dense, from, tag)?;
            let inner = Started::Announced(announced);
            return Ok(Work { group: self, call: CALL, inner, copy_back, announcement: None });
        }
        self.begin(CALL, self.inner.receive(&dense, from, i32::from(tag)), copy_back)
    }

    fn check_pair(&self, call: &str, rank: usize) -> Result<()> {
        if let Backend::Nccl { .. } = self.backend {
            let detail = "NCCL ignores tags, and two ranks that send to each other would wait for each other; expected all_to_all";
            return Err(invalid(call, detail.to_owned()));
        }
        if rank == self.rank {
            return Err(invalid(call, format!("rank {rank} is this process")));
        }
        self.check_rank(call, rank)
    }
}
