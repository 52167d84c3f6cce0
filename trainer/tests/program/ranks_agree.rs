//! Trainings and evaluations of several ranks have the results of one.

use fixtures::{dataset_of, review, reviews};
use serde_json::Value;
use tests::ranks::Rank;

use super::{Job, spread, start};
use crate::command::trainer;

/// With a large vocabulary, a batch has few of the words; with a small one, it has all.
#[test]
fn loss_curves_of_kernels_agree_on_1_2_and_3_ranks() {
    let many = dataset_of(600, 2000, |at| spread(review(at)));
    for (words, job) in [("few", Job::new()), ("many", Job::of(many))] {
        for accumulate in ["1", "2"] {
            let name = |world_size: usize| format!("{accumulate} {world_size}");
            for world_size in 1..=3 {
                let sizes = ["--embedding", "24", "--hidden", "16", "--linear", "8", "--epochs", "3"];
                let rule = ["--optimizer", "sgd", "--rate", "0.3", "--accumulate", accumulate];
                // The dropped values of a row do not depend on the rank that processes the row.
                let dropout = ["--dropout-words", "0.2", "--dropout-layers", "0.2", "--dropout-head", "0.2"];
                job.train(&name(world_size), world_size, &[&sizes[..], &rule, &dropout].concat());
                let (found, expected) = (job.losses(&name(world_size)), job.losses(&name(1)));
                assert_eq!(found.len(), expected.len());
                assert!(found.len() > 20);
                for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let difference = (found - expected).abs();
                    assert!(
                        difference <= 1e-5 * expected,
                        "{words} words, {world_size} ranks, step {at}: {found}, of one {expected}"
                    );
                }
            }
        }
    }
}

/// Numbers of 16 bits change the losses a little, and numbers of fewer bits are refused outside of rounds.
#[test]
fn gradients_can_be_sent_in_16_bits() {
    let job = Job::new();
    let settings = ["--embedding", "24", "--hidden", "16", "--optimizer", "sgd", "--rate", "0.3"];
    job.train("full", 2, &settings);
    job.train("bf16", 2, &[&settings[..], &["--wire", "bf16"]].concat());
    let [full, bf16] = ["full", "bf16"].map(|name| job.losses(name));
    assert!(full != bf16 && full.len() == bf16.len());
    for (at, (found, expected)) in bf16.iter().zip(&full).enumerate() {
        assert!((found - expected).abs() <= 0.01 * expected, "step {at}: {found}, {expected}");
    }
    let sent = |name: &str| {
        let of_rank = &job.metrics(name, "epoch")[0]["ranks"][0]["profile"];
        of_rank["sent_bytes"].as_u64().unwrap()
    };
    // Which words a rank has is announced in bits.
    let difference = 2 * sent("bf16") - sent("full");
    assert!(difference > 0 && difference < sent("full") / 20, "{difference}");
    for (more, expected) in [
        (
            &["--wire", "int8"][..],
            "int8 or int4 for the gradients of each step, expected full or bf16, or rounds",
        ),
        (
            &["--wire", "bf16", "--compute", "pytorch"],
            "bf16 for the gradients of PyTorch, expected full, rounds",
        ),
    ] {
        for mut rank in start(2, || job.fit("refused", more)) {
            let (code, output) = rank.end();
            let told = output.join("\n");
            assert!(code == Some(78) && told.contains(expected), "{code:?} {told}");
        }
    }
}

#[test]
fn loss_curves_of_1_2_and_4_ranks_agree() {
    let job = Job::new();
    for (name, world_size) in [("one", 1), ("two", 2), ("four", 4)] {
        job.train(
            name,
            world_size,
            &["--precision", "f64", "--row-weight", "log", "--clip", "0.5", "--rate", "0.02"],
        );
    }
    let one = job.losses("one");
    assert!(one.len() > 50);
    // The loss must fall, so that the comparison is meaningful.
    let epochs: Vec<f64> =
        job.metrics("one", "epoch").iter().map(|line| line["loss"].as_f64().unwrap()).collect();
    assert!(epochs[3] < epochs[0], "{epochs:?}");
    for name in ["two", "four"] {
        let found = job.losses(name);
        assert_eq!(found.len(), one.len());
        for (at, (found, expected)) in found.iter().zip(&one).enumerate() {
            assert!(
                (found - expected).abs() <= 1e-9 * expected,
                "{name}, step {at}: {found}, of one {expected}"
            );
        }
        let [test, test_of_one] =
            [name, "one"].map(|name| job.metrics(name, "test")[0]["metrics"]["confusion"].clone());
        assert_eq!(test, test_of_one);
    }
}

/// An epoch is one step, so each round is one step of each rank: with plain gradient descent, the mean of the changes is the
/// change by the gradient of the whole batch.
#[test]
fn rounds_of_one_step_are_steps_of_the_whole_batch() {
    let job = Job::new();
    let settings = "--batch 1000 --optimizer sgd --momentum 0 --rate 0.5 --epochs 20";
    for (precision, within) in [("f64", 1e-9), ("f32", 1e-4)] {
        let name = |world_size: usize| format!("{precision} {world_size}");
        for world_size in 1..=3 {
            let asked =
                settings.split(' ').chain(["--precision", precision, "--sync-every", "8", "--wire", "full"]);
            job.train(&name(world_size), world_size, &asked.collect::<Vec<_>>());
            let [found, expected] = [world_size, 1]
                .map(|of| job.metrics(&name(of), "epoch"))
                .map(|epochs| epochs.iter().map(|line| line["loss"].as_f64().unwrap()).collect::<Vec<_>>());
            assert_eq!((found.len(), expected.len()), (20, 20));
            assert!(expected[19] < 0.99 * expected[0], "{expected:?}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() <= within * expected,
                    "{world_size} ranks: {found}, {expected}"
                );
            }
        }
    }
}

#[test]
fn an_evaluation_of_three_ranks_is_that_of_one() {
    let job = Job::new();
    job.train("model", 1, &[]);
    // Neither the number of rows nor the number of batches is divisible by three.
    let (_data, dataset) = reviews(601);
    let evaluation = || {
        let mut command = trainer();
        command.arg("evaluate").arg(job.out("model").join("model")).arg(&dataset);
        command.args(["--batch", "32", "--device", "cpu"]);
        command
    };
    let json = |world_size: usize| {
        let mut ranks = start(world_size, evaluation);
        let outputs: Vec<_> = ranks.iter_mut().map(Rank::end).collect();
        assert!(outputs.iter().all(|(code, _)| *code == Some(0)), "{outputs:?}");
        let lines: Vec<String> = outputs.into_iter().flat_map(|(_, output)| output).collect();
        // Most of its rows are training rows, so a warning is printed, too.
        let (warnings, lines): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| line.starts_with("trainer: warning: "));
        assert_eq!((warnings.len(), lines.len()), (1, 1), "only rank 0 prints: {lines:?}");
        lines.concat()
    };

    let one = json(1);

    let metrics: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(metrics["rows"], 601);
    assert_eq!(json(3), one);
}
