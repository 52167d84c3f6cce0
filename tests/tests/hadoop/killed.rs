//! Reducers that are killed at any instant, and two concurrent attempts of one partition.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use synthetic::random::Random;
use tests::fault_proxy::{Fault, FaultProxy, Request};

use crate::cluster::cluster;
use crate::given::MANY;
use crate::job::Job;

/// One partition per instant.
const READING: u32 = 0;
const WRITING: u32 = 1;
const PUTTING: u32 = 2;
const BEFORE_COMMIT: u32 = 3;
const AFTER_COMMIT: u32 = 4;
const TWINS: u32 = 5;
const PARTITIONS: u32 = 6;

/// Two maps, and early speculative attempts of a reducer that makes no progress.
const SPECULATION: [&str; 6] = [
    "mapreduce.input.fileinputformat.split.minsize=8000000",
    "mapreduce.map.speculative=false",
    "mapreduce.job.speculative.minimum-allowed-tasks=1",
    "mapreduce.job.speculative.slowtaskthreshold=0.1",
    "mapreduce.job.speculative.retry-after-no-speculate=500",
    "mapreduce.job.speculative.retry-after-speculate=1000",
];

/// Kills the program of a task while one of its requests is in progress.
pub fn kill(folder: &Path, task: u32) -> Fault {
    let process = fs::read_to_string(folder.join(format!("{task}.pid"))).unwrap();
    assert!(Command::new("kill").args(["-9", process.trim()]).status().unwrap().success());
    Fault::Reset
}

/// Whether the request puts a partition's shard or commit.
fn is_put(request: &Request, folder: &str, partition: u32) -> bool {
    request.method == "PUT" && request.target.contains(&format!("/{folder}/part-{partition:05}."))
}

fn fault(request: &Request, folder: &Path) -> Fault {
    let first_attempt = request.target.contains("_0.h5");
    let of = |name, partition| is_put(request, name, partition);
    match request.earlier {
        // In case it has passed the earlier instant before the test detected that it was writing.
        0 if of("data", WRITING) && first_attempt => kill(folder, WRITING),
        0 if of("data", PUTTING) && first_attempt => kill(folder, PUTTING),
        0 if of("commit", BEFORE_COMMIT) => kill(folder, BEFORE_COMMIT),
        // The store completes the put, and the reducer is killed before it gets the answer.
        0 if of("commit", AFTER_COMMIT) => Fault::LoseAnswer,
        1 if of("commit", AFTER_COMMIT) => kill(folder, AFTER_COMMIT),
        _ => Fault::None,
    }
}

#[test]
fn killed_reducers_and_speculative_attempts_commit_once() {
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();
    let folder = cluster.own_folder("killed");
    let proxy = {
        let folder = folder.clone();
        FaultProxy::start(cluster.s3.address(), move |request| fault(request, &folder)).unwrap()
    };
    let mut job = Job::new(cluster, "killed", "many", PARTITIONS).by(&proxy).with_luck(&[
        (&format!("{READING}.0"), "dies-reading"),
        (&format!("{WRITING}.0"), "dies-writing"),
        (&format!("{TWINS}.0"), "twin"),
        (&format!("{TWINS}.1"), "twin"),
    ]);
    for setting in SPECULATION {
        job = job.with(setting);
    }

    let ran = job.run().succeeded();

    ran.is_the_same_dataset(&MANY);
    let commits = ran.commits();
    assert_eq!(commits.len(), PARTITIONS as usize);
    let shards: Vec<String> = ran.shards();
    let mut of: HashMap<u32, Vec<&str>> = HashMap::new();
    for shard in &shards {
        let (partition, attempt) = shard.split_once('.').unwrap();
        of.entry(partition.parse().unwrap()).or_default().push(attempt);
    }
    let elected = |partition: u32| commits[partition as usize].attempt.rsplit('_').next().unwrap().to_owned();
    for partition in [READING, WRITING, PUTTING] {
        assert_eq!((of[&partition].as_slice(), &elected(partition)[..]), (&["1"][..], "1"), "{shards:?}");
    }
    assert_eq!((of[&BEFORE_COMMIT].as_slice(), &elected(BEFORE_COMMIT)[..]), (&["0", "1"][..], "1"));
    assert_eq!((of[&AFTER_COMMIT].as_slice(), &elected(AFTER_COMMIT)[..]), (&["0"][..], "0"));
    assert_eq!(of[&TWINS], ["0", "1"], "both attempts reached the store");
    for attempt in ["0", "1"] {
        assert!(folder.join(format!("{TWINS}.{attempt}.ended")).exists(), "both lived to their end");
    }
    let killed = ran.said.matches("subprocess failed with code 137").count();
    assert_eq!(killed, 5, "{}", ran.said);
    assert_eq!(ran.counters("Job Counters")["Failed reduce tasks"], 5);
}

#[test]
fn reducers_killed_at_random_instants_commit_once() {
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();
    // One job per seed, only with PROVE=1. Otherwise the instants above are sufficient.
    let seeds = if tests::prove() { 5 } else { 0 };
    for (seed, name) in (1..=seeds).zip(["seed-1", "seed-2", "seed-3", "seed-4", "seed-5"]) {
        let mut random = Random::new(seed);
        let attempts =
            (0..PARTITIONS).flat_map(|task| (0..3).map(move |attempt| format!("{task}.{attempt}")));
        let mut luck_of = |attempt| (attempt, format!("dies-after 0.{:03}", random.below(1000)));
        let luck: Vec<_> = attempts.map(&mut luck_of).collect();
        let luck: Vec<_> = luck.iter().map(|(attempt, luck)| (&attempt[..], &luck[..])).collect();

        let ran = Job::new(cluster, name, "many", PARTITIONS).with_luck(&luck).run().succeeded();

        ran.is_the_same_dataset(&MANY);
        let failed = ran.counters("Job Counters").get("Failed reduce tasks").copied().unwrap_or(0);
        tests::say(&format!("{name}: {failed} of {} reducers were killed; {:?}", luck.len(), ran.shards()));
        assert_eq!(ran.commits().len(), PARTITIONS as usize);
    }
}
