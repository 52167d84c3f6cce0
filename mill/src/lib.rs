//! Raw reviews → a dataset, on one machine.

pub mod reading;
