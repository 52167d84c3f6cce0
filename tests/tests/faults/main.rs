//! Programs that are killed at each of their steps, run on a full disk, run concurrently, or read files that
//! change. No row is lost or duplicated, and every named file is complete.
//!
//! `make test` injects faults at some of the steps; `FAULT_SEED` (default 0) selects the first one. With
//! PROVE=1, it injects faults at all steps; with FAULT_AT=17, only at step 17. A failing test prints its
//! step.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

#[cfg(target_arch = "x86_64")]
mod altered;
#[cfg(target_arch = "x86_64")]
mod full_disk;
mod job;
#[cfg(target_arch = "x86_64")]
mod killed;
#[cfg(target_arch = "x86_64")]
mod synced;
mod two_merges;

#[cfg(not(target_arch = "x86_64"))]
#[test]
fn programs_are_traced() {
    tests::say("SKIPPED programs killed at their system calls: the tracer knows the calls of x86_64 only");
}
