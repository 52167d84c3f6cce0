//! Hadoop Streaming's contract with a task: the environment, the lines that Hadoop parses on standard error,
//! and the partition of a key. All names that Hadoop defines are in this module. It does not depend on
//! reviews.

mod end;
mod environment;
mod heartbeat;
mod partition;
mod report;

pub use end::end;
pub use environment::{Runner, Variable};
pub use heartbeat::{Heartbeat, silence};
pub use partition::partition;
pub use report::{report_counters, report_status};
