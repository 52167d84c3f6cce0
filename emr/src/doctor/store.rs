//! The store of a run: credentials, the clock of the service, reading, and conditional put requests.

use program::exit::chain;
use store::{Store, clock_of};

use super::Question;
use super::check::Checks;
use crate::credentials::Source;

/// S3 refuses requests whose time differs by 15 minutes. A clock that differs by half a minute is not synchronized.
const OFFSET_MAX_S: f64 = 30.0;

pub(super) fn examine(checks: &mut Checks, question: &Question) {
    let source = Source::of(question.s3.profile.as_deref());
    let source = source.name();
    let Some(run) = &question.run else {
        checks
            .unknown("store", "not checked; pass --run URL")
            .fact("credentials", source)
            .fact("clock_offset_s", serde_json::Value::Null);
        return;
    };
    let is_s3 = ["s3://", "s3a://", "s3n://"].iter().any(|scheme| run.starts_with(scheme));
    if is_s3 {
        clock(checks, run, question);
    }
    let opened = Store::open_with(run, &question.s3);
    let read = opened.and_then(|store| store.list("commit/").map(|commits| (store, commits.len())));
    let probed = read.and_then(|(store, commits)| store.probe().map(|()| (store.url(), commits)));
    match probed {
        Ok((url, commits)) => {
            let by = if is_s3 { format!("; credentials from {source}") } else { String::new() };
            checks.ok(
                "store",
                format!("{url}: readable, {commits} commit records, conditional put requests work{by}"),
            );
        }
        Err(error) => {
            let message = chain(&error);
            let (found, remedy) = message.rsplit_once("; ").unwrap_or((&message, "check --run"));
            checks.missing("store", format!("{found} (credentials from {source})"), remedy);
        }
    }
    let is_ok = checks.checks.last().is_some_and(|check| check.state == super::CheckState::Ok);
    checks.fact("run", program::exit::one_line(run)).fact("store_ok", is_ok).fact("credentials", source);
}

fn clock(checks: &mut Checks, run: &str, question: &Question) {
    let Ok(found) = clock_of(run, &question.s3) else {
        // The next check has the error.
        return;
    };
    match found.offset_s {
        Some(offset) if offset.abs() > OFFSET_MAX_S => checks.missing(
            "store clock",
            format!("this clock differs by {offset:.0} s from the clock of {}", found.endpoint),
            "start chronyd, or set the clock",
        ),
        Some(offset) => checks.ok("store clock", format!("offset {offset:.0} s from {}", found.endpoint)),
        None => checks.unknown("store clock", format!("{} sends no time", found.endpoint)),
    }
    .fact("clock_offset_s", found.offset_s)
    .fact("endpoint", found.endpoint.clone())
    .fact("region", found.region);
}
