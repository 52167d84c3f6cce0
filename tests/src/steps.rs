//! Which step of a traced program something happens at, and in which way: all of them by turns, or some.
//!
//! `make test` takes some of the steps, from `FAULT_SEED` (0) on; PROVE=1 takes all of them, and FAULT_AT=17 that one
//! alone.

use std::env;
use std::process::Command;
use std::slice;
use std::time::Instant;

use crate::tracer::{Call, Ended, Then, trace};
use crate::{prove, say};

/// Tries step after step, up to the first that the program does not have, and says how many those were. `stride` is how
/// many steps `make test` goes on by. What is tried gives the call that was the step, `None` where there was none.
pub fn each_step<T: Copy>(
    what: &str,
    stride: usize,
    ways: Ways<'_, T>,
    mut tried: impl FnMut(usize, T) -> Option<Call>,
) {
    let mut is_met = |at| ways.at(at).iter().filter_map(|&way| tried(at, way)).count() > 0;
    let number = |name: &str| {
        let text = env::var(name).ok()?;
        Some(text.parse::<usize>().expect("FAULT_AT and FAULT_SEED are whole numbers"))
    };
    if let Some(at) = number("FAULT_AT") {
        is_met(at);
        return;
    }
    let (first, stride) =
        if prove() { (1, 1) } else { (1 + number("FAULT_SEED").unwrap_or_default() % stride, stride) };
    let begin = Instant::now();
    let n_met = (first..).step_by(stride).take_while(|&at| is_met(at)).count();
    assert!(n_met >= 5, "a program of {n_met} steps is none of ours");
    say(&format!("{what}: at {n_met} steps in {:.1} s", begin.elapsed().as_secs_f64()));
}

/// In which ways something happens at a step.
#[derive(Clone, Copy, Debug)]
pub enum Ways<'a, T> {
    /// In each of these.
    Each(&'a [T]),
    /// In one of these by turns in `make test`, in each where all steps are taken.
    ByTurns(&'a [T]),
}

impl<'a, T> Ways<'a, T> {
    fn at(&self, step: usize) -> &'a [T] {
        match *self {
            // Of every other step alone, `step % n` would be the same each time.
            Self::ByTurns(ways) if !prove() => slice::from_ref(&ways[step / 2 % ways.len()]),
            Self::Each(ways) | Self::ByTurns(ways) => ways,
        }
    }
}

/// What is said of a failure: which call of which program, and how to have it again.
pub fn described(program: &str, at: usize, call: Option<&Call>, way: &str) -> String {
    let call = call.map_or("it never came to that".to_owned(), |call| format!("{call:?}"));
    format!("{program}, step {at} ({call}), {way}; FAULT_AT={at} has it again")
}

/// Traces a program; the calls that are steps are counted from 1, and `each` is asked what becomes of them.
pub fn trace_steps(
    command: &Command,
    input: &[u8],
    mut is_step: impl FnMut(&Call) -> bool,
    mut each: impl FnMut(usize, &Call) -> Then,
) -> Ended {
    let mut at = 0;
    trace(command, input, &mut |call| {
        if !is_step(call) {
            return Then::GoOn;
        }
        at += 1;
        each(at, call)
    })
}

/// What a failed program says of its failure: one line behind those that tell how far it was.
#[track_caller]
pub fn error_line<'a>(program: &str, ended: &'a Ended, how: &str) -> &'a str {
    let mut lines = ended.stderr.lines().rev();
    let last = lines.next().unwrap_or_default();
    // Hadoop's counters and states, what merge begins where nobody sees its bars: `merge: checking shards (2)`, and where
    // bad lines are: `sentimill: bad_line at 17 of reviews.json`; of lines that are not UTF-8, and of work done before.
    let notices = [" at ", ": invalid_utf8 in ", " with the same rows"];
    let is_notice = |line: &str| line.ends_with(')') || notices.iter().any(|notice| line.contains(notice));
    let told = |line: &str| line.starts_with("reporter:") || (line.starts_with(program) && is_notice(line));
    let is_one_line = last.starts_with(&format!("{program}: ")) && lines.all(told);
    assert!(is_one_line, "{how}: not one line of why: {}", ended.stderr);
    last
}
