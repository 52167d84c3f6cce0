//! Selects the steps of a traced program at which a fault is injected, and the kinds of fault.
//!
//! `make test` injects faults at some of the steps; `FAULT_SEED` (default 0) selects the first one. With
//! PROVE=1, it injects faults at all steps; with FAULT_AT=17, only at step 17.

use std::env;
use std::process::Command;
use std::slice;
use std::time::Instant;

use crate::tracer::{Call, Ended, Then, trace};
use crate::{prove, say};

/// Runs `tried` for one step after another, up to the first step that the program does not reach, and prints
/// the number of steps. `stride` is the distance between steps in `make test`. `tried` returns the call at
/// the step, or `None` if there was none.
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

/// The kinds of fault at a step.
#[derive(Clone, Copy, Debug)]
pub enum Ways<'a, T> {
    /// All of these.
    Each(&'a [T]),
    /// In `make test`, one of these per step, alternately; all of them if all steps are tested.
    ByTurns(&'a [T]),
}

impl<'a, T> Ways<'a, T> {
    fn at(&self, step: usize) -> &'a [T] {
        match *self {
            // If only every second step is tested, `step % n` could always be the same.
            Self::ByTurns(ways) if !prove() => slice::from_ref(&ways[step / 2 % ways.len()]),
            Self::Each(ways) | Self::ByTurns(ways) => ways,
        }
    }
}

/// Describes a failure: the call, the program, and how to reproduce it.
pub fn described(program: &str, at: usize, call: Option<&Call>, way: &str) -> String {
    let call = call.map_or("it never came to that".to_owned(), |call| format!("{call:?}"));
    format!("{program}, step {at} ({call}), {way}; FAULT_AT={at} has it again")
}

/// Traces a program. Counts the calls that are steps from 1, and lets `each` decide what happens to them.
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

/// The error message of a failed program: the one line after the progress lines.
#[track_caller]
pub fn error_line<'a>(program: &str, ended: &'a Ended, how: &str) -> &'a str {
    let mut lines = ended.stderr.lines().rev();
    let last = lines.next().unwrap_or_default();
    // Hadoop's counters and states; merge's stages if there is no terminal (`merge: checking shards (2)`);
    // positions of bad lines (`sentimill: reviews.json:3: bad_line (byte 17)`); notices about lines that are not
    // UTF-8 and about earlier work.
    let notices = [": invalid_utf8 in ", " with the same rows"];
    let is_notice = |line: &str| line.ends_with(')') || notices.iter().any(|notice| line.contains(notice));
    let told = |line: &str| line.starts_with("reporter:") || (line.starts_with(program) && is_notice(line));
    let is_one_line = last.starts_with(&format!("{program}: ")) && lines.all(told);
    assert!(is_one_line, "{how}: not one line of why: {}", ended.stderr);
    last
}
