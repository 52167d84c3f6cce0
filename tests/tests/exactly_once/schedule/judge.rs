//! Checks whether the result of an attempt or a merge is allowed.

use std::path::Path;

use dataset::commit::Commit;
use merge::Outcome;
use program::exit::Exit;

use super::{Attempt, Ended, Schedule, Work};
use crate::attempts::elected;

impl Schedule<'_> {
    pub(super) fn judge(&mut self, seat: usize, ended: Ended) {
        match (ended, self.attempts[seat].work.clone()) {
            (Ended::Reduced(ended), Work::Reduce(partition)) => self.judge_reducer(seat, partition, *ended),
            (Ended::Merged(ended), Work::Merge { out, was_complete }) => {
                self.judge_merge(seat, &out, was_complete, *ended);
            }
            _ => unreachable!("an attempt ends with its own work"),
        }
    }

    fn judge_reducer(&mut self, seat: usize, partition: u32, ended: reducer::Result<Commit>) {
        let Attempt { is_wrong, is_hit, .. } = self.attempts[seat];
        let elected = elected(self.world.objects(), partition);
        let differs = elected.is_some() && self.elected_is_wrong(partition) != is_wrong;
        match ended {
            Ok(echo) => {
                assert_eq!(Some(echo), elected, "attempt {seat} echoes another commit: {}", self.story());
                assert!(!differs, "attempt {seat} is content with other rows: {}", self.story());
                self.done[partition as usize] = true;
                self.tell(format!("{seat} ends well"), "attempts that ended well");
                self.dismiss_others(partition);
            }
            Err(error) if differs && error.exit == Exit::Internal => {
                self.tell(format!("{seat} disagrees: {error}"), "disagreements");
            }
            Err(error) => {
                assert!(
                    is_hit && error.exit == Exit::Io,
                    "attempt {seat} failed by itself: {error}: {}",
                    self.story()
                );
                self.tell(format!("{seat} fails: {error}"), "attempts that failed");
            }
        }
    }

    fn judge_merge(&mut self, seat: usize, out: &Path, was_complete: bool, ended: merge::Result<Outcome>) {
        match ended {
            Ok(_) => {
                self.corpus.assert_is_dataset(out);
                self.tell(format!("{seat} has merged"), "merges that ended well");
            }
            Err(error) => {
                let too_early = !was_complete && error.exit == Exit::MissingInput;
                let is_unbalanced = error.exit == Exit::BadInput
                    && self.betrayed.is_some_and(|partition| self.elected_is_wrong(partition));
                let is_hit = self.attempts[seat].is_hit && error.exit == Exit::Io;
                let excused = too_early || is_unbalanced || is_hit;
                assert!(excused, "merge {seat} failed by itself: {error}: {}", self.story());
                self.tell(format!("{seat} fails: {error}"), "merges that were refused or failed");
            }
        }
    }
}
