//! Launched ranks that are killed or stopped, and those that go on without them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use batches::random::Purpose;
use fixtures::{dataset_of, review};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tch::Tensor;
use tests::ranks::Rank;
use tests::say;

use super::{Job, ranks_of_job};
use crate::command::trainer;

const N_RANKS: u64 = 3;
const BATCH_ROWS: u64 = 32;
/// Maximum time until rows are trained again, after a silence of 5 s at most.
const LIMIT: Duration = Duration::from_secs(15);

/// Number of trainings with a death: with PROVE=1, they sum to 50.
fn trainings(of_50: usize, small: usize) -> usize {
    if tests::prove() { of_50 } else { small }
}

/// A step is that of the whole batch, whatever the number of ranks.
#[test]
fn steps_after_a_death_are_those_of_a_training_without_it() {
    let job = Job::new();
    let settings =
        "--precision f64 --clip 0.5 --rate 0.02 --validation-fraction 0.1 --epochs 4 --checkpoint-steps 7";
    let settings: Vec<&str> = settings.split(' ').collect();
    job.train("whole", N_RANKS as usize, &settings);
    let whole = weights(&job, "whole");
    each_training(&job, &settings, 40, trainings(25, 2), 1, |name| {
        let found = weights(&job, name);
        assert_eq!(found.len(), whole.len());
        for (parameter, expected) in &whole {
            let found = &found[parameter];
            let difference = (found - expected).abs().max().double_value(&[]);
            assert!(difference <= 1e-9, "{name}: {parameter} differs by {difference:e}");
        }
    });
}

#[test]
fn rounds_after_a_death_train_the_same_rows() {
    // The words say what the label is, so the loss falls soon.
    let told = |at| {
        let mut row = review(at);
        row.tokens.iter_mut().for_each(|token| *token = 2 + 10 * u32::from(row.label) + *token % 10);
        row
    };
    let job = Job::of(dataset_of(600, 50, told));
    // The kernels need a multiple of 16.
    let settings =
        "--sync-every 8 --hidden 16 --rate 0.005 --validation-fraction 0.1 --epochs 8 --checkpoint-steps 30";
    let settings: Vec<&str> = settings.split(' ').collect();
    // Its number of rows is that of each training with deaths.
    job.train("whole", N_RANKS as usize, &settings);
    each_training(&job, &settings, 10, trainings(25, 2), 2, |name| {
        let losses: Vec<f64> =
            job.metrics(name, "epoch").iter().map(|line| line["loss"].as_f64().unwrap()).collect();
        // The losses of trainings by 2 and 3 ranks without a death differ by more than these.
        assert!(losses[losses.len() - 1] < 0.7 * losses[0], "{name}: {losses:.3?}");
    });
}

/// Trains `n` times. In each training a drawn rank is killed or stopped at one of the first `n_lines` lines of progress, in every
/// second one also another rank.
fn each_training(job: &Job, settings: &[&str], n_lines: u64, n: usize, seed: u64, check: impl Fn(&str)) {
    let mut random = Purpose::Order.stream(&[seed]);
    let mut seconds = Vec::new();
    for number in 0..n {
        let name = format!("deaths-{number}");
        let mut victims: Vec<u64> = (0..N_RANKS).collect();
        // In the first training, rank 0 is lost.
        let first = if number == 0 { 0 } else { random.below(N_RANKS) };
        victims.swap(0, first as usize);
        victims.truncate(1 + number % 2);
        let signals = [Signal::KILL, Signal::STOP];
        let signal = signals[(number / 2 + seed as usize + 1) % 2];
        let lines = (0..victims.len()).map(|_| 1 + random.below(n_lines / victims.len() as u64));
        let deaths: Vec<(u64, u64)> = victims.iter().copied().zip(lines).collect();
        seconds.extend(train_and_lose(job, &name, settings, &deaths, signal));
        check(&name);
        fs::remove_dir_all(job.out(&name)).unwrap();
    }
    seconds.sort_by(f64::total_cmp);
    let (median, most) = (seconds[seconds.len() / 2], seconds[seconds.len() - 1]);
    say(&format!(
        "{} deaths: rows were trained again after {median:.2} s (median), {most:.2} s (most); all: {seconds:.2?}",
        seconds.len()
    ));
    assert!(!tests::prove() || most <= LIMIT.as_secs_f64(), "{seconds:?}");
}

/// Trains while ranks are lost, each after this many lines since the last loss. Returns the seconds from each loss to the next
/// step or round.
fn train_and_lose(
    job: &Job,
    name: &str,
    settings: &[&str],
    losses: &[(u64, u64)],
    signal: Signal,
) -> Vec<f64> {
    let fit = job.fit(name, settings);
    let mut launch = trainer();
    launch.args(["launch", "--nproc", "3", "--"]).args(fit.get_args());
    let mut launched = Rank::start(0, launch);
    let mut n_lines = 0;
    let mut begins = Vec::new();
    for &(victim, after) in losses {
        assert!(launched.wait_for_lines(" step ", n_lines + after as usize));
        // Some steps are between this and the line, or a round.
        let begin = unix_s();
        kill_process(rank_of(&job.out(name), victim), signal).unwrap();
        let line = launched.wait_for(&format!("rank {victim} ("));
        assert!(line.contains(" after step "), "{line}");
        begins.push(begin);
        // Lines of the loss have the word, too.
        n_lines = launched.n_lines(" step ");
    }
    let (code, output) = launched.end();
    let output = output.join("\n");
    assert_eq!(code, Some(0), "{output}");
    for (victim, _) in losses {
        let warning = format!("trainer: warning: the others went on without rank {victim}, which was killed");
        assert!(output.contains(&warning), "{output}");
    }
    assert!(ranks_of_job(&job.out(name)).is_empty());
    assert!(job.out(name).join("model").is_dir(), "{output}");

    let lost = job.metrics(name, "lost");
    let of_lines: Vec<u64> = lost.iter().map(|line| line["ranks"][0].as_u64().unwrap()).collect();
    assert_eq!(of_lines, losses.iter().map(|(victim, _)| *victim).collect::<Vec<_>>(), "{output}");
    each_row_is_trained_once_an_epoch(job, name);
    begins.iter().zip(1..).map(|(begin, generation)| trained_again(job, name, generation) - begin).collect()
}

/// The time of the first step or round of a generation, in seconds since 1970.
fn trained_again(job: &Job, name: &str, generation: u64) -> f64 {
    let lines = fs::read_to_string(job.out(name).join("metrics.jsonl")).unwrap();
    let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut start = 0.0;
    for line in lines.by_ref() {
        if line["event"] == "start" {
            start = line["unix_s"].as_f64().unwrap();
        }
        if line["event"] == "lost" && line["generation"] == generation {
            break;
        }
    }
    start + lines.find(|line| line["event"] == "steps").unwrap()["elapsed_s"].as_f64().unwrap()
}

/// The rows that the last group of an epoch trained in it, and those of the steps before.
pub(super) fn each_row_is_trained_once_an_epoch(job: &Job, name: &str) {
    let epochs = job.metrics("whole", "epoch");
    let rows_of = |line: &Value| -> u64 {
        line["ranks"].as_array().unwrap().iter().map(|rank| rank["rows"].as_u64().unwrap()).sum()
    };
    let (n_rows, n_steps) = (rows_of(&epochs[0]), epochs[0]["step"].as_u64().unwrap());
    let found = job.metrics(name, "epoch");
    assert_eq!(found.last().unwrap()["epoch"], epochs.len());
    for line in found {
        let [epoch, from_step] = ["epoch", "from_step"].map(|field| line[field].as_u64().unwrap());
        let before = ((from_step - (epoch - 1) * n_steps) * BATCH_ROWS).min(n_rows);
        assert_eq!(before + rows_of(&line), n_rows, "{name}: {line}");
    }
}

/// The process of a rank.
pub(super) fn rank_of(out: &Path, rank: u64) -> Pid {
    let place = format!("RANK={rank}");
    let is_rank = |process: &Pid| {
        let environment = fs::read(format!("/proc/{}/environ", process.as_raw_nonzero())).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == place.as_bytes())
    };
    ranks_of_job(out).into_iter().find(is_rank).unwrap()
}

pub(super) fn weights(job: &Job, name: &str) -> BTreeMap<String, Tensor> {
    let tensors = Tensor::read_safetensors(job.out(name).join("model/model.safetensors")).unwrap();
    tensors.into_iter().collect()
}

pub(super) fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}
