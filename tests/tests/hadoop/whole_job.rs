//! All kinds of input through a job without faults.

use std::collections::BTreeMap;

use dataset::commit::Commit;
use serde_json::Value;
use tests::oracle::texts_agree;
use tests::programs::{program, run};

use crate::cluster::cluster;
use crate::given::{FEW, FEW_PARTITIONS, WHOLE};
use crate::job::{Job, Ran};
use crate::left_behind::MARK;

#[test]
fn a_job_makes_the_same_dataset_as_a_pipe() {
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();

    let ran = Job::new(cluster, "whole", "whole", 3).reducer("--texts").run().succeeded();

    ran.is_the_same_dataset(&WHOLE);
    let mapper: BTreeMap<String, u64> =
        WHOLE.counts.counters().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(ran.counters("mapper"), mapper);
    let reducer: BTreeMap<String, u64> =
        WHOLE.ledger.reducer.counters().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(ran.counters("reducer"), reducer);
    let framework = ran.counters("Map-Reduce Framework");
    assert!(framework["Combine output records"] < framework["Combine input records"], "{framework:?}");
    assert!(ran.counters("Job Counters")["Launched map tasks"] > WHOLE.files.len() as u64);
    let commits = ran.commits();
    assert_eq!(commits.len(), 3);
    has_the_texts_of_sentimill(&ran, &commits);
}

fn has_the_texts_of_sentimill(ran: &Ran<'_>, commits: &[Commit]) {
    let texts = |commit: &Commit| {
        let name = &commit.texts.as_ref().unwrap().name;
        let file = ran.folder.join(name.rsplit('/').next().unwrap());
        std::fs::write(&file, ran.object(name)).unwrap();
        file
    };
    let mut sentimill = program("sentimill");
    for (name, bytes) in &WHOLE.files {
        let file = ran.folder.join(name);
        std::fs::write(&file, bytes).unwrap();
        sentimill.arg(file);
    }
    sentimill.args(["--texts", "texts.parquet", "--out"]).arg(ran.folder.join("sentimill.h5"));
    run(&mut sentimill, b"").succeeded();
    let parts: Vec<_> = commits.iter().map(texts).collect();
    texts_agree(&ran.folder.join("texts.parquet"), &parts, WHOLE.ledger.reducer.rows);
}

#[test]
fn a_restarted_job_commits_nothing_twice() {
    if !tests::prove() {
        tests::say("SKIPPED a job that is started again: PROVE=1 has the time");
        return;
    }
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();

    let first = Job::new(cluster, "first", "few", FEW_PARTITIONS).run().succeeded();
    let again = Job::new(cluster, "again", "few", FEW_PARTITIONS).into_run_of("first").run().succeeded();

    again.is_the_same_dataset(&FEW);
    assert!(again.commits().iter().all(|commit| commit.job.as_ref() == Some(&first.id)));
    assert_eq!(again.shards().len(), FEW_PARTITIONS as usize);
}

#[test]
fn a_job_of_maps_only_keeps_each_reject_once() {
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();

    let job = Job::of_maps(cluster, "rejects", "whole", "mapper --rejects");
    let ran = job.with_luck(&[("0.0", "dies-reading")]).run().succeeded();

    assert_eq!(ran.counters("Job Counters")["Failed map tasks"], 1);
    let mut expected = Vec::new();
    for (name, bytes) in &WHOLE.files {
        let file = ran.folder.join(name);
        std::fs::write(&file, bytes).unwrap();
        let rejected = run(program("mapper").args(["--rejects", "--input"]).arg(&file), b"").succeeded();
        expected.extend(facts(&rejected.said()));
    }
    let mut found = facts(&ran.output());
    expected.sort();
    found.sort();
    assert!(found.iter().any(|facts| facts.contains(MARK)));
    assert_eq!(found, expected);
    assert_eq!(found.len() as u64, ran.counters("Map-Reduce Framework")["Map output records"]);
}

/// The fields of each reject that do not depend on the task: the name of its file, the reason, and the line.
fn facts(rejects: &str) -> Vec<String> {
    let fact = |line: &str| {
        let reject: Value = serde_json::from_str(line).unwrap();
        let file = reject["file"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        format!("{file} {} {}{}", reject["reason"], reject["line"], reject["line_base64"])
    };
    rejects.lines().map(fact).collect()
}
