//! The job on a real Hadoop: HDFS and YARN with two nodes on this machine, shards in an S3 server. However tasks, nodes
//! and answers are lost, the dataset is the one that a pipe makes.
//!
//! One cluster serves all tests. A job takes 20 s on two cores, most of it the start of a Java for each task, so that
//! there are few, each of which shows much.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

mod cluster;
mod failing;
mod given;
mod job;
mod killed;
mod left_behind;
mod lost_node;
mod slow_store;
mod whole_job;
