//! A job whose step fails: its exit code, the cluster that waits, and the commands that find the cause and end it.

use serde_json::json;

use crate::world::{document, error, text, world};

#[test]
fn a_step_that_fails_has_its_exit_code_and_the_job_continues_on_its_idle_cluster() {
    let Some(world) = world() else { return };
    world.emr.put("bad/reviews.json", "no JSON\n".repeat(2000).as_bytes());
    let changes = [("s3://bucket/in/", "s3://bucket/bad/"), ("keep = false", "keep = true")];
    let job = world.job("failing", &changes);
    let failed = world.emr("run", &job, &["--interval", "1"]).with_code(65);
    let [(cluster, state)] = &world.clusters("failing")[..] else { panic!("not one cluster") };
    assert_eq!(state, "WAITING");
    let said = error(&failed);
    let end = format!(" (a program exited with code 65); emr diagnose {} shows the cause", job.display());
    assert!(said.starts_with(&format!("emr: {cluster}: step s-")) && said.ends_with(&end), "{said}");
    // Three instances of 0.24 per hour.
    let idle = format!(
        "and costs 0.72 USD per hour; EMR terminates it after 15 min without work; emr terminate --cluster {cluster} ends it now"
    );
    assert!(failed.stderr.contains(&idle), "{}", failed.stderr);

    let found = world.emr("diagnose", &job, &[]).succeeded();
    assert!(found.said().contains("[bad-lines]"), "{}", found.said());
    let status = document(&world.emr("status", &job, &["--json"]).succeeded());
    assert_eq!(status["idle"]["timeout_s"], 900);
    assert_eq!((&status["steps"][0]["state"], &status["shards"]["committed"]), (&"FAILED".into(), &0.into()));
    let list = || {
        let mut command = world.command("list");
        command.args(["--idle", "--prices"]).arg(&job);
        tests::programs::run(&mut command, b"").succeeded().said()
    };
    assert!(list().contains(&idle), "{}", list());
    let watched = world.emr("watch", &job, &["--interval", "1", "--quiet"]).with_code(65);
    assert_eq!(error(&watched), said);

    // With a repaired input, the job continues on the same cluster. The first response is lost.
    world.emr.put("bad/reviews.json", &std::fs::read(world.path("reviews.json")).unwrap());
    world.emr.answer("AddJobFlowSteps", "lost", 1);
    // EMR calls the cluster running for a while after its last step.
    world.emr.order("POST", "faults", &json!({"waiting_after_s": 3600}));
    let made = world.emr("run", &job, &["--interval", "1", "--json"]).succeeded();
    assert!(made.stderr.contains("checking whether the steps were added"), "{}", made.stderr);
    assert_eq!(world.clusters("failing").len(), 1);
    let steps = world.emr.call("ListSteps", &json!({"ClusterId": cluster}));
    assert_eq!(steps["Steps"].as_array().unwrap().len(), 4);
    let made = document(&made);
    assert_eq!(made["result"]["ledger"]["mapper"]["lines"], 2000);
    assert_eq!((&made["cluster"]["state"], &made["idle"]["timeout_s"]), (&"RUNNING".into(), &900.into()));
    world.emr.order("DELETE", "faults", &json!({}));

    // The logs are those of the last submission, not those of the step that failed before.
    let found = world.emr("diagnose", &job, &[]).succeeded().said();
    assert!(!found.contains("[bad-lines]"), "{found}");
    let listed = world.emr("logs", &job, &["--max", "1000"]).succeeded().said();
    for step in steps["Steps"].as_array().unwrap() {
        let is_of_last = step["Status"]["State"] == "COMPLETED";
        assert_eq!(listed.contains(&format!("/steps/{}/", text(&step["Id"]))), is_of_last, "{listed}");
    }

    // A dataset that was deleted is made again, from the same shards.
    for name in ["h5", "manifest.json"] {
        world.emr.delete(&format!("datasets/failing.{name}"));
    }
    let again = document(&world.emr("run", &job, &["--interval", "1", "--json"]).succeeded());
    assert_eq!(again["result"], made["result"]);
    assert_eq!(world.clusters("failing").len(), 1);
    let ended = world.emr("terminate", &job, &[]).succeeded().said();
    assert!(ended.starts_with(&format!("{cluster}: is being terminated")), "{ended}");
    assert!(!list().contains(cluster.as_str()), "{}", list());
}
