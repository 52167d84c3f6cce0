//! What the remaining ranks of a training do after one of them is lost.

use std::rc::Rc;

use batches::balance::BalanceRule;
use c10d::Loss;
use runs::training::Line;

use super::{Group, Job};
use crate::error::{Error, Result};
use crate::ranks::{Ranks, is_loss};
use crate::train::Training;
use crate::train::survival::catch_up;

impl Job<'_> {
    /// Forms a group of the ranks that are left, and takes the training back to the last state that one of them completed.
    /// Returns the line of the loss. Errors: `error`, if the training cannot go on.
    pub(super) fn go_on_after(self, mut error: Error, training: &mut Training) -> Result<Line> {
        let first: Vec<usize> =
            self.session.group.borrow().members.iter().flat_map(|members| members.ranks().to_vec()).collect();
        let mut known = Vec::new();
        loop {
            known.extend(self.regroup(error, training)?);
            match self.settle(&first, &known, training) {
                Ok(line) => return Ok(line),
                // Another rank was lost.
                Err(another) => error = another,
            }
        }
    }

    /// Whether the shares of a given number of ranks are repeated.
    pub(super) fn is_replayed(self) -> bool {
        matches!(self.recipe.balance, Some(BalanceRule::Replay { .. }))
    }

    /// Replaces the members of the group by those that are left. Returns the lost rank, by its number in the launch, if the
    /// error has it.
    fn regroup(self, error: Error, training: &Training) -> Result<Option<Loss>> {
        let Self { session, out, ngrams, .. } = self;
        let is_widened = ngrams.is_some() && training.position.has_ended;
        let (Error::Ranks(cause), false) = (&error, self.is_replayed() || is_widened) else {
            return Err(error);
        };
        let mut group = session.group.borrow_mut();
        let Some(members) = group.members.as_ref().filter(|_| is_loss(cause)) else { return Err(error) };
        let left = members.without(cause.lost_rank())?;
        let is_first_lost = left.ranks().first() != members.ranks().first();
        if left.ranks().len() == members.ranks().len() || (is_first_lost && !out.is_inheritable()) {
            return Err(error);
        }
        let loss = match cause {
            c10d::Error::PeerLost { loss, .. } => {
                Some(Loss { rank: members.ranks()[loss.rank], ..loss.clone() })
            }
            _ => None,
        };
        // Connections of the old group are closed before new ones are made.
        *group = Group { ranks: Rc::new(Ranks::Alone), members: Some(left) };
        Ok(loss)
    }

    /// Joins the group of the members, and agrees with them on the state of the training.
    fn settle(self, first: &[usize], known: &[Loss], training: &mut Training) -> Result<Line> {
        let Self { session, out, recipe, splits, .. } = self;
        let (left, generation) = {
            let mut group = session.group.borrow_mut();
            let Some(members) = &group.members else { return Err(Error::internal(&"no members")) };
            let (left, generation) = (members.ranks().to_vec(), members.generation());
            group.ranks = Rc::new(Ranks::of_members(members)?);
            (left, generation)
        };
        let ranks = session.ranks();
        ranks.of_rank_0(|| Ok(out.inherit()?))?;
        let rows = catch_up(recipe, splits, &ranks, training)?;
        let lost: Vec<usize> = first.iter().filter(|rank| !left.contains(rank)).copied().collect();
        let named = lost.iter().map(|rank| match known.iter().find(|loss| loss.rank == *rank) {
            Some(loss) => loss.to_string(),
            None => format!("rank {rank} does not respond"),
        });
        let step = training.position.steps;
        let remaining: Vec<String> = left.iter().map(usize::to_string).collect();
        let go_on = match &remaining[..] {
            [one] => format!("rank {one} goes on"),
            several => format!("ranks {} go on", several.join(", ")),
        };
        session.tell(&format!(
            "{}; {go_on} after step {step} (generation {generation}); rows trained again: {rows}",
            named.collect::<Vec<_>>().join("; "),
        ));
        Ok(Line::Lost { step, ranks: lost, generation, world_size: left.len(), rows })
    }
}
