//! The job on a real Hadoop: HDFS and YARN with two nodes on this machine, and shards in an S3 server. Even
//! if tasks, nodes and responses are lost, the dataset equals the dataset of a pipe.
//!
//! One cluster serves all tests. A job takes 20 s on two cores, mostly to start a JVM per task, so there are
//! few jobs, and each tests several properties.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

mod by_emr;
mod cluster;
mod diagnosed;
mod failing;
mod given;
mod job;
mod killed;
mod left_behind;
mod lost_node;
mod merge_tasks;
mod predictions;
mod slow_store;
mod whole_job;
