//! `ngrams predict` as the mapper of a job.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use tests::pipe::text_of;
use tests::programs::{program, run};

use crate::cluster::cluster;
use crate::given::WHOLE;
use crate::job::Job;

#[test]
fn a_job_of_predictions_has_the_answers_of_one_process() {
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();
    let job = Job::of_maps(cluster, "predictions", "whole", "ngrams predict reviews.ngrams --top 2");
    let folder = job.folder();
    let model = folder.join("reviews.ngrams");
    let files: Vec<_> = WHOLE.files.iter().map(|(name, bytes)| (folder.join(name), bytes)).collect();
    for (path, bytes) in &files {
        fs::write(path, bytes).unwrap();
    }
    let mut train = program("ngrams");
    train.args(["train", "--threads", "1", "--bad-lines-max", "1", "--input"]).arg(&files[1].0);
    run(train.arg("--out").arg(&model), b"").succeeded();
    cluster.fs(&["-put", text_of(&model.join("model")), "/programs/reviews.ngrams"]);

    let with = ["hdfs:///programs/ngrams", "hdfs:///programs/reviews.ngrams"];
    let ran = with.into_iter().fold(job, Job::with_file).run().succeeded();

    let mut expected = Vec::new();
    let mut predict = program("ngrams");
    predict.arg("predict").arg(&model).args(["--top", "2"]).args(files.iter().map(|(path, _)| path));
    expected.extend(answers(&run(&mut predict, b"").succeeded().said()));
    let mut found = answers(&ran.output());
    expected.sort();
    found.sort();
    assert!(found == expected, "{} answers, expected {}", found.len(), expected.len());
    let counters = ran.counters("ngrams");
    assert_eq!(counters["lines"], found.len() as u64);
    assert_eq!(
        counters.iter().map(|(name, n)| n * u64::from(name != "lines")).sum::<u64>(),
        counters["lines"]
    );
}

/// What does not depend on the task: the name of the file, and the answer.
fn answers(lines: &str) -> Vec<String> {
    let answer = |line: &str| {
        let mut answer: BTreeMap<String, Value> = serde_json::from_str(line).unwrap();
        let file = answer.remove("file").unwrap().as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        let _ = (answer.remove("line"), answer.remove("split_start"));
        format!("{file} {}", serde_json::to_string(&answer).unwrap())
    };
    lines.lines().map(answer).collect()
}
