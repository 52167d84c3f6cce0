//! The subcommands, one per file: its arguments, and `run`.

pub mod diagnose;
pub mod doctor;
pub mod logs;
pub mod plan;
