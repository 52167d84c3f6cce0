//! Ranks that join a training: in place of a killed one, and from another launch.

use std::process::Command;

use fixtures::free_port;
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use tests::ranks::Rank;
use tests::say;

use super::deaths::{each_row_is_trained_once_an_epoch, rank_of, unix_s, weights};
use super::{Job, key_file, ranks_of_job};
use crate::command::trainer;

/// Steps, and epochs that last until a further process has read the dataset.
const STEPS: &str =
    "--precision f64 --rate 0.005 --validation-fraction 0.1 --epochs 60 --checkpoint-steps 50";
const ROUNDS: &str = "--sync-every 4 --hidden 16 --rate 0.005 --validation-fraction 0.1 --epochs 100";
/// Maximum time without a step while ranks join.
const LIMIT_S: f64 = 15.0;

/// Number of trainings with arrivals: with PROVE=1, they sum to 10.
fn trainings() -> usize {
    if tests::prove() { 5 } else { 1 }
}

fn launch(job: &Job, name: &str, flags: &[&str], settings: &str) -> Command {
    let fit = job.fit(name, &settings.split(' ').collect::<Vec<_>>());
    let mut launch = trainer();
    launch.args(["launch", "--oversubscribe"]).args(flags).arg("--").args(fit.get_args());
    launch.env("SENTIMILL_KEY_FILE", key_file());
    launch
}

/// A step is that of the whole batch, whatever the number of ranks.
#[test]
fn a_killed_rank_is_replaced() {
    let job = Job::new();
    job.train("whole", 2, &STEPS.split(' ').collect::<Vec<_>>());
    let whole = weights(&job, "whole");
    for number in 0..trainings() {
        let name = format!("replaced-{number}");
        let flags = ["--nproc", "2", "--restarts", "1"];
        let mut launched = Rank::start(0, launch(&job, &name, &flags, STEPS));
        assert!(launched.wait_for_lines(" step ", 5 + 7 * number));
        let victim = number as u64 % 2;
        kill_process(rank_of(&job.out(&name), victim), Signal::KILL).unwrap();
        let killed = unix_s();
        let line = launched.wait_for("rank 2 joins after step ");
        assert!(line.ends_with("number of ranks: 2"), "{line}");
        let replaced_s = unix_s() - killed;

        let (code, output) = launched.end();
        let output = output.join("\n");
        assert_eq!(code, Some(0), "{output}");
        let joined = job.metrics(&name, "joined");
        assert_eq!(
            (joined.len(), &joined[0]["ranks"][0], &joined[0]["world_size"]),
            (1, &2.into(), &2.into())
        );
        each_row_is_trained_once_an_epoch(&job, &name);
        for (parameter, expected) in &whole {
            let difference = (&weights(&job, &name)[parameter] - expected).abs().max().double_value(&[]);
            assert!(difference <= 1e-7, "{name}: {parameter} differs by {difference:e}");
        }
        say(&format!(
            "rank {victim} was killed: another one has trained in its place after {replaced_s:.2} s"
        ));
    }
}

#[test]
fn another_launch_joins_by_the_same_command() {
    let job = Job::new();
    job.train("whole", 2, &ROUNDS.split(' ').collect::<Vec<_>>());
    for number in 0..trainings() {
        let name = format!("joined-{number}");
        let port = free_port().to_string();
        let flags = ["--nproc", "2", "--master-addr", "127.0.0.1", "--master-port", &port];
        let mut first = Rank::start(0, launch(&job, &name, &flags, ROUNDS));
        assert!(first.wait_for_lines(" step ", 1 + 3 * number));
        let mut second = Rank::start(1, launch(&job, &name, &flags, ROUNDS));
        // They arrive together, or one after the other.
        first.wait_for("number of ranks: 4");

        for launched in [&mut first, &mut second] {
            let (code, output) = launched.end();
            assert_eq!(code, Some(0), "{}", output.join("\n"));
        }
        let joined = job.metrics(&name, "joined");
        let joined: Vec<u64> = joined.iter().flat_map(|line| numbers(&line["ranks"])).collect();
        assert!(joined == [2, 3] || joined == [3, 2], "{joined:?}");
        each_row_is_trained_once_an_epoch(&job, &name);
        let pause_s = pause_s(&job, &name);
        say(&format!("two ranks joined: {pause_s:.2} s between two rounds"));
        assert!(!tests::prove() || pause_s < LIMIT_S);
        assert!(ranks_of_job(&job.out(&name)).is_empty());
    }
}

/// The group waits for those who are in it only.
#[test]
fn a_rank_with_other_settings_does_not_join() {
    let job = Job::new();
    let port = free_port().to_string();
    let flags = ["--nproc", "1", "--master-addr", "127.0.0.1", "--master-port", &port];
    let mut first = Rank::start(0, launch(&job, "others", &flags, STEPS));
    assert!(first.wait_for_lines(" step ", 1));
    let others = STEPS.replace("--rate 0.005", "--rate 0.01");
    let (code, output) = Rank::start(1, launch(&job, "others", &flags, &others)).end();
    let output = output.join("\n");
    let told =
        "--rate is 0.01, expected 0.005 as in the training to join; start all ranks by the same command";
    assert!(code == Some(78) && output.contains(told), "{code:?} {output}");
    let (code, output) = first.end();
    assert_eq!(code, Some(0), "{}", output.join("\n"));
    assert!(job.metrics("others", "joined").is_empty());
}

fn numbers(array: &Value) -> Vec<u64> {
    array.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// The time between two lines of steps around the last arrival, in seconds.
fn pause_s(job: &Job, name: &str) -> f64 {
    let joined = job.metrics(name, "joined").last().unwrap()["step"].as_u64().unwrap();
    let starts = job.metrics(name, "start");
    let begin = starts.last().unwrap()["unix_s"].as_f64().unwrap() - starts[0]["unix_s"].as_f64().unwrap();
    let steps = job.metrics(name, "steps");
    let at = |line: &Value| line["elapsed_s"].as_f64().unwrap();
    let before = steps.iter().rfind(|line| line["step"].as_u64().unwrap() <= joined).unwrap();
    let after = steps.iter().find(|line| line["step"].as_u64().unwrap() > joined).unwrap();
    begin + at(after) - at(before)
}
