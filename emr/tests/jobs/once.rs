//! A job runs once, whatever happens to its starters and its clusters, and its dataset is that of all runners.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};
use tests::programs::{finish, run, start};

use crate::world::{PRICE, World, document, error, text, world};

const INTERVAL: [&str; 2] = ["--interval", "1"];

#[test]
fn a_job_that_is_started_twice_after_its_cluster_died_is_one_cluster_and_one_dataset() {
    let Some(world) = world() else { return };
    // The other runners merge by one program.
    let job = world.job("once", &[("reducers = 2", "reducers = 2\nmerge-tasks = 2")]);
    let death = json!({"dies": "INSTANCE_FAILURE", "message": "The master failed: Instance was lost", "step": 1, "after_s": 1});
    world.emr.order("POST", "faults", &death);
    let died = world.emr("run", &job, &INTERVAL).with_code(69);
    let [(dead, _)] = &world.clusters("once")[..] else { panic!("not one cluster") };
    let expected = format!("emr: {dead}: ");
    let said = error(&died);
    assert!(said.starts_with(&expected) && said.contains("The master failed: Instance was lost"), "{said}");
    assert!(said.ends_with(&format!("; emr diagnose {} shows the cause", job.display())), "{said}");

    // The first request of the two starters is executed, and its response is lost.
    world.emr.answer("RunJobFlow", "lost", 1);
    let first = start(world.command("run").arg(&job).args(INTERVAL));
    let mut second = world.command("run");
    let mut second =
        second.arg(&job).args(INTERVAL).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let interrupted = thread::spawn(move || {
        let mut lines = BufReader::new(second.stderr.take().unwrap()).lines();
        let has_begun = |line: &String| line.contains("created cluster") || line.contains("found cluster");
        assert!(lines.any(|line| has_begun(&line.unwrap())), "the second command submits nothing");
        Command::new("kill").args(["-INT", &second.id().to_string()]).status().unwrap();
        let last = lines.map_while(Result::ok).last().unwrap_or_default();
        (second.wait().unwrap().code(), last)
    });
    let finished = finish(first, "the first command").succeeded();
    assert!(finished.said().starts_with("ledger            2000 lines = "), "{}", finished.said());
    let (code, last) = interrupted.join().unwrap();
    let clusters = world.clusters("once");
    let [(cluster, state), (other, _)] = &clusters[..] else { panic!("not two clusters: {clusters:?}") };
    assert_eq!((state.as_str(), other), ("TERMINATED", dead));
    assert_eq!(code, Some(75));
    let job_file = job.display();
    assert_eq!(
        last,
        format!(
            "emr: interrupted; the job continues on {cluster}; emr watch {job_file} follows it, emr cancel {job_file} stops it"
        )
    );

    // The client gives up after seven tries, and the command asks again at the next interval.
    world.emr.answer("DescribeCluster", "internal", 8);
    let watched = world.emr("watch", &job, &["--json", "--interval", "1"]).succeeded();
    assert!(watched.stderr.contains("or try again later (the job continues)\n"), "{}", watched.stderr);
    let watched = document(&watched);
    cost_is_a_sum_by_hand(&world, cluster, &watched);
    assert_eq!(watched["result"]["ledger"]["mapper"]["lines"], 2000);
    let again = world.emr("run", &job, &["--json"]).succeeded();
    assert!(again.stderr.contains("already exists, made from this run; nothing to do"), "{}", again.stderr);
    assert_eq!(document(&again), watched);
    assert_eq!(world.clusters("once"), clusters);
    // EMR forgets clusters after two months; the dataset is the result.
    for (record, content) in [
        ("attempt-3", json!({"attempt": 3, "holder": "later-host.7.x", "takeover_s": 2.0})),
        ("cluster-3", json!({"cluster": "j-0123456789ABC"})),
    ] {
        world.emr.put(&format!("runs/once/job/{record}.json"), content.to_string().as_bytes());
    }
    let later = document(&world.emr("run", &job, &["--json"]).succeeded());
    assert_eq!((&later["result"], &later["cluster"]), (&watched["result"], &Value::Null));

    let results = ["shards-00000", "shards-00001", "words-00000", "words-00001", "rows-00000", "rows-00001"];
    let expected = results.map(|result| format!("runs/once/merge/tasks-2/{result}"));
    let stored = world.emr.keys("runs/once/merge/");
    assert!(expected.iter().all(|result| stored.contains(result)), "{stored:?}");
    let dataset = world.emr.get("datasets/once.h5").unwrap();
    the_other_runners_write(&world, &dataset, &watched["result"]["sha256"]);
}

/// Adds up the instances of a cluster without the program's code.
fn cost_is_a_sum_by_hand(world: &World, cluster: &str, document: &Value) {
    let listed = world.emr.call("ListInstances", &json!({"ClusterId": cluster}));
    let instances = listed["Instances"].as_array().unwrap();
    assert_eq!(instances.len(), 3);
    let seconds = |instance: &Value| {
        let times = &instance["Status"]["Timeline"];
        (times["EndDateTime"].as_f64().unwrap().floor() - times["CreationDateTime"].as_f64().unwrap().floor())
            .max(60.0)
    };
    let expected: f64 = instances.iter().map(|instance| seconds(instance) / 3600.0 * PRICE).sum();
    let found = document["cost"]["amount"].as_f64().unwrap();
    assert!((found - expected).abs() < 1e-9, "{found}, by hand {expected}");
}

/// Makes the dataset on this machine, and on the Hadoop of the EMR without EMR.
fn the_other_runners_write(world: &World, dataset: &[u8], sha256: &Value) {
    let local = world.path("local.h5");
    let reviews = world.path("reviews.json");
    let job = world.job(
        "local",
        &[("s3://bucket/datasets/local.h5", "local.h5"), ("s3://bucket/in/", &text(&json!(reviews)))],
    );
    let made = world.emr("run", &job, &["--runner", "local", "--json"]).succeeded();
    assert_eq!(&document(&made)["result"]["sha256"], sha256);
    assert_eq!(document(&made)["result"]["run"], Value::Null);
    assert!(fs::read(&local).unwrap() == dataset, "local differs from emr");

    let job = world.job(
        "hadoop",
        &[
            ("s3://bucket/datasets/hadoop.h5", "hadoop.h5"),
            // The user has keys, and the nodes have a role.
            ("reducers = 2", "reducers = 2\ncredentials = \"role\""),
        ],
    );
    let on_hadoop = || {
        let mut command = world.command("run");
        command.arg(&job).args(["--runner", "hadoop", "--json"]);
        let hadoop = world.emr.folder().join("hadoop");
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", world.emr.folder().join("bin").display()));
        command.env("SENTIMILL_HADOOP", &hadoop).env("HADOOP_STREAMING_JAR", "hadoop-streaming.jar");
        command.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", world.emr.url());
        run(&mut command, b"").succeeded()
    };
    let made = on_hadoop();
    assert!(made.stderr.contains("Running job: job_"), "{}", made.stderr);
    assert_eq!(&document(&made)["result"]["sha256"], sha256);
    assert!(fs::read(world.path("hadoop.h5")).unwrap() == dataset, "hadoop differs from emr");
    // A repeated command merges the run that exists.
    fs::remove_file(world.path("hadoop.h5")).unwrap();
    fs::remove_file(world.path("hadoop.manifest.json")).unwrap();
    let made = on_hadoop();
    assert!(!made.stderr.contains("Running job"), "{}", made.stderr);
    assert!(fs::read(world.path("hadoop.h5")).unwrap() == dataset, "the second dataset differs");
}

#[test]
fn an_attempt_that_led_to_nothing_is_taken_over_and_a_failed_request_is_repeated_once() {
    let Some(world) = world() else { return };
    let job = world.job("taken", &[("keep = false", "keep = true")]);
    let attempt = json!({"attempt": 1, "holder": "lost-host.7.x", "takeover_s": 2.0});
    world.emr.put("runs/taken/job/attempt-1.json", attempt.to_string().as_bytes());
    // EMR creates nothing, and the client cannot know that.
    world.emr.answer("RunJobFlow", "internal", 1);
    let submitted = world.emr("run", &job, &["--interval", "1", "--detach"]).succeeded();
    let waits = "emr: lost-host.7.x is starting a cluster for this job; waiting for it for at most 2 s";
    assert!(submitted.stderr.contains(waits), "{}", submitted.stderr);
    assert!(submitted.stderr.contains("checking whether the cluster was created"), "{}", submitted.stderr);
    let [(cluster, _)] = &world.clusters("taken")[..] else { panic!("not one cluster") };
    let expected = format!("{cluster}: submitted; follow it with emr watch {}\n", job.display());
    assert_eq!(submitted.said(), expected);
    let record = world.emr.get("runs/taken/job/cluster-2.json").unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&record).unwrap(), json!({"cluster": cluster}));

    let other = world.job("taken", &[("reducers = 2", "reducers = 3"), ("keep = false", "keep = true")]);
    let refused = world.emr("run", &other, &[]).with_code(78);
    let expected = "emr: s3://bucket/runs/taken/job.json: the run belongs to another job, whose reducers is 2, expected 3; \
                    choose another run in the job file";
    assert_eq!(error(&refused), expected);

    let cancelled = document(&world.emr("cancel", &job, &["--json"]).succeeded());
    assert_eq!(cancelled["cancelled"].as_array().unwrap().len(), 2, "{cancelled}");
    assert_eq!(cancelled["stays"], true);
    let followed = world.emr("watch", &job, &INTERVAL).with_code(75);
    assert!(
        error(&followed).contains(&format!("{cluster}: the steps were cancelled")),
        "{}",
        followed.stderr
    );
    world.emr("terminate", &job, &[]).succeeded();
}
