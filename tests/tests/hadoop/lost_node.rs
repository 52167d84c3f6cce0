//! A node is lost during a job, with all processes on it.

use std::fs;
use std::thread;

use tests::programs::run;

use crate::cluster::{cluster, until};
use crate::given::{FEW, FEW_PARTITIONS};
use crate::job::{Job, content_of, json};

/// Otherwise the application master asks the lost node for three minutes to stop the containers on it.
const NO_RETRIES: [&str; 2] = [
    "yarn.client.nodemanager-connect.max-wait-ms=10000",
    "yarn.client.nodemanager-connect.retry-interval-ms=1000",
];

#[test]
fn a_job_completes_after_a_node_is_lost() {
    let Some(cluster) = cluster() else { return };
    let _alone = cluster.nodes.write();
    let mut job = Job::new(cluster, "node", "few", FEW_PARTITIONS).with_luck(&[("0.0", "waits")]);
    for setting in NO_RETRIES {
        job = job.with(setting);
    }
    let folder = job.folder();

    let ran = thread::scope(|scope| {
        let ran = scope.spawn(|| job.run());
        let node = until("the reducer that waits", || content_of(&folder.join("0.0.node")));
        run(cluster.command("kill-node").arg(node.trim().chars().last().unwrap().to_string()), b"")
            .succeeded();
        let ran = ran.join().unwrap();
        run(cluster.command("start-node").arg(node.trim().chars().last().unwrap().to_string()), b"")
            .succeeded();
        ran
    });

    let ran = ran.succeeded();
    ran.is_the_same_dataset(&FEW);
    let commits = ran.commits();
    let first = &commits[0];
    assert!(!first.attempt.ends_with("_0"), "{}", first.attempt);
    assert!(!fs::exists(folder.join("go")).unwrap());
    // A partition without a row is committed, too.
    assert_eq!(commits.len(), FEW_PARTITIONS as usize);
    assert_eq!(commits.last().unwrap().counts.reviews, 0);
    until("the node to be back", || {
        let metrics = json(&cluster.page("/ws/v1/cluster/metrics"))?;
        (metrics["clusterMetrics"]["activeNodes"] == 2).then_some(())
    });
}
