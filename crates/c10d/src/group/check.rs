//! Compares the calls of all ranks before their data is sent.
//!
//! Gloo compares nothing. A message longer than its receiver expects aborts the process (SIGABRT in a thread of Gloo,
//! which cannot be caught). A shorter message fills only the start of the tensor. Sums of different kinds give wrong
//! values. A checked group returns an error with the difference on every rank, and sends no data.

use tch::{Kind, Tensor};

use super::{ProcessGroup, invalid};
use crate::error::{Error, Result};
use crate::ffi;
use crate::shape::Shape;
use crate::store::TcpStore;

/// Maximum length of a call's description. A shape with 8 dimensions fits.
const TEXT_BYTES: usize = 256;
/// Offset from a message's tag to the tag of its announcement. Callers' tags are smaller.
const ANNOUNCEMENT: i32 = 1 << 16;

/// Sets this rank's request for checks in the store. Call it before joining the group.
pub(super) fn request(store: &TcpStore, name: &str, rank: usize) -> Result<()> {
    store.set(&key(name, rank), b"")
}

/// Whether every rank of a joined group requested checks. Python ranks never do.
pub(super) fn requested_by_all(store: &TcpStore, name: &str, world_size: usize) -> Result<bool> {
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
    /// Compares a collective with those of the other ranks. Every rank gets the same result.
    pub(crate) fn agree(&self, call: &'static str, details: impl FnOnce() -> String) -> Result<()> {
        if !self.checked {
            return Ok(());
        }
        let own = format!("{call}{}", details());
        let all = self.gather_equal(call, &self.here(call, &to_tensor(&own))?)?;
        let all = all.iter().map(|bytes| to_text(call, bytes)).collect::<Result<Vec<_>>>()?;
        let own = &all[self.rank];
        match all.iter().enumerate().find(|(_, other)| *other != own) {
            None => Ok(()),
            Some((rank, other)) => Err(invalid(
                call,
                format!("rank {} calls {own:?}, but rank {rank} calls {other:?}", self.rank),
            )),
        }
    }

    /// A tensor on the group's device.
    fn here(&self, call: &str, tensor: &Tensor) -> Result<Tensor> {
        tensor.f_to_device(self.device()).map_err(|error| Error::torch(call, &error))
    }

    /// Starts to send the shape of the next message to `to`.
    pub(super) fn announce(
        &self,
        call: &'static str,
        tensor: &Tensor,
        to: usize,
        tag: u16,
    ) -> Result<Option<ffi::WorkHandle>> {
        if !self.checked {
            return Ok(None);
        }
        let shape = self.here(call, &shape_of(call, tensor)?.to_tensor())?;
        let work = self.inner.send(&shape, to, i32::from(tag) + ANNOUNCEMENT);
        work.map(Some).map_err(|failure| self.explain(call, failure))
    }

    /// Starts to receive the shape of the next message from `from`.
    pub(super) fn await_announcement(
        &self,
        call: &'static str,
        tensor: &Tensor,
        from: usize,
        tag: u16,
    ) -> Result<Announced> {
        let shape = self.here(call, &Shape::blank())?;
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

/// A message that is received after its shape has been compared.
pub(super) struct Announced {
    call: &'static str,
    expected: Shape,
    tensor: Tensor,
    from: usize,
    tag: u16,
    shape: Tensor,
    work: ffi::WorkHandle,
}

impl Announced {
    /// Receives the message. A message with another shape is received too and dropped, so that the following one can
    /// be received.
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

/// `[TEXT_BYTES]`, padded with zeros.
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
