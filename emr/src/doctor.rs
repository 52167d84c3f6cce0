//! What a machine can do: its system, memory, disk, clock, store, Hadoop, GPUs and network, as checks with a remedy each.
//!
//! Nothing is changed, except that the store's probe object is written if a run is named. The names of facts in JSON are
//! those of the bootstrap actions.

mod check;
mod gpu;
mod network;
mod software;
mod store;
mod system;

use serde_json::{Map, Value};

use check::Checks;
pub use check::{Check, CheckState};

/// What to check beyond the machine itself.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The run whose store is checked.
    pub run: Option<String>,
    /// Options for S3.
    pub s3: ::store::S3Options,
}

/// Checks this machine.
pub fn examine(question: &Question) -> Vec<Check> {
    let mut checks = Checks::default();
    system::examine(&mut checks);
    store::examine(&mut checks, question);
    software::examine(&mut checks);
    gpu::examine(&mut checks);
    network::examine(&mut checks);
    checks.checks
}

/// The checks as text: one line each, and the remedy below those that are not met.
pub fn text(checks: &[Check]) -> String {
    checks.iter().map(Check::text).collect()
}

/// The checks as JSON: the facts by name, and the checks that are not met.
pub fn json(checks: &[Check]) -> Value {
    let mut facts: Map<String, Value> = checks.iter().flat_map(|check| check.facts.clone()).collect();
    let findings =
        checks.iter().filter(|check| matches!(check.state, CheckState::Warning | CheckState::Missing));
    facts.insert("findings".to_owned(), findings.map(Check::json).collect());
    facts.insert("ok".to_owned(), checks.iter().all(|check| check.state != CheckState::Missing).into());
    Value::Object(facts)
}
