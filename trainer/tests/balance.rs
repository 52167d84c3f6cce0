//! Shares of ranks of unequal speed. `--throttle` makes a rank slower.
#![allow(clippy::unwrap_used)]

mod command;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use batches::balance::Reason;
use command::{decide, ended, events, losses, plain, trainer};
use fixtures::free_port;
use fixtures::reviews;
use runs::training::decisions;
use serde_json::Value;
use tch::Tensor;
use tempfile::TempDir;
use tests::ranks::{Rank, placed};

const BATCH: usize = 64;

struct World {
    folder: TempDir,
    dataset: PathBuf,
}

impl World {
    fn new() -> Self {
        let (folder, dataset) = reviews(3000);
        Self { folder, dataset }
    }

    fn arguments<'a>(&'a self, out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
        let sizes =
            ["--embedding=32", "--hidden=32", "--linear=8", "--epochs=3", "--batch=64", "--rate=0.01"];
        let name = |flag: &&str| flag.split('=').next().unwrap().to_owned();
        let is_passed = |size: &&str| more.iter().any(|flag| name(flag) == name(size));
        let sizes = sizes.into_iter().filter(|size| !is_passed(size));
        self.plain_arguments(out, &sizes.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    fn plain_arguments<'a>(&'a self, out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
        let paths = [self.dataset.to_str().unwrap(), "--out", out.to_str().unwrap(), "--device=cpu"];
        [&["fit"][..], &paths, &plain(more)].concat()
    }

    /// Trains with two ranks. Returns the training folder.
    fn train(&self, name: &str, more: &[&str]) -> PathBuf {
        self.train_with(2, name, more).0
    }

    /// Trains with this number of ranks. Returns the training folder and the messages.
    fn train_with(&self, n_ranks: usize, name: &str, more: &[&str]) -> (PathBuf, String) {
        let out = self.folder.path().join(name);
        let mut launch = trainer();
        launch.args(["launch", "--nproc", &n_ranks.to_string(), "--"]).args(self.arguments(&out, more));
        let (code, messages) = ended(launch);
        assert_eq!(code, Some(0), "{messages}");
        (out, messages)
    }

    fn refused(&self, more: &[&str]) -> String {
        let out = self.folder.path().join("refused");
        let mut fit = trainer();
        fit.args(self.arguments(&out, more));
        let (code, told) = ended(fit);
        assert_eq!(code, Some(78), "{told}");
        told.lines().last().unwrap().to_owned()
    }
}

fn weights(out: &Path) -> Vec<u8> {
    fs::read(out.join("model/model.safetensors")).unwrap()
}

/// Number of training rows.
fn n_rows(out: &Path) -> u64 {
    let settings: Value = serde_json::from_slice(&fs::read(out.join("settings.json")).unwrap()).unwrap();
    settings["dataset"]["rows"][0].as_u64().unwrap()
}

#[test]
fn a_slower_rank_gets_fewer_tokens_and_a_replay_of_the_decisions_gives_the_same_bits() {
    let world = World::new();
    let out = world.train("first", &["--balance=dynamic", "--throttle=1,4"]);
    let made = decisions(&out).unwrap();
    let last = made.last().expect("a decision");
    assert_eq!(last.parts.iter().sum::<usize>(), BATCH);
    // The ideal is 51 and 13 parts.
    assert!(last.parts[0] > 38, "{made:?}");
    assert!(made.iter().all(|decision| matches!(decision.reason, Reason::Faster { .. })), "{made:?}");

    let replay = ["--balance=replay", "--decisions", out.to_str().unwrap()];
    let again = world.train("again", &replay);
    assert!(weights(&again) == weights(&out));

    let page = world.folder.path().join("report.html");
    let mut report = trainer();
    report.arg("report").arg(&out).arg("--out").arg(&page);
    assert_eq!(ended(report).0, Some(0));
    let page = fs::read_to_string(page).unwrap();
    let share = 100.0 * last.fractions().next().unwrap();
    let expected = format!("Decided shares over epoch. rank 0: from 50.0 % at 0 to {share:.1} % at ");
    assert!(page.contains(&expected) && page.contains("--balance</th>"), "{expected}");
}

#[test]
fn a_resumed_replay_has_the_bits_of_one_that_was_not_stopped() {
    let world = World::new();
    // Decisions before and after the checkpoint at step 50.
    let made = world.folder.path().join("made");
    decide(&made, &[(20, vec![50, 14]), (80, vec![20, 44])]);
    let replay = ["--balance=replay", "--decisions", made.to_str().unwrap(), "--log-steps=1"];

    let whole = world.train("whole", &[&replay[..], &["--checkpoint-steps=50"]].concat());
    let from = format!("--resume={}", whole.join("checkpoints/step-000000050").display());
    let resumed = world.train("resumed", &[&replay[..], &[&from]].concat());

    assert!(weights(&resumed) == weights(&whole));
    let tokens_of_first = |step: &Value| step["shares"][0]["work"].as_f64().unwrap();
    let steps = events(&resumed, "steps");
    assert_eq!(steps[0]["step"], 51);
    assert!(tokens_of_first(&steps[0]) > 1.5 * tokens_of_first(&steps[60]), "{steps:?}");
}

#[test]
fn a_resumed_training_continues_with_the_decisions_before() {
    let world = World::new();
    let balanced = ["--balance=dynamic", "--throttle=1,4"];
    let out = world.train("first", &[&balanced[..], &["--checkpoint-steps=100"]].concat());
    assert!(decisions(&out).unwrap().iter().any(|of| of.from_batch <= 90));
    let from = format!("--resume={}", out.join("checkpoints/step-000000100").display());
    let resumed = world.train("resumed", &[&balanced[..], &[&from, "--log-steps=1"]].concat());
    // Equal shares have 32 rows, and a new balancer changes them after some steps.
    let first = &events(&resumed, "steps")[0];
    assert_eq!(first["step"], 101);
    assert!(first["shares"][0]["rows"].as_f64().unwrap() > 38.0, "{first}");

    // Its folder also has the decisions that its checkpoint contains, so that they can be replayed.
    let mut before = decisions(&out).unwrap();
    before.retain(|of| of.from_batch <= 102);
    assert!(decisions(&resumed).unwrap().starts_with(&before));
    let replay = ["--balance=replay", "--decisions", resumed.to_str().unwrap()];
    assert!(weights(&world.train("replayed", &replay)) == weights(&resumed));
}

#[test]
fn a_training_that_is_resumed_with_another_number_of_ranks_starts_from_equal_shares() {
    let world = World::new();
    let balanced = ["--balance=dynamic", "--epochs=1"];
    let out = world.train("two", &[&balanced[..], &["--checkpoint-steps=20"]].concat());
    let from = format!("--resume={}", out.join("checkpoints/step-000000020").display());
    let (_, messages) = world.train_with(3, "three", &[&balanced[..], &[&from]].concat());
    let expected = "the checkpoint has measurements and shares of 2 ranks: starting from equal shares";
    assert_eq!(messages.matches(expected).count(), 1, "{messages}");
}

#[test]
fn shares_follow_the_times_of_an_epoch() {
    let world = World::new();
    let out = world.train("first", &["--balance=per-epoch", "--throttle=1,4"]);
    // There is no decision after the last epoch.
    let made = decisions(&out).unwrap();
    assert_eq!(made.len(), 2, "{made:?}");
    assert!(made.iter().all(|decision| matches!(decision.reason, Reason::Epoch { .. })), "{made:?}");
    // A machine that stops the faster rank for seconds changes one of them.
    assert!(made.iter().any(|decision| decision.parts[0] > 38), "{made:?}");
}

#[test]
fn the_loss_does_not_depend_on_shares() {
    let world = World::new();
    let sgd = ["--optimizer=sgd", "--rate=0.1"];
    let of = |name, more: &[&str]| world.train(name, &[&sgd[..], more].concat());
    let off = of("off", &["--balance=off"]);
    let on = of("on", &["--balance=dynamic", "--throttle=1,4"]);
    assert!(!decisions(&on).unwrap().is_empty());
    let [expected, found] = [&off, &on].map(|out| losses(out, "epoch"));
    assert_eq!((expected.len(), found.len()), (3, 3));
    for (expected, found) in expected.iter().zip(&found) {
        assert!((found - expected).abs() <= 1e-5 * expected, "{found}, with equal shares {expected}");
    }
    for out in [&off, &on] {
        for epoch in events(out, "epoch") {
            let rows = epoch["ranks"].as_array().unwrap().iter().map(|rank| rank["rows"].as_u64().unwrap());
            assert_eq!(rows.sum::<u64>(), n_rows(out), "{epoch}");
        }
    }
}

#[test]
fn the_times_of_shares_are_those_of_a_batch_if_steps_have_two() {
    let world = World::new();
    let out = world.train("accumulated", &["--accumulate=2", "--log-steps=10"]);
    let n_batches = n_rows(&out).div_ceil(BATCH as u64);
    let n_steps = n_batches.div_ceil(2);
    let until = |step: u64| step / n_steps * n_batches + 2 * (step % n_steps);
    let (mut before, mut before_s, mut parts) = (0, 0.0, Vec::new());
    for line in events(&out, "steps") {
        let end = until(line["step"].as_u64().unwrap());
        let of_batch = |name: &str| line["shares"][0][name].as_f64().unwrap();
        let seconds = (end - before) as f64 * (of_batch("computed_s") + of_batch("rest_s"));
        let elapsed_s = line["elapsed_s"].as_f64().unwrap();
        parts.push(seconds / (elapsed_s - before_s));
        (before, before_s) = (end, elapsed_s);
    }
    assert_eq!(before, 3 * n_batches);
    let part = median(parts.clone());
    assert!(part > 0.5 && part < 1.2, "{parts:?}");
}

/// The median, which a machine that stops a rank for seconds does not change.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn a_replay_needs_a_training_with_decisions() {
    let world = World::new();
    let off = world.train("off", &[]);
    let told = world.refused(&["--balance=replay", "--decisions", off.to_str().unwrap()]);
    let expected = "expected a training folder with decisions of --balance dynamic or per-epoch";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn a_replay_of_other_batches_or_another_number_of_ranks_is_refused() {
    let world = World::new();
    let off = world.train("off", &["--epochs=1"]);
    let made = world.folder.path().join("made");
    decide(&made, &[(20, vec![50, 14])]);
    fs::copy(off.join("settings.json"), made.join("settings.json")).unwrap();
    let replay = ["--balance=replay", "--decisions", made.to_str().unwrap()];
    let error = world.refused(&[&replay[..], &["--accumulate=2"]].concat());
    assert!(error.contains("a training with --accumulate 1, expected one with --accumulate 2"), "{error}");
    let error = world.refused(&replay);
    assert!(error.contains("--decisions is a training of 2 ranks, expected one of 1"), "{error}");
}

#[test]
fn factors_of_another_number_of_ranks_are_refused() {
    let error = World::new().refused(&["--throttle=1,4"]);
    assert!(error.contains("--throttle is 1,4, expected a factor for each rank"), "{error}");
}

#[test]
fn the_profile_and_the_trace_show_the_phases_of_each_rank() {
    let world = World::new();
    let trace = world.folder.path().join("trace.json");
    let flags =
        ["--throttle=1,4", "--log-steps=10", "--trace", trace.to_str().unwrap(), "--trace-steps=11-20"];
    let out = world.train("profiled", &flags);

    let mut factors = Vec::new();
    for epoch in events(&out, "epoch") {
        let [fast, slow] = [0, 1].map(|rank| epoch["ranks"][rank].clone());
        let seconds = |of: &Value, name: &str| of["profile"][name].as_f64().unwrap();
        factors.push(seconds(&slow, "backward_s") / seconds(&fast, "backward_s"));
        for rank in [fast, slow] {
            let phases = ["loading_s", "forward_s", "backward_s", "waiting_s", "reduction_s", "optimizer_s"];
            let sum: f64 = phases.iter().map(|name| seconds(&rank, name)).sum();
            assert!(sum <= rank["seconds"].as_f64().unwrap() + 1e-5, "{rank}");
            assert!(phases[1..].iter().all(|name| seconds(&rank, name) > 0.0), "{rank}");
            assert!(seconds(&rank, "sent_bytes") > 0.0);
        }
    }
    assert!(median(factors.clone()) > 2.0, "{factors:?}");
    let steps = events(&out, "steps").into_iter().map(|line| {
        let computed = |rank: usize| line["shares"][rank]["computed_s"].as_f64().unwrap();
        computed(1) / computed(0)
    });
    let factors: Vec<f64> = steps.collect();
    assert!(median(factors.clone()) > 2.0, "{factors:?}");

    let trace: Value = serde_json::from_str(&fs::read_to_string(&trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    for rank in 0..2 {
        let of_rank = || events.iter().filter(move |event| event["pid"] == rank && event["ph"] == "X");
        let named = |name: &str| of_rank().filter(|event| event["name"] == name).count();
        for name in ["loading", "forward", "backward", "waiting", "reduction", "optimizer"] {
            // The repeated computation of the slow rank is another backward phase.
            let n = if rank == 1 && name == "backward" { 20 } else { 10 };
            assert_eq!(named(name), n, "{name} of rank {rank}");
        }
        assert!(of_rank().all(|event| (11..=20).contains(&event["args"]["step"].as_u64().unwrap())));
        // Phases of a rank follow one another.
        let time = |event: &Value, name: &str| event[name].as_f64().unwrap();
        let all: Vec<_> = of_rank().collect();
        for pair in all.windows(2) {
            assert!(time(pair[0], "ts") + time(pair[0], "dur") <= time(pair[1], "ts") + 1e-3, "{pair:?}");
        }
    }
}

#[test]
fn a_trace_does_not_replace_a_file() {
    let world = World::new();
    let trace = world.folder.path().join("trace.json");
    fs::write(&trace, "mine").unwrap();
    let mut fit = trainer();
    fit.args(world.arguments(&world.folder.path().join("refused"), &["--trace", trace.to_str().unwrap()]));
    let (code, told) = ended(fit);
    assert!(code != Some(0) && told.contains("trace.json"), "{code:?} {told}");
    assert_eq!(fs::read_to_string(&trace).unwrap(), "mine");
}

/// PyTorch in 64 bits, whose sums do not depend on the parts of a share up to 1e-12. Half a batch of 30 tokens takes 2 GB
/// of address space, a quarter 1.5 GB.
const LARGE: [&str; 6] =
    ["--precision=f64", "--optimizer=sgd", "--embedding=32", "--hidden=256", "--linear=8", "--batch=2000"];
/// An address space for the program, libtorch and a quarter of a batch.
const SMALL_KIB: u32 = 1_400_000;

/// The program with a limit of its address space, in KiB.
fn limited(kib: u32) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -v {kib}; exec \"$0\" \"$@\"")]).arg(trainer().get_program());
    // Each thread would reserve 64 MiB of addresses for its memory.
    shell.env("OMP_NUM_THREADS", "1").env("MALLOC_ARENA_MAX", "1");
    shell
}

#[test]
fn a_batch_that_does_not_fit_into_memory_is_computed_in_parts() {
    let world = World::new();
    let of = |name: &str, mut fit: Command| {
        let out = world.folder.path().join(name);
        fit.args(world.plain_arguments(&out, &[&LARGE[..], &["--epochs=1"]].concat()));
        let (code, told) = ended(fit);
        assert_eq!(code, Some(0), "{told}");
        let loss = events(&out, "epoch")[0]["loss"].as_f64().unwrap();
        let mut tensors = Tensor::read_safetensors(out.join("model/model.safetensors")).unwrap();
        tensors.sort_by(|(one, _), (other, _)| one.cmp(other));
        (told, loss, tensors)
    };
    let (told, expected, weights) = of("all", trainer());
    assert!(!told.contains("do not fit"), "{told}");
    let (told, found, in_parts) = of("parts", limited(SMALL_KIB));
    assert!(told.contains("do not fit into memory; they are computed in parts"), "{told}");
    assert!((found - expected).abs() < 1e-12 * expected, "{found} {expected}");
    for ((name, whole), (also, of_parts)) in weights.iter().zip(&in_parts) {
        assert_eq!(name, also);
        let difference = (whole - of_parts).abs().max().double_value(&[]);
        assert!(difference < 1e-7, "{name}: {difference:e}");
    }
}

#[test]
fn a_rank_with_little_memory_gets_fewer_rows() {
    let world = World::new();
    let (out, port) = (world.folder.path().join("out"), free_port());
    let flags = [&LARGE[..], &["--epochs=1", "--balance=dynamic"]].concat();
    let start = |rank: usize, mut fit: Command| {
        fit.args(world.plain_arguments(&out, &flags));
        Rank::start(rank, placed(fit, rank, 2, port))
    };
    for mut rank in [start(0, trainer()), start(1, limited(SMALL_KIB))] {
        let (code, told) = rank.end();
        assert_eq!(code, Some(0), "{told:?}");
    }
    let made = decisions(&out).unwrap();
    let of_memory = made.iter().find(|decision| decision.reason == Reason::Memory { rank: 1 });
    let sizes = &of_memory.expect("a decision").parts;
    assert!(sizes[1] <= 500 && sizes.iter().sum::<usize>() == 2000, "{made:?}");
}
