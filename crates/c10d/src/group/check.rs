//! Compares what all ranks are about to do, before they do it.
//!
//! Gloo compares nothing: a message that is longer than its receiver expects ends that process (SIGABRT, from a thread
//! of Gloo's, which nobody can catch), a shorter one fills the head of the tensor, and sums of different kinds are
//! sums of garbage. A group that is checked says to every rank who differs, and sends none of it.

use tch::{Kind, Tensor};

use super::{ProcessGroup, invalid};
use crate::error::{Error, Result};
use crate::ffi;
use crate::shape::Shape;
use crate::store::TcpStore;

/// What is compared of a call. A shape of 8 dimensions fits.
const TEXT_BYTES: usize = 256;
/// Added to the tag of a message for the tag of its announcement: callers' tags end below.
const ANNOUNCEMENT: i32 = 1 << 16;

/// Puts this rank's wish to be checked into the store, to be called before the group is joined.
pub(super) fn ask(store: &TcpStore, name: &str, rank: usize) -> Result<()> {
    store.set(&key(name, rank), b"")
}

/// Whether every rank of a group that has been joined asked for it. Python's do not.
pub(super) fn asked_by_all(store: &TcpStore, name: &str, world_size: usize) -> Result<bool> {
    for rank in 0..world_size {
        if !store.is_set(&key(name, rank))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn key(name: &str, rank: usize) -> String {
    format!("c10d/checked/{name}/{rank}")
}

impl ProcessGroup {
    /// Compares a collective with those that the other ranks are about to make; every rank gets the same answer.
    pub(crate) fn agree(&self, call: &'static str, details: impl FnOnce() -> String) -> Result<()> {
        if !self.checked {
            return Ok(());
        }
        let own = format!("{call}{}", details());
        let all = self.gather_equal(call, &to_tensor(&own).to_device(self.device()))?;
        let all = all.iter().map(|bytes| to_text(call, bytes)).collect::<Result<Vec<_>>>()?;
        let own = &all[self.rank];
        match all.iter().enumerate().find(|(_, other)| *other != own) {
            None => Ok(()),
            Some((rank, other)) => Err(invalid(
                call,
                format!("rank {} is about to {own:?}, and rank {rank} to {other:?}", self.rank),
            )),
        }
    }

    /// Starts to say what the next message to `to` will be.
    pub(super) fn announce(
        &self,
        call: &'static str,
        tensor: &Tensor,
        to: usize,
        tag: u16,
    ) -> Result<Option<ffi::Work>> {
        if !self.checked {
            return Ok(None);
        }
        let shape = shape_of(call, tensor)?.to_tensor().to_device(self.device());
        let work = self.inner.send(&shape, to, i32::from(tag) + ANNOUNCEMENT);
        work.map(Some).map_err(|failure| self.explain(call, failure))
    }

    /// Starts to receive what the next message from `from` will be.
    pub(super) fn await_announcement(
        &self,
        call: &'static str,
        tensor: &Tensor,
        from: usize,
        tag: u16,
    ) -> Result<Announced> {
        let shape = Shape::blank().to_device(self.device());
        let work = self
            .inner
            .receive(&shape, from, i32::from(tag) + ANNOUNCEMENT)
            .map_err(|failure| self.explain(call, failure))?;
        Ok(Announced {
            call,
            expected: shape_of(call, tensor)?,
            tensor: tensor.shallow_clone(),
            from,
            tag,
            shape,
            work,
        })
    }
}

/// A message that is received when it is known to fit.
pub(super) struct Announced {
    call: &'static str,
    expected: Shape,
    tensor: Tensor,
    from: usize,
    tag: u16,
    shape: Tensor,
    work: ffi::Work,
}

impl Announced {
    /// One that does not fit is received too, and dropped, so that the next one is the next one.
    pub(super) fn receive(self, group: &ProcessGroup) -> Result<()> {
        let Self { call, expected, tensor, from, tag, shape, work } = self;
        let explain = |failure| group.explain(call, failure);
        work.wait().map_err(explain)?;
        let sent = Shape::from_tensor(call, &shape)?;
        if sent == expected {
            return group
                .inner
                .receive(&tensor, from, i32::from(tag))
                .and_then(|work| work.wait())
                .map_err(explain);
        }
        let dropped = sent.empty(call, group.device())?;
        group.inner.receive(&dropped, from, i32::from(tag)).and_then(|work| work.wait()).map_err(explain)?;
        Err(invalid(call, format!("rank {from} sent {sent}, and rank {} expected {expected}", group.rank)))
    }
}

fn shape_of(call: &str, tensor: &Tensor) -> Result<Shape> {
    Shape::of(tensor).ok_or_else(|| {
        invalid(call, format!("shape {:?} of kind {:?} cannot be checked", tensor.size(), tensor.kind()))
    })
}

/// `[TEXT_BYTES]`, filled up with zeros.
fn to_tensor(text: &str) -> Tensor {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(TEXT_BYTES, 0);
    Tensor::from_slice(&bytes)
}

fn to_text(call: &str, bytes: &Tensor) -> Result<String> {
    let bytes =
        Vec::<u8>::try_from(bytes.to_kind(Kind::Uint8)).map_err(|error| Error::torch(call, &error))?;
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned())
}
