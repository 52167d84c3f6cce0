//! Trainings that are killed, terminated or cut off, and what they leave.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use batches::random::Purpose;
use rustix::process::Signal;
use tests::ranks::Rank;

use super::{Job, LIMIT, ranks_of_job, start};
use crate::command::{ended, trainer};

/// Repeatedly kills all ranks at a random step and resumes from the last checkpoint.
fn interrupted_at_random(world_size: usize, more: &[&str], n_kills: usize, seed: u64) {
    let job = Job::new();
    let settings =
        "--checkpoint-steps 3 --dropout-embedding 0.2 --dropout-words 0.1 --validation-fraction 0.1";
    let settings: Vec<&str> = settings.split(' ').chain(more.iter().copied()).collect();
    job.train("whole", world_size, &settings);

    let steps: u64 = job.metrics("whole", "steps").len() as u64;
    let mut random = Purpose::Order.stream(&[seed, world_size as u64]);
    let mut with_resume = settings.to_vec();
    with_resume.push("--resume");
    for kill in 0..n_kills {
        let name = format!("killed-{kill}");
        // Killed twice in succession, mostly within one epoch. On a busy machine, the ranks make more steps before
        // they are killed, or even finish.
        let first = 1 + random.below(steps - 4) as usize;
        let second = 1 + random.below(3) as usize;
        for n_steps in [first, second] {
            let mut ranks = start(world_size, || job.fit(&name, &with_resume));
            ranks[0].wait_for_lines(" step ", n_steps);
            ranks.iter().for_each(|rank| rank.signal(Signal::KILL));
            ranks.iter_mut().for_each(|rank| drop(rank.end()));
        }
        job.train(&name, world_size, &with_resume);
        assert!(
            job.weights(&name) == job.weights("whole"),
            "{world_size} ranks, seed {seed}: killed after {first} steps, and {second} more"
        );
        fs::remove_dir_all(job.out(&name)).unwrap();
    }
}

/// Number of kills: with PROVE=1, they sum to 50 over the tests of every step, and are 10 in rounds.
fn kills(of_50: usize, small: usize) -> usize {
    if tests::prove() { of_50 } else { small }
}

#[test]
fn one_rank_killed_and_resumed_ends_with_the_same_bits() {
    interrupted_at_random(1, &[], kills(18, 2), 1);
}

#[test]
fn two_ranks_killed_and_resumed_end_with_the_same_bits() {
    interrupted_at_random(2, &[], kills(16, 2), 2);
}

#[test]
fn four_ranks_killed_and_resumed_end_with_the_same_bits() {
    interrupted_at_random(4, &[], kills(16, 1), 3);
}

/// Each rank has its own optimizer.
#[test]
fn ranks_in_rounds_killed_and_resumed_end_with_the_same_bits() {
    interrupted_at_random(3, &["--sync-every", "4"], kills(10, 2), 4);
}

#[test]
fn a_lost_rank_ends_the_others_with_its_name() {
    for (signal, how) in [(Signal::KILL, "has died"), (Signal::STOP, "has been silent for 5 s")] {
        let job = Job::new();
        let mut ranks = start(3, || job.fit("out", &["--epochs", "100000"]));
        ranks[0].wait_for(" step 20: ");

        let begin = Instant::now();
        ranks[1].signal(signal);

        for at in [0, 2] {
            let (code, output) = ranks[at].end();
            let took = begin.elapsed();
            let last = output.last().unwrap();
            assert_eq!(code, Some(75), "{output:?}");
            assert!(
                last.starts_with("trainer: ") && last.contains("rank 1 (") && last.contains(how),
                "{last}"
            );
            // Beside other tests, a rank may have to wait for a core.
            assert!(!tests::prove() || took < LIMIT, "rank {at} took {took:?}");
        }
    }
}

#[test]
fn a_full_disk_at_a_checkpoint_ends_the_training_and_leaves_the_last_one_whole() {
    let job = Job::new();
    job.train("out", 1, &["--checkpoint-steps", "10", "--epochs", "2"]);
    let newest = |job: &Job| fs::read_to_string(job.out("out").join("checkpoints/latest")).unwrap();
    let before = newest(&job);

    // The shell's limit of file sizes simulates a full disk: the weights of the next checkpoint do not fit.
    let fit = job.fit("out", &["--checkpoint-steps", "10", "--epochs", "2", "--resume"]);
    fs::remove_dir_all(job.out("out").join("model")).unwrap();
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""])
        .arg(fit.get_program())
        .args(fit.get_args());
    limited.env("OMP_NUM_THREADS", "1");
    let (code, told) = ended(limited);

    assert_eq!(code, Some(74), "{told}");
    assert_eq!(newest(&job), before);
    assert!(!job.out("out").join("model").exists());
    let unfinished = |folder: &Path| {
        fs::read_dir(folder)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'))
            .count()
    };
    assert_eq!(unfinished(&job.out("out")) + unfinished(&job.out("out").join("checkpoints")), 0);
    job.train("out", 1, &["--checkpoint-steps", "10", "--epochs", "2", "--resume"]);
}

#[test]
fn a_damaged_newest_checkpoint_is_passed_over_with_a_message() {
    let job = Job::new();
    job.train("whole", 1, &["--checkpoint-steps", "10"]);
    job.train("out", 1, &["--checkpoint-steps", "10"]);
    fs::remove_dir_all(job.out("out").join("model")).unwrap();
    let checkpoints = job.out("out").join("checkpoints");
    let newest = checkpoints.join(fs::read_to_string(checkpoints.join("latest")).unwrap());
    let weights = newest.join("model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&weights, bytes).unwrap();

    let (code, told) = ended(job.fit("out", &["--checkpoint-steps", "10", "--resume"]));

    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("skipped a damaged checkpoint: ") && told.contains("model.safetensors"), "{told}");
    assert!(job.weights("out") == job.weights("whole"));
}

/// torchrun restarts the ranks automatically, and they resume from the last checkpoint.
#[test]
fn torchrun_restarts_a_job_that_lost_a_rank_and_it_ends_with_the_same_weights() {
    let Some(python) = ranks::python("torchrun") else { return };
    let job = Job::new();
    let settings = ["--checkpoint-steps", "5", "--epochs", "40"];
    job.train("whole", 2, &settings);

    let mut with_resume = settings.to_vec();
    with_resume.push("--resume");
    let fit = job.fit("out", &with_resume);
    let mut torchrun = Command::new(python);
    torchrun.args(["-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc-per-node", "2"]);
    torchrun.args(["--max-restarts", "1"]).arg(fit.get_program()).args(fit.get_args());
    let mut torchrun = Rank::start(0, torchrun);
    torchrun.wait_for(" step 12: ");
    let ranks = ranks_of_job(&job.out("out"));
    assert_eq!(ranks.len(), 2);
    rustix::process::kill_process(ranks[1], Signal::KILL).unwrap();

    let (code, output) = torchrun.end();
    let output = output.join("\n");
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("resuming after step "), "{output}");
    assert!(job.weights("out") == job.weights("whole"));
}

#[test]
fn a_terminated_training_saves_a_checkpoint_and_goes_on_from_it() {
    let job = Job::new();
    job.train("whole", 2, &["--epochs", "40"]);

    let mut ranks = start(2, || job.fit("out", &["--epochs", "40"]));
    ranks[0].wait_for(" step 30: ");
    // One rank gets the signal; both stop, after the same step.
    ranks[1].signal(Signal::TERM);
    for rank in &mut ranks {
        let (code, output) = rank.end();
        assert_eq!(code, Some(75), "{output:?}");
        assert!(output.last().unwrap().contains("interrupted; a checkpoint is in "), "{output:?}");
    }
    let checkpoints = job.out("out").join("checkpoints");
    assert!(checkpoints.join("latest").exists());
    assert!(!job.out("out").join("model").exists());

    job.train("out", 2, &["--epochs", "40", "--resume"]);
    assert!(job.weights("out") == job.weights("whole"));
}

#[test]
fn launched_ranks_train_together() {
    let job = Job::new();
    job.train("two", 2, &[]);
    let fit = job.fit("launched", &[]);
    let mut launch = trainer();
    launch.args(["launch", "--nproc", "2", "--"]).args(fit.get_args());
    let (code, output) = Rank::start(0, launch).end();
    assert_eq!(code, Some(0), "{output:?}");
    assert!(job.weights("launched") == job.weights("two"));
}
