//! One job as a cluster may run it, determined by a seed: attempts that overlap, are killed, are abandoned
//! and resume late; calls that fail or whose answers are lost; merges that start too early or while an
//! abandoned attempt is running.

mod judge;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use dataset::commit::Commit;
use merge::Outcome;
use program::exit::Exit;
use store::Store;
use synthetic::random::Random;
use tempfile::TempDir;

use crate::attempts::{Corpus, elected, merged, reduce, task};
use crate::hadoop::{Maps, with_a_review_more};
use crate::scratch;
use crate::world::{CallOutcome, World};

/// Number of occurrences of each event.
pub type EventCounts = BTreeMap<String, u64>;

const FAULTS: [CallOutcome; 5] = [
    CallOutcome::Refused,
    CallOutcome::AnswerLost,
    CallOutcome::Twice,
    CallOutcome::KilledBefore,
    CallOutcome::KilledAfter,
];

/// A running job.
pub struct Schedule<'a> {
    random: Random,
    corpus: &'a Corpus,
    maps: Maps,
    partitions: u32,
    folder: TempDir,
    world: Arc<World>,
    attempts: Vec<Attempt>,
    /// Partitions for which an attempt has succeeded.
    done: Vec<bool>,
    /// A partition some of whose attempts read other input.
    betrayed: Option<u32>,
    faults_left: usize,
    at_once_max: usize,
    /// Number of merges that may still start before all partitions are done, and of reruns of those that are.
    extras_left: usize,
    /// No new attempts start; running ones may finish.
    is_ending: bool,
    counts: EventCounts,
    told: Vec<String>,
}

/// An attempt, at the index of its number.
struct Attempt {
    work: Work,
    /// It reads other input than the others.
    is_wrong: bool,
    /// A call of it was failed or it was killed, so it may fail.
    is_hit: bool,
    /// The job no longer waits for it, and it is blocked in a call of the store.
    is_forgotten: bool,
    thread: Option<JoinHandle<Ended>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Work {
    Reduce(u32),
    Merge { out: PathBuf, was_complete: bool },
}

enum Ended {
    Reduced(Box<reducer::Result<Commit>>),
    Merged(Box<merge::Result<Outcome>>),
}

enum Next {
    Start(Work),
    Answer(usize, String),
    Wake(usize),
}

impl<'a> Schedule<'a> {
    /// The job of a seed over these lines.
    pub fn new(corpus: &'a Corpus, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let partitions = random.pick(&[1, 2, 3]);
        let maps = Maps::of(&corpus.lines, 1 + random.below(3), partitions);
        let folder = scratch();
        let objects = Store::open(folder.path().join("run").to_str().unwrap()).unwrap();
        Self {
            betrayed: random.one_in(6).then(|| random.below(partitions as usize) as u32),
            faults_left: random.below(8),
            at_once_max: random.pick(&[1, 2, 2, 4, 8]),
            extras_left: random.below(3),
            is_ending: false,
            random,
            corpus,
            maps,
            partitions,
            folder,
            world: World::new(objects),
            attempts: Vec::new(),
            done: vec![false; partitions as usize],
            counts: EventCounts::new(),
            told: Vec::new(),
        }
    }

    /// Runs the job to its end and checks the results.
    pub fn play(mut self) -> EventCounts {
        while !self.is_done() {
            self.step();
        }
        match self.betrayed {
            Some(partition) => self.expect_disagreement(partition),
            None => self.merge_beside_the_forgotten(),
        }
        self.wake_all();
        let was_betrayed = self.betrayed.is_some_and(|partition| self.elected_is_wrong(partition));
        let (store, folder) = (self.world.objects(), self.folder.path());
        assert_eq!(self.world.stored_twice(), Vec::<String>::new());
        if was_betrayed {
            // One review too many: the ledger does not balance.
            let refused = merged(store, &folder.join("wrong.h5"), self.maps.counts, folder).unwrap_err();
            assert_eq!(refused.exit, Exit::BadInput, "{refused}");
        } else {
            self.corpus.assert_whole(store, self.partitions, self.maps.counts, folder);
        }
        self.count(if was_betrayed { "wrong runs refused" } else { "datasets" });
        self.counts
    }

    /// Waits until all attempts are blocked or have ended, and performs one event.
    fn step(&mut self) {
        let asking = self.settled();
        if self.is_done() {
            return;
        }
        match self.choose(asking) {
            Next::Start(work) => self.start(work),
            Next::Wake(seat) => self.attempts[seat].is_forgotten = false,
            Next::Answer(seat, what) => {
                let outcome = self.outcome();
                match outcome {
                    None => {
                        self.attempts[seat].is_forgotten = true;
                        self.tell(format!("{seat} {what}: forgotten"), "forgotten attempts");
                    }
                    Some(outcome) => self.answer(seat, &what, outcome),
                }
            }
        }
    }

    fn choose(&mut self, asking: Vec<(usize, String)>) -> Next {
        let mut choices = Vec::new();
        for partition in 0..self.partitions {
            let alive = self.attempts.iter().filter(|attempt| {
                attempt.work == Work::Reduce(partition) && attempt.thread.is_some() && !attempt.is_forgotten
            });
            let (alive, is_done) = (alive.count(), self.done[partition as usize]);
            let weight = match alive {
                _ if is_done => usize::from(self.extras_left > 0),
                0 => 6,
                alive => usize::from(alive < self.at_once_max),
            };
            choices.push((weight, Next::Start(Work::Reduce(partition))));
        }
        if self.extras_left > 0 {
            choices.push((1, Next::Start(self.merge())));
        }
        for (seat, what) in asking {
            choices.push(match self.attempts[seat].is_forgotten {
                true => (1, Next::Wake(seat)),
                false => (5, Next::Answer(seat, what)),
            });
        }
        let weights: Vec<usize> = choices.iter().map(|(weight, _)| *weight).collect();
        choices.swap_remove(self.random.weighted(&weights)).1
    }

    /// `None` abandons the attempt.
    fn outcome(&mut self) -> Option<CallOutcome> {
        if self.faults_left == 0 || !self.random.one_in(3) {
            return Some(CallOutcome::Done);
        }
        self.faults_left -= 1;
        if self.random.one_in(4) { None } else { Some(self.random.pick(&FAULTS)) }
    }

    fn answer(&mut self, seat: usize, what: &str, outcome: CallOutcome) {
        self.attempts[seat].is_hit |= !matches!(outcome, CallOutcome::Done | CallOutcome::Twice);
        self.tell(format!("{seat} {what}: {outcome:?}"), &format!("{outcome:?}"));
        self.world.answer(seat, outcome);
    }

    fn merge(&mut self) -> Work {
        let name = self.random.pick(&["reviews.h5", "again.h5"]);
        Work::Merge { out: self.folder.path().join(name), was_complete: self.is_complete() }
    }

    fn is_complete(&self) -> bool {
        (0..self.partitions).all(|partition| elected(self.world.objects(), partition).is_some())
    }

    fn start(&mut self, work: Work) {
        let is_extra = match work {
            Work::Reduce(partition) => self.done[partition as usize],
            Work::Merge { .. } => true,
        };
        if is_extra {
            self.extras_left = self.extras_left.saturating_sub(1);
        }
        let is_wrong = work == Work::Reduce(self.betrayed.unwrap_or(u32::MAX)) && self.random.one_in(2);
        self.start_as(work, is_wrong);
    }

    fn start_as(&mut self, work: Work, is_wrong: bool) {
        let (desk, seat) = self.world.desk();
        let mut is_really_wrong = false;
        let folder = self.folder.path().to_owned();
        let thread = match work.clone() {
            Work::Reduce(partition) => {
                let mut input = self.maps.input(partition, &mut self.random);
                if is_wrong && let Some(wrong) = with_a_review_more(&input, &mut self.random) {
                    (input, is_really_wrong) = (wrong, true);
                }
                let task = task(partition, self.partitions, &format!("attempt-{seat}"), &folder);
                thread::spawn(move || Ended::Reduced(Box::new(reduce(&Store::of(desk), input, &task))))
            }
            Work::Merge { out, .. } => {
                let counts = self.maps.counts;
                thread::spawn(move || {
                    Ended::Merged(Box::new(merged(&Store::of(desk), &out, counts, &folder)))
                })
            }
        };
        self.tell(format!("{seat} starts: {work:?}, wrong: {is_really_wrong}"), "starts");
        let (is_hit, is_forgotten) = (false, false);
        self.attempts.push(Attempt {
            work,
            is_wrong: is_really_wrong,
            is_hit,
            is_forgotten,
            thread: Some(thread),
        });
    }

    fn is_done(&self) -> bool {
        self.done.iter().all(|done| *done)
    }

    /// Waits until each attempt is blocked or has ended, and checks those that have ended. Returns the calls
    /// of the others.
    fn settled(&mut self) -> Vec<(usize, String)> {
        loop {
            let asking = self.world.quiet();
            let n_seats = self.attempts.len();
            let Some(seat) =
                (0..n_seats).find(|&seat| self.attempts[seat].thread.is_some() && self.world.has_ended(seat))
            else {
                return asking;
            };
            let thread = self.attempts[seat].thread.take().expect("it was there");
            // This may end other attempts.
            self.judge(seat, thread.join().expect("an attempt does not panic"));
        }
    }

    /// Hadoop kills the other attempts of a completed task, and some of them are not reached.
    fn dismiss_others(&mut self, partition: u32) {
        if self.is_ending {
            return;
        }
        for (seat, what) in self.world.quiet() {
            let attempt = &mut self.attempts[seat];
            if attempt.work != Work::Reduce(partition) || attempt.thread.is_none() {
                continue;
            }
            match self.random.below(3) {
                0 => self.answer(seat, &what, CallOutcome::KilledBefore),
                1 => attempt.is_forgotten = true,
                _ => {}
            }
        }
    }

    /// Merges until one merge succeeds, with the remaining faults.
    fn merge_beside_the_forgotten(&mut self) {
        loop {
            let merge = self.merge();
            let seat = self.attempts.len();
            self.start(merge);
            while self.attempts[seat].thread.is_some() {
                let asking = self.settled();
                if let Some((_, what)) = asking.into_iter().find(|(asking, _)| *asking == seat) {
                    let outcome = self.outcome().unwrap_or(CallOutcome::Twice);
                    self.answer(seat, &what, outcome);
                }
            }
            if !self.attempts[seat].is_hit {
                return;
            }
        }
    }

    /// An attempt that reads other input than the elected one has to fail, even without any fault.
    fn expect_disagreement(&mut self, partition: u32) {
        let is_wrong = !self.elected_is_wrong(partition);
        let seat = self.attempts.len();
        self.start_as(Work::Reduce(partition), is_wrong);
        if self.attempts[seat].is_wrong != is_wrong {
            // There is no text to which a review could be added.
            return;
        }
        let disagreed = self.counts.get("disagreements").copied().unwrap_or_default();
        self.wake_all();
        let now = self.counts.get("disagreements").copied().unwrap_or_default();
        assert!(now > disagreed, "nobody noticed that attempt {seat} disagrees: {}", self.story());
    }

    /// Lets all running attempts finish, in random order and without faults.
    fn wake_all(&mut self) {
        self.is_ending = true;
        loop {
            let mut asking = self.settled();
            if asking.is_empty() && self.attempts.iter().all(|attempt| attempt.thread.is_none()) {
                return;
            }
            if !asking.is_empty() {
                let (seat, what) = asking.swap_remove(self.random.below(asking.len()));
                self.answer(seat, &what, CallOutcome::Done);
            }
        }
    }

    fn elected_is_wrong(&self, partition: u32) -> bool {
        let commit = elected(self.world.objects(), partition).expect("a partition that is committed");
        let seat: usize = commit.attempt.trim_start_matches("attempt-").parse().unwrap();
        self.attempts[seat].is_wrong
    }

    fn tell(&mut self, what: String, kind: &str) {
        self.told.push(what);
        self.count(kind);
    }

    fn count(&mut self, kind: &str) {
        *self.counts.entry(kind.to_owned()).or_default() += 1;
    }

    fn story(&self) -> String {
        format!("what happened:\n{}", self.told.join("\n"))
    }
}
