//! How the ranks of a training form another group: without a lost rank, or with those that wait to join.

use std::rc::Rc;

use batches::balance::BalanceRule;
use c10d::{Cause, Loss};
use runs::checkpoints::differing;
use runs::training::Line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Job;
use super::session::Group;
use crate::error::{Error, Result};
use crate::ranks::{Ranks, is_loss};
use crate::train::Training;
use crate::train::splits::Splits;
use crate::train::survival::catch_up;

/// What a rank that wants to join must train, too.
#[derive(Serialize, Deserialize)]
struct Described {
    recipe: Value,
    datasets: Vec<String>,
}

impl Job<'_> {
    /// Forms another group after an error, or with the ranks that wait to join, and takes the training back to the last state
    /// that a rank completed. Returns lines about the change. Errors: `cause`, if the training cannot go on.
    pub(super) fn regroup(self, mut cause: Option<Error>, training: &mut Training) -> Result<Vec<Line>> {
        let members = || -> Vec<usize> {
            self.session.group.borrow().members.iter().flat_map(|members| members.ranks().to_vec()).collect()
        };
        let (first, mut known, mut joined) = (members(), Vec::new(), Vec::new());
        loop {
            known.extend(self.change_members(cause, &joined, training)?);
            match self.settle(&first, &known, training) {
                Ok(lines) => return Ok(lines),
                // Another rank was lost, or those that joined do not reach the others.
                Err(another) => cause = Some(another),
            }
            joined = members();
            joined.retain(|rank| !first.contains(rank));
        }
    }

    /// Waits until the others let this rank join, and takes over their state. Errors: they train something else, or nobody can
    /// join.
    pub(super) fn arrive(self, training: &mut Training) -> Result<Vec<Line>> {
        if self.is_replayed() {
            return Err(
                training::Error::setting("--balance", "replay", "another one, because a rank joins").into()
            );
        }
        let listed = {
            let group = self.session.group.borrow();
            let Some(members) = &group.members else { return Err(Error::internal(&"no members")) };
            let is_stopped = || self.session.interrupts.is_stop_requested();
            self.check_equal(&members.training(&is_stopped)?)?;
            members.arrive(&is_stopped)?
        };
        let ranks = listed.ranks().to_vec();
        *self.session.group.borrow_mut() = Group { ranks: Rc::new(Ranks::Alone), members: Some(listed) };
        match self.settle(&ranks, &[], training) {
            // Of another error, this rank may be the cause.
            Err(Error::Ranks(c10d::Error::PeerLost { call, loss })) if loss.cause != Cause::Unwelcome => {
                self.regroup(Some(c10d::Error::PeerLost { call, loss }.into()), training)
            }
            settled => settled,
        }
    }

    /// Whether the shares of a given number of ranks are repeated.
    pub(super) fn is_replayed(self) -> bool {
        matches!(self.recipe.balance, Some(BalanceRule::Replay { .. }))
    }

    /// What this rank trains.
    pub(super) fn described(self) -> Result<String> {
        let recipe = serde_json::to_value(self.recipe).map_err(|error| Error::internal(&error))?;
        let described = Described { recipe, datasets: self.digests() };
        serde_json::to_string(&described).map_err(|error| Error::internal(&error))
    }

    /// The digests of its datasets.
    fn digests(self) -> Vec<String> {
        let Splits { rows, validation, test, unlabelled, .. } = self.splits;
        let all = [Some(rows), validation, test, unlabelled];
        all.iter().flatten().map(|rows| rows.id_digest().to_string()).collect()
    }

    /// Refuses to join a training with other rows or settings.
    fn check_equal(self, others: &str) -> Result<()> {
        let others: Described = serde_json::from_str(others).map_err(|error| Error::internal(&error))?;
        let own = self.digests();
        let difference = match others.datasets == own {
            true => {
                differing(&others.recipe, self.recipe)?.map(|(what, expected, found)| (what, found, expected))
            }
            false => {
                let [found, expected] = [own, others.datasets].map(|digests| digests.join(", "));
                Some(("the digest of the datasets".to_owned(), found, expected))
            }
        };
        let Some((what, found, expected)) = difference else { return Ok(()) };
        let expected = format!("{expected} as in the training to join; start all ranks by the same command");
        Err(training::Error::setting(&what, found, expected).into())
    }

    /// Replaces the members of the group by those that are left, and those that wait to join. If the cause does not tell which
    /// rank is lost, it is those that joined last. Returns the lost rank, by the number with which it was started, if the cause
    /// has it.
    fn change_members(
        self,
        cause: Option<Error>,
        joined: &[usize],
        training: &Training,
    ) -> Result<Option<Loss>> {
        let Self { session, out, ngrams, .. } = self;
        let is_widened = ngrams.is_some() && training.position.has_ended;
        let cause = match cause {
            Some(Error::Ranks(cause)) if is_loss(&cause) && !self.is_replayed() && !is_widened => Some(cause),
            Some(error) => return Err(error),
            None => None,
        };
        let failed = |cause: Option<c10d::Error>| {
            let lost = || c10d::Error::Communication {
                call: "joining the others".to_owned(),
                detail: "rank 0 is lost".to_owned(),
            };
            Err(Error::Ranks(cause.unwrap_or_else(lost)))
        };
        let mut group = session.group.borrow_mut();
        let Some(members) = group.members.as_ref() else { return failed(cause) };
        let number = |rank: usize| members.ranks().get(rank).copied();
        let lost = cause.as_ref().and_then(c10d::Error::lost_rank).and_then(number);
        let left = members.regroup(lost.as_ref().map_or(joined, std::slice::from_ref))?;
        let is_first_lost = left.ranks().first() != members.ranks().first();
        let is_same = left.ranks() == members.ranks() && cause.is_some();
        if is_same || (is_first_lost && !out.is_inheritable()) {
            return failed(cause);
        }
        let loss = match (cause, lost) {
            (Some(c10d::Error::PeerLost { loss, .. }), Some(rank)) => Some(Loss { rank, ..loss }),
            _ => None,
        };
        // Connections of the old group are closed before new ones are made.
        *group = Group { ranks: Rc::new(Ranks::Alone), members: Some(left) };
        Ok(loss)
    }

    /// Joins the group of the members, and agrees with them on the state of the training.
    fn settle(self, first: &[usize], known: &[Loss], training: &mut Training) -> Result<Vec<Line>> {
        let Self { session, out, recipe, splits, .. } = self;
        let (members, generation) = {
            let mut group = session.group.borrow_mut();
            let Some(members) = &group.members else { return Err(Error::internal(&"no members")) };
            let (ranks, generation) = (members.ranks().to_vec(), members.generation());
            group.ranks = Rc::new(Ranks::of_members(members)?);
            (ranks, generation)
        };
        let ranks = session.ranks();
        ranks.of_rank_0(|| Ok(out.inherit()?))?;
        let rows = catch_up(recipe, splits, &ranks, training)?;
        let step = training.position.steps;
        let of = |ranks: &[usize], others: &[usize]| -> Vec<usize> {
            ranks.iter().filter(|rank| !others.contains(rank)).copied().collect()
        };
        let (lost, joined) = (of(first, &members), of(&members, first));
        let world_size = members.len();
        let mut lines = Vec::new();
        if !lost.is_empty() {
            let named = lost.iter().map(|rank| match known.iter().find(|loss| loss.rank == *rank) {
                Some(loss) => loss.to_string(),
                None => format!("rank {rank} does not respond"),
            });
            session.tell(&format!(
                "{}; {} after step {step} (generation {generation}); rows trained again: {rows}",
                named.collect::<Vec<_>>().join("; "),
                named_with(&of(&members, &joined), "goes on", "go on"),
            ));
            lines.push(Line::Lost { step, ranks: lost, generation, world_size, rows });
        }
        if !joined.is_empty() {
            session.tell(&format!(
                "{} after step {step} (generation {generation}); number of ranks: {world_size}",
                named_with(&joined, "joins", "join"),
            ));
            lines.push(Line::Joined { step, ranks: joined, generation, world_size });
        }
        Ok(lines)
    }
}

/// Ranks and what they do.
fn named_with(ranks: &[usize], one_does: &str, several_do: &str) -> String {
    match ranks {
        [one] => format!("rank {one} {one_does}"),
        several => {
            let several: Vec<String> = several.iter().map(usize::to_string).collect();
            format!("ranks {} {several_do}", several.join(", "))
        }
    }
}
