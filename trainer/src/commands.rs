//! The commands of the program. Each module converts the arguments of a command into calls of the other
//! modules.

mod classes;
mod device;
mod evaluate;
mod explain;
mod export;
mod fit;
mod folds;
mod init;
mod launch;
mod lines;
mod model;
mod out;
mod outcome;
mod predict;
mod pretrain;
mod progress;
mod recipe;
mod report;
mod rows;
mod soft_labels;
mod summary;
mod training;

pub use evaluate::evaluate;
pub use explain::explain;
pub use export::export;
pub use fit::fit;
pub use launch::launch;
pub use predict::predict;
pub use pretrain::pretrain;
pub use report::report;
