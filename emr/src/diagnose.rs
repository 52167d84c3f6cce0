//! Converts logs into the probable causes of a failure, with evidence and remedies, by rules.
//!
//! At most [`LOGS_MAX`] logs and [`BYTES_MAX`] bytes are read: first those of steps and bootstrap actions, then those of
//! containers, those of failed attempts first, then the newest; logs of nodes only if no cause was found before. Evidence is one line of a log, with secrets
//! masked. Messages of this project's programs contain no review text.

mod report;
mod rules;
mod search;
mod tasks;
mod telling;

pub use report::{Block, Evidence, Outcome, Report};
pub use rules::{Kind, Rule, rules};
pub use search::{BYTES_MAX, LOGS_MAX, LogScope, diagnose, is_sign};
pub use tasks::is_of_master;
