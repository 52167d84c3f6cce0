//! A node is lost during a job, with all processes on it.

use std::fs;
use std::thread;

use tests::programs::run;

use crate::cluster::{cluster, until};
use crate::given::{FEW, FEW_PARTITIONS};
use crate::job::{Job, content_of, json};

#[test]
fn a_job_completes_after_a_node_is_lost() {
    let Some(cluster) = cluster() else { return };
    let _alone = cluster.nodes.write();
    let job = Job::new(cluster, "node", "few", FEW_PARTITIONS).with_luck(&[("0.0", "waits")]);
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
    let first = &ran.commits()[0];
    assert!(!first.attempt.ends_with("_0"), "{}", first.attempt);
    assert!(!fs::exists(folder.join("go")).unwrap());
    until("the node to be back", || {
        let metrics = json(&cluster.page("/ws/v1/cluster/metrics"))?;
        (metrics["clusterMetrics"]["activeNodes"] == 2).then_some(())
    });
}
