//! Logs that are late; and the tests of the server, which show that it behaves as EMR. emr/tests/jobs has requests that
//! fail and clusters that die.

use serde_json::json;
use tests::programs::{folder_of_programs, run};

use crate::job_file::JobFile;
use crate::served::emr;

#[test]
fn the_server_has_the_states_and_answers_of_emr() {
    let Some(turn) = emr() else { return };
    let programs = folder_of_programs().to_str().unwrap();
    turn.python("selftest.py", &[programs, "States"], b"").succeeded();
}

#[test]
fn a_log_that_is_late_is_no_log_yet() {
    let Some(turn) = emr() else { return };
    turn.order("POST", "logs", &json!({"held": true}));
    let job = JobFile::with(
        &turn,
        "late",
        "s3://bucket/in/none/",
        "",
        "[[cluster.bootstrap]]\nname = \"none\"\nscript = \"s3://bucket/none.sh\"",
    );
    turn.run("run", &job, &[]).with_code(70);
    let cluster = turn.clusters_of(&job).remove(0);
    let diagnose = || {
        let mut command = turn.command("diagnose");
        run(command.args(["--cluster", cluster["Id"].as_str().unwrap(), "--log", "s3://bucket/logs/"]), b"")
    };
    let none = diagnose().with_code(75);
    assert!(none.stderr.contains("no log yet") || none.stderr.contains("five minutes"), "{}", none.stderr);
    turn.order("POST", "logs", &json!({"held": false}));
    turn.until("the logs", || (diagnose().code == 0).then_some(()));
}
