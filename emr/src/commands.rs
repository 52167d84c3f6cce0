//! The subcommands, one per file: its arguments, and `run`.

pub mod doctor;
