//! The processes of a training: a single process, or a group of ranks. All collectives of the ranks are called here,
//! except those of the gradients.

use c10d::{Backend, Cause, Key, Launch, Members, Options, ProcessGroup, ReduceOp};
use launch::key;
use program::exit::{Exit, Failed, chain};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tch::{Device, Tensor};
use training::tell::tell;

use crate::error::{Error, Result};

/// How often torchrun has restarted the ranks.
pub(crate) fn restarts() -> usize {
    Launch::from_env().map_or(0, |launch| launch.restarts)
}

/// Number of ranks on this machine; 1 if it is unknown.
pub(crate) fn local_world_size() -> usize {
    Launch::from_env().ok().and_then(|launch| launch.local_world_size).unwrap_or(1).max(1)
}

/// Whether the other ranks may go on: one has died or stopped. A rank that leaves by itself has an error of its own.
pub(crate) fn is_loss(error: &c10d::Error) -> bool {
    match error {
        c10d::Error::PeerLost { loss, .. } => loss.cause != Cause::Left,
        c10d::Error::Communication { .. } => true,
        _ => false,
    }
}

/// This process among the processes of the training.
#[derive(Debug)]
pub enum Ranks {
    /// The only process.
    Alone,
    /// One of several.
    Several(Box<ProcessGroup>),
}

impl Ranks {
    /// Joins the ranks started by torchrun or `trainer launch`; without either, there is one process.
    pub fn join(device: Device) -> Result<Self> {
        Ok(Self::join_members(device)?.0)
    }

    /// Does the same as [`Ranks::join`]. Also returns the members of the group if they can form another one. A rank that joins a
    /// training is alone until it arrives.
    pub fn join_members(device: Device) -> Result<(Self, Option<Members>)> {
        let launch = if std::env::var_os("RANK").is_some() { Launch::from_env()? } else { Launch::alone() };
        if launch.world_size == 1 && !launch.survives {
            return Ok((Self::Alone, None));
        }
        let key = key::of_this_process()?.map(|secret| Key::of(secret.bytes()));
        if key.is_none() && (launch.rank == 0 || launch.joins) {
            tell(&format!(
                "warning: {} is not set, so anyone who can connect to the ranks' store at {} can stop this training; set it to the path of a file with mode 600 that all ranks can read",
                key::KEY_FILE,
                launch.master_addr
            ));
        }
        let options = Options { key, ..Options::default() };
        if launch.survives && device != Device::Cpu && launch.rank == 0 {
            tell("ranks on GPUs do not go on without a lost one: start them again with --resume");
        }
        let backend = match device {
            Device::Cuda(device) if launch.joins => {
                return Err(training::Error::setting(
                    "--device",
                    format!("cuda:{device}"),
                    "cpu, because this rank joins others",
                )
                .into());
            }
            Device::Cuda(device) => Backend::Nccl { device },
            _ if launch.survives => {
                let members = Members::of_launch(&launch, &options)?;
                let ranks = if launch.joins { Self::Alone } else { Self::of_members(&members)? };
                return Ok((ranks, Some(members)));
            }
            _ => Backend::Gloo,
        };
        Ok((Self::Several(Box::new(ProcessGroup::from_launch(&launch, backend, &options)?)), None))
    }

    /// The group of these members.
    pub fn of_members(members: &Members) -> Result<Self> {
        match members.ranks().len() {
            1 => Ok(Self::Alone),
            _ => Ok(Self::Several(Box::new(members.group().map_err(|error| match error {
                // Of a later group, another rank was lost while it formed.
                c10d::Error::Rendezvous { detail } if members.generation() > 0 => {
                    c10d::Error::Communication { call: "joining the others".to_owned(), detail }
                }
                error => error,
            })?))),
        }
    }

    /// This process's rank.
    pub fn rank(&self) -> usize {
        match self {
            Self::Alone => 0,
            Self::Several(group) => group.rank(),
        }
    }

    /// Number of processes.
    pub fn world_size(&self) -> usize {
        match self {
            Self::Alone => 1,
            Self::Several(group) => group.world_size(),
        }
    }

    /// Whether this is rank 0, which writes the files.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// The group, if there are several processes.
    pub fn group(&self) -> Option<&ProcessGroup> {
        match self {
            Self::Alone => None,
            Self::Several(group) => Some(group),
        }
    }

    /// Checks without communication that no rank is lost.
    pub fn check(&self) -> Result<()> {
        self.group().map_or(Ok(()), |group| Ok(group.check()?))
    }

    /// Gathers numbers and bytes from each rank. On a GPU, waits until they have arrived.
    pub fn gather<const N: usize>(
        &self,
        numbers: [f64; N],
        bytes: &[u8],
    ) -> Result<Vec<([f64; N], Vec<u8>)>> {
        let Self::Several(group) = self else { return Ok(vec![(numbers, bytes.to_vec())]) };
        let own = [numbers.map(f64::to_ne_bytes).as_flattened(), bytes].concat();
        let all = group.all_gather_bytes(&own)?;
        all.iter().enumerate().map(|(rank, bytes)| split(rank, bytes)).collect()
    }

    /// Sums integers over the ranks.
    pub fn sum_i64(&self, numbers: &mut [i64]) -> Result<()> {
        if let Self::Several(group) = self {
            let mut sums = Tensor::f_from_slice(numbers)?.f_to_device(group.device())?;
            group.all_reduce(&mut sums, ReduceOp::Sum)?;
            group.to_host("all_reduce", &sums)?.f_copy_data(numbers, numbers.len())?;
        }
        Ok(())
    }

    /// The integers of all ranks, concatenated.
    pub fn gather_i64(&self, numbers: &[i64]) -> Result<Vec<i64>> {
        let Self::Several(group) = self else { return Ok(numbers.to_vec()) };
        let own = Tensor::f_from_slice(numbers)?.f_to_device(group.device())?;
        let all = Tensor::f_cat(&group.all_gather_unequal(&own)?, 0)?;
        Ok(Vec::<i64>::try_from(&group.to_host("all_gather", &all)?)?)
    }

    /// Runs a function on rank 0, for example to check files, and broadcasts its result. If it fails, all ranks fail:
    /// rank 0 with the error, the others with its message.
    pub fn of_rank_0<T: Serialize + DeserializeOwned>(
        &self,
        find_out: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if matches!(self, Self::Alone) {
            return find_out();
        }
        of_rank_0(self.is_first(), find_out, |mut message| {
            self.broadcast_bytes(&mut message)?;
            Ok(message)
        })
    }

    /// Broadcasts rank 0's bytes.
    pub fn broadcast_bytes(&self, bytes: &mut Vec<u8>) -> Result<()> {
        let Self::Several(group) = self else { return Ok(()) };
        let mut length = Tensor::f_from_slice(&[bytes.len() as i64])?.f_to_device(group.device())?;
        group.broadcast(&mut length, 0)?;
        let length = group.to_host("broadcast", &length)?.f_int64_value(&[0])? as usize;
        bytes.resize(length, 0);
        let mut content = Tensor::f_from_slice(bytes)?.f_to_device(group.device())?;
        group.broadcast(&mut content, 0)?;
        group.to_host("broadcast", &content)?.f_copy_data(bytes, length)?;
        Ok(())
    }

    /// Broadcasts rank 0's tensors into those of every rank, which must have the same shapes and kinds.
    pub fn broadcast(&self, tensors: &[Tensor]) -> Result<()> {
        self.broadcast_from(0, tensors)
    }

    /// Broadcasts the tensors of rank `root` as [`Ranks::broadcast`] does those of rank 0.
    pub fn broadcast_from(&self, root: usize, tensors: &[Tensor]) -> Result<()> {
        let Self::Several(group) = self else { return Ok(()) };
        for tensor in tensors {
            let mut content = tensor.detach().f_to_device(group.device())?;
            group.broadcast(&mut content, root)?;
            tch::no_grad(|| tensor.shallow_clone().f_copy_(&content).map(drop))?;
        }
        Ok(())
    }
}

/// Runs a function on rank 0 and broadcasts its result. `broadcast` sends the bytes of rank 0, and returns them on all
/// ranks. If the function fails, all ranks fail: rank 0 with the error, the others with its message.
fn of_rank_0<T: Serialize + DeserializeOwned>(
    is_first: bool,
    find_out: impl FnOnce() -> Result<T>,
    broadcast: impl FnOnce(Vec<u8>) -> Result<Vec<u8>>,
) -> Result<T> {
    let own = is_first.then(find_out);
    let sent = own.as_ref().map(|own| own.as_ref().map_err(|error| chain(error)));
    let message = match &sent {
        Some(sent) => serde_json::to_vec(sent).map_err(|error| Error::internal(&error))?,
        None => Vec::new(),
    };
    let received = broadcast(message);
    if let Some(Err(error)) = own {
        return Err(error);
    }
    // Rank 0 uses the decoded value too, so that all ranks have the same.
    let sent: std::result::Result<T, String> =
        serde_json::from_slice(&received?).map_err(|error| Error::internal(&error))?;
    sent.map_err(|message| Failed::new(Exit::TryAgain, format!("rank 0 failed: {message}")).into())
}

/// The numbers in a message, and the bytes behind them.
fn split<const N: usize>(rank: usize, bytes: &[u8]) -> Result<([f64; N], Vec<u8>)> {
    let numbers = bytes.as_chunks::<8>().0.first_chunk::<N>().ok_or_else(|| {
        training::Error::setting(
            "a message of another rank",
            format!("{} bytes from rank {rank}", bytes.len()),
            format!("at least {} bytes; start the same version of trainer on all ranks", 8 * N),
        )
    })?;
    Ok((numbers.map(f64::from_ne_bytes), bytes[8 * N..].to_vec()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_message_that_is_too_short_is_an_error_that_names_the_rank() {
        let mut bytes = [0.5f64, -2.0].map(f64::to_ne_bytes).as_flattened().to_vec();
        bytes.extend(b"more");
        assert_eq!(split::<2>(3, &bytes).unwrap(), ([0.5, -2.0], b"more".to_vec()));
        for length in [0, 8, 15] {
            let told = split::<2>(3, &bytes[..length]).unwrap_err().to_string();
            assert!(
                told.contains(&format!("{length} bytes from rank 3, expected at least 16 bytes")),
                "{told}"
            );
        }
    }
}
