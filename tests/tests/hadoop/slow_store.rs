//! An upload that takes longer than Hadoop waits for a silent task.

use std::time::{Duration, Instant};

use tests::fault_proxy::{Fault, FaultProxy};

use crate::cluster::cluster;
use crate::given::TALL;
use crate::job::Job;

/// The shortest that is supported.
const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn an_upload_longer_than_hadoops_time_limit_is_left_alone() {
    if std::env::var_os("PROVE").is_none() {
        tests::say("SKIPPED an upload of more than a minute: PROVE=1 has the time");
        return;
    }
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();
    let proxy = FaultProxy::start(cluster.s3.address(), |request| {
        let is_shard = request.method == "PUT" && request.target.contains("/data/");
        if is_shard { Fault::SlowRead(100_000, Duration::from_secs(1)) } else { Fault::None }
    })
    .unwrap();
    let begin = Instant::now();

    let limit = format!("mapreduce.task.timeout={}", TIMEOUT.as_millis());
    let ran = Job::new(cluster, "slow", "tall", 1).by(&proxy).with(&limit).run().succeeded();

    assert!(begin.elapsed() > TIMEOUT, "the upload took too little for a proof");
    assert!(!ran.counters("Job Counters").contains_key("Failed reduce tasks"), "{}", ran.said);
    ran.is_the_same_dataset(&TALL);
}
