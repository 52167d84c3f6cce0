//! An upload that takes longer than Hadoop's limit for a silent task.

use std::time::Duration;

use tests::fault_proxy::{Fault, FaultProxy, Request};

use crate::cluster::cluster;
use crate::given::TALL;
use crate::job::Job;

/// The shortest supported limit.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The size of a part, and the speed of the store: 64 s per part.
const PART_BYTES: u64 = 8 << 20;
const PIECE_BYTES: usize = 65_000;
const PAUSE: Duration = Duration::from_millis(500);

#[test]
fn an_upload_longer_than_the_hadoop_time_limit_is_not_killed() {
    if !tests::prove() {
        tests::say("SKIPPED an upload of more than a minute: PROVE=1 has the time");
        return;
    }
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();
    let proxy = FaultProxy::start(cluster.s3.address(), |request| {
        if is_shard(request) { Fault::SlowRead(PIECE_BYTES, PAUSE) } else { Fault::None }
    })
    .unwrap();
    let limit = format!("mapreduce.task.timeout={}", TIMEOUT.as_millis());
    let one_map = "mapreduce.input.fileinputformat.split.minsize=1000000000";
    let ran = Job::new(cluster, "slow", "tall", 1).by(&proxy).with(&limit).with(one_map).run().succeeded();

    let sent = proxy.seen().iter().filter(|(request, _)| is_shard(request)).count() as u64;
    assert!(
        sent > 1 && sent == ran.commits()[0].bytes.div_ceil(PART_BYTES),
        "{sent} parts: each is sent once"
    );
    assert!(PAUSE * (PART_BYTES / PIECE_BYTES as u64) as u32 > TIMEOUT);
    assert!(!ran.counters("Job Counters").contains_key("Failed reduce tasks"), "{}", ran.said);
    ran.is_the_same_dataset(&TALL);
}

fn is_shard(request: &Request) -> bool {
    request.method == "PUT" && request.target.contains("/data/")
}
