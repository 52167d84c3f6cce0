//! This process among the ranks of a training: its device, its group, and what was requested of it.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use c10d::Members;
use launch::interrupt::Interrupts;
use program::location::Location;
use tch::Device;
use training::out::{self, Existing, Out};
use training::tell::tell;

use super::described;
use crate::arguments::{ComputeName, TrainingFlags};
use crate::commands::device;
use crate::compute::Compute;
use crate::error::Result;
use crate::ranks::{Ranks, restarts};
use crate::train::trace;

/// This process as a rank of a training.
pub(in crate::commands) struct Session {
    pub(super) interrupts: Interrupts,
    pub(super) compute: Compute,
    pub(super) group: RefCell<Group>,
    /// When the last checkpoint was saved, or else when this process began.
    pub(super) saved_at: Cell<Instant>,
}

/// The group of ranks, which is another one after a loss or an arrival.
pub(super) struct Group {
    pub(super) ranks: Rc<Ranks>,
    /// Its members, if they can form another group.
    pub(super) members: Option<Members>,
}

impl Session {
    /// Joins the other ranks.
    pub(in crate::commands) fn join(training: &TrainingFlags, backend: ComputeName) -> Result<Self> {
        let interrupts = Interrupts::listen().map_err(training::Error::Signals)?;
        let compute = device::choose(&training.running.computing, backend)?;
        let (ranks, members) = Ranks::join_members(compute.device())?;
        let is_arrival = members.as_ref().is_some_and(Members::is_arrival);
        if !is_arrival {
            check_throttle(&training.throttle, ranks.world_size())?;
        }
        if let Some(path) = &training.trace {
            if compute.device() != Device::Cpu && ranks.world_size() == 1 {
                return Err(training::Error::setting(
                    "--trace",
                    format!("device {}", described(compute.device())),
                    "--device cpu or several ranks; use PyTorch's profiler for one GPU",
                )
                .into());
            }
            // A process that replaces a killed one finds its file.
            let is_new = restarts() == 0 && !is_arrival;
            ranks.of_rank_0(|| if is_new { Ok(trace::check(path)?) } else { Ok(()) })?;
        }
        let group = RefCell::new(Group { ranks: Rc::new(ranks), members });
        Ok(Self { interrupts, compute, group, saved_at: Cell::new(Instant::now()) })
    }

    /// This process as a rank of several trainings, which end with a lost rank.
    pub(in crate::commands) fn join_for_several(
        training: &TrainingFlags,
        backend: ComputeName,
    ) -> Result<Self> {
        let session = Self::join(training, backend)?;
        if session.is_arrival() {
            return Err(
                training::Error::setting("--folds", "passed to a rank that joins", "no --folds").into()
            );
        }
        if let Some(members) = session.group.borrow_mut().members.take() {
            members.end()?;
        }
        Ok(session)
    }

    /// Locks the training folder on rank 0.
    pub(in crate::commands) fn take(
        &self,
        out: &Location,
        training: &TrainingFlags,
        init_from: Option<&Location>,
    ) -> Result<Out> {
        if let (Location::Local(out), true) = (out, training.force) {
            out::check_restarts(out, restarts())?;
            out::check_force(out, "--init-from", init_from)?;
        }
        let existing = Existing::of_flags(training.resume.is_some(), training.force);
        let (s3, keep) = (training.storage.options(), training.keep_checkpoints);
        if self.is_arrival() {
            let folder = match out {
                Location::Local(folder) => folder.clone(),
                // Only rank 0 has one.
                Location::S3(_) => PathBuf::new(),
            };
            return Ok(Out::of(folder, out, keep, existing));
        }
        let mut taken = None;
        let folder: PathBuf = self.ranks().of_rank_0(|| {
            let out = taken.insert(Out::take(out, &s3, keep, existing)?);
            Ok(out.folder().to_owned())
        })?;
        Ok(taken.unwrap_or_else(|| Out::of(folder, out, keep, existing)))
    }

    /// The processes of the training.
    pub(in crate::commands) fn ranks(&self) -> Rc<Ranks> {
        Rc::clone(&self.group.borrow().ranks)
    }

    /// Whether the training can go on without a lost rank.
    pub(super) fn survives(&self) -> bool {
        self.group.borrow().members.is_some()
    }

    /// Whether there is one rank, and no other one can join.
    pub(in crate::commands) fn is_alone(&self) -> bool {
        self.ranks().world_size() == 1 && !self.survives()
    }

    /// Whether this rank joins a training, and has not arrived yet.
    pub(super) fn is_arrival(&self) -> bool {
        self.group.borrow().members.as_ref().is_some_and(Members::is_arrival)
    }

    /// The factors of --throttle of the ranks in the group. One that arrived has none.
    pub(super) fn throttle(&self, factors: &[f64]) -> Vec<f64> {
        match &self.group.borrow().members {
            Some(members) if !factors.is_empty() => {
                members.ranks().iter().map(|&rank| factors.get(rank).copied().unwrap_or(1.0)).collect()
            }
            _ => factors.to_vec(),
        }
    }

    /// Device and backend.
    pub(in crate::commands) fn compute(&self) -> &Compute {
        &self.compute
    }

    /// The device.
    pub(in crate::commands) fn device(&self) -> Device {
        self.compute.device()
    }

    /// Requests to stop or to save a checkpoint.
    pub(in crate::commands) fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    /// Prints a line on rank 0.
    pub(in crate::commands) fn tell(&self, line: &str) {
        if self.ranks().is_first() {
            tell(line);
        }
    }
}

/// Refuses factors of --throttle for another number of ranks.
fn check_throttle(factors: &[f64], world_size: usize) -> Result<()> {
    if factors.is_empty() || factors.len() == world_size {
        return Ok(());
    }
    let found: Vec<String> = factors.iter().map(f64::to_string).collect();
    let expected = format!("a factor for each rank; the number of ranks is {world_size}");
    Err(training::Error::setting("--throttle", found.join(","), expected).into())
}
