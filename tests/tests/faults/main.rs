//! Programs killed at each of their steps, on a full disk, beside one another, and on files that change under them:
//! no row is lost or doubled, and what has a name is whole.
//!
//! `make test` takes some of the steps, from `FAULT_SEED` (0) on; PROVE=1 takes all of them, and FAULT_AT=17 that one
//! alone. A test that fails says which step it was.
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
