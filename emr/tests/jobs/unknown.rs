//! A cluster whose creation is known to EMR alone, or only to the command that created it, is not lost.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::world::{World, document, world};

const DETACHED: [&str; 3] = ["--interval", "1", "--detach"];

fn end(world: &World, job: &std::path::Path) {
    world.emr.order("DELETE", "faults", &json!({}));
    world.emr("terminate", job, &[]).succeeded();
}

#[test]
fn a_cluster_is_recorded_although_the_requests_after_its_creation_fail() {
    let Some(world) = world() else { return };
    let job = world.job("confirmed", &[("keep = false", "keep = true")]);
    // All tries of the client.
    world.emr.order(
        "POST",
        "faults",
        &json!({"operation": "ListClusters", "answer": "internal", "times": 7, "after": "RunJobFlow"}),
    );
    let submitted = world.emr("run", &job, &DETACHED).succeeded();
    let [(cluster, _)] = &world.clusters("confirmed")[..] else { panic!("not one cluster") };
    for line in
        [format!("created cluster {cluster}\n"), format!("warning: {cluster} was created, and its state")]
    {
        assert!(submitted.stderr.contains(&format!("emr: {line}")), "{}", submitted.stderr);
    }
    let record = world.emr.get("runs/confirmed/job/cluster-1.json").unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&record).unwrap(), json!({"cluster": cluster}));
    end(&world, &job);
}

#[test]
fn an_interrupted_search_for_a_cluster_lets_no_other_command_create_a_second_one() {
    let Some(world) = world() else { return };
    let job = world.job("unknown", &[("keep = false", "keep = true")]);
    // The request is executed, its response is lost, and the cluster is not listed yet.
    world.emr.answer("RunJobFlow", "lost", 1);
    world.emr.order("POST", "faults", &json!({"listed_after_s": 3600}));
    let mut first = world.command("run");
    let first = first.arg(&job).args(["--interval", "1"]).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut first = first.spawn().unwrap();
    let mut lines = BufReader::new(first.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.ends_with("; checking whether the cluster was created")));
    Command::new("kill").args(["-INT", &first.id().to_string()]).status().unwrap();
    let said = lines.last().unwrap_or_default();
    assert_eq!(first.wait().unwrap().code(), Some(75), "{said}");
    let expected = "emr: interrupted; it is unknown whether the cluster was created: run the command again, which searches \
                    for it; emr list shows clusters";
    assert_eq!(said, expected);
    assert_eq!(world.emr.keys("runs/unknown/job/cluster-"), [""; 0]);

    // The next command waits for the cluster, and finds it as soon as EMR lists it.
    let mut second = world.command("run");
    let second =
        second.arg(&job).args(DETACHED).args(["--json"]).stderr(Stdio::piped()).stdout(Stdio::piped());
    let mut second = second.spawn().unwrap();
    let mut lines = BufReader::new(second.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.ends_with("; waiting for it for at most 300 s")));
    world.emr.order("DELETE", "faults", &json!({}));
    let found = tests::programs::finish(second, "the second command").succeeded();
    let [(cluster, _)] = &world.clusters("unknown")[..] else { panic!("not one cluster") };
    assert_eq!(&document(&found)["cluster"], cluster);
    end(&world, &job);
}
