//! Hadoop Streaming's contract with a task: what the environment says, what Hadoop reads on standard error, and how it
//! splits keys among reducers. The only place that knows Hadoop's names. Knows nothing of reviews.

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
