//! The program computes the same results on a GPU as on a CPU when it trains, resumes, evaluates and predicts, with
//! one rank and with several. Without a GPU, PyTorch on the CPU is compared with the kernels, so that everything
//! except the GPU itself is tested on every machine.
//!
//! Each comparison also prints a line `MEASURED {...}` on standard error, which the report of the GPU bundle
//! contains.
#![allow(clippy::unwrap_used)]

mod command;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use command::{decide, events, losses, plain, plain_of_words, run, trainer};
use fixtures::{reviews, word};
use runs::recipe::{ClassifierSettings, Dropout, LstmSettings, Objective, Pool};
use rustix::process::Signal;
use serde_json::{Value, json};
use tch::{Cuda, Device, Kind, Tensor};
use tempfile::TempDir;
use tests::ranks::{Rank, skipped};
use trainer::families::{Classifier, Start};

const SIZES: &[&str] =
    &["--tokens=20", "--batch=32", "--embedding=16", "--hidden=16", "--linear=8", "--log-steps=1"];
/// Relative tolerance of a loss. By default, cuDNN rounds the factors of 32-bit multiplications to 11 bits (TF32).
const F32_LOSS: f64 = 0.02;
/// Relative tolerance of a loss in 32 bits, where only the order of sums differs.
const F32_EXACT_LOSS: f64 = 1e-4;
/// Absolute tolerance of a score from 0 to 1.
const F32_SCORE: f64 = 0.01;
/// Tolerance in 64 bits, where only the order of sums differs.
const F64: f64 = 1e-8;
/// Relative tolerance of a loss in bf16, whose factors have 8 bits.
const BF16_LOSS: f64 = 0.05;
/// Relative tolerance of a gradient in bf16.
const BF16_GRADIENT: f64 = 0.02;
/// Number of steps that are compared in a precision that rounds, because the difference grows with each step.
const N_ROUNDED: usize = 30;
const DOUBLE: &str = "--precision=f64";

/// A dataset, and a folder for the results.
struct Job {
    folder: TempDir,
    dataset: PathBuf,
    _data: TempDir,
}

impl Job {
    fn new() -> Self {
        let (data, dataset) = reviews(600);
        Self { folder: tempfile::tempdir().unwrap(), dataset, _data: data }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fit(&self, name: &str, more: &[&str]) -> Command {
        let mut command = trainer();
        command.arg("fit").arg(&self.dataset).arg("--out").arg(self.out(name));
        command.args(plain(&[SIZES, &["--rate=0.005"], more].concat()));
        command
    }

    fn train(&self, name: &str, more: &[&str]) {
        said(self.fit(name, more));
    }

    /// The loss of each step.
    fn losses(&self, name: &str) -> Vec<f64> {
        losses(&self.out(name), "steps")
    }

    fn weights(&self, name: &str) -> Vec<u8> {
        fs::read(self.out(name).join("model/model.safetensors")).unwrap()
    }

    /// Compares the losses of the steps of two trainings. In a precision that rounds, only the first steps are
    /// compared.
    fn compare(&self, what: &str, [found, expected]: [&str; 2], bound: f64) {
        let [found, expected] = [found, expected].map(|name| self.losses(name));
        assert_eq!(found.len(), expected.len());
        assert!(expected[0] > expected[expected.len() - 1], "it learns nothing: {expected:?}");
        let n_steps = if bound > F64 { N_ROUNDED } else { expected.len() };
        assert!(n_steps >= N_ROUNDED && n_steps <= expected.len(), "{expected:?}");
        let apart = found.iter().zip(&expected).map(|(found, expected)| (found - expected).abs() / expected);
        is_within(what, apart.take(n_steps).fold(0.0, f64::max), bound);
    }
}

#[test]
fn a_training_has_the_processors_losses() {
    let job = Job::new();
    for (precision, bound) in [("--precision=f32", F32_LOSS), (DOUBLE, F64)] {
        for pool in ["--pool=last", "--pool=mean-max"] {
            let [found, expected] = ["found", "expected"].map(|side| format!("{side} {precision} {pool}"));
            job.train(&found, &[on_gpu(), &[precision, pool]].concat());
            job.train(&expected, &[PROCESSOR, &[precision, pool]].concat());
            job.compare(&format!("losses of steps, {precision} {pool}"), [&found, &expected], bound);
        }
    }
}

#[test]
fn a_pretraining_has_the_processors_losses() {
    let job = Job::new();
    for (precision, bound) in [("--precision=f32", F32_LOSS), (DOUBLE, F64)] {
        let [found, expected] = ["found", "expected"].map(|side| format!("{side} {precision}"));
        for (name, device) in [(&found, on_gpu()), (&expected, BY_PYTORCH)] {
            pretrain(&job, name, &[device, &[precision]].concat());
        }
        job.compare(&format!("losses of a pretraining's steps, {precision}"), [&found, &expected], bound);
    }
}

#[test]
fn a_training_that_was_ended_goes_on_as_if_it_was_not() {
    let job = Job::new();
    let asked = [on_gpu(), &[DOUBLE, "--epochs=20", "--checkpoint-steps=10"]].concat();
    job.train("whole", &asked);
    let mut rank = Rank::start(0, job.fit("ended", &asked));
    rank.wait_for(" step 20: ");
    rank.signal(Signal::TERM);
    let (code, output) = rank.end();
    assert_eq!(code, Some(75), "{output:?}");
    assert!(job.losses("ended").len() < job.losses("whole").len());

    job.train("ended", &[&asked[..], &["--resume"]].concat());

    let are_same = job.weights("ended") == job.weights("whole");
    measured(&json!({"what": "weights after resuming are the same bits", "found": are_same}));
    // On a GPU, PyTorch's order of sums can differ from run to run.
    assert!(are_same || has_gpu());
    job.compare("losses of steps, resumed", ["ended", "whole"], F64);
}

#[test]
fn evaluations_and_predictions_are_the_processors() {
    let job = Job::new();
    let texts: String = (0..200).map(|at| format!("{}\n", text(at))).collect();
    let lines = job.out("texts");
    fs::write(&lines, texts).unwrap();
    for (precision, bound) in [("--precision=f32", F32_SCORE), (DOUBLE, F64)] {
        let model = job.out(precision);
        job.train(precision, &[PROCESSOR, &[precision]].concat());

        let [found, expected] = [on_gpu(), PROCESSOR].map(|device| {
            let mut evaluate = trainer();
            evaluate.arg("evaluate").arg(&model).arg(&job.dataset).args(device);
            let metrics: Value = serde_json::from_str(&said(evaluate)).unwrap();
            let metrics = numbers(&metrics);
            assert!(metrics.iter().any(|(name, _)| name.ends_with("loss")), "{metrics:?}");
            metrics
        });
        assert_eq!(found.len(), expected.len());
        for ((name, found), (_, expected)) in found.iter().zip(&expected) {
            if ["loss", "auc", "accuracy"].iter().any(|metric| name.ends_with(metric)) {
                let what = format!("evaluation, {name}, {precision}");
                is_within(&what, (found - expected).abs() / expected.abs().max(1e-9), bound);
            }
        }

        let [found, expected] = [on_gpu(), PROCESSOR].map(|device| {
            let mut predict = trainer();
            predict.arg("predict").arg(&model).arg(&lines).args(["--format", "text"]).args(device);
            let score = |line: &str| serde_json::from_str::<Value>(line).unwrap()["score"].as_f64().unwrap();
            said(predict).lines().map(score).collect::<Vec<f64>>()
        });
        assert_eq!((found.len(), expected.len()), (200, 200));
        assert!(expected.iter().any(|score| (score - expected[0]).abs() > 0.1), "{expected:?}");
        let apart = found.iter().zip(&expected).map(|(found, expected)| (found - expected).abs());
        is_within(&format!("scores of predictions, {precision}"), apart.fold(0.0, f64::max), bound);
    }
}

#[test]
fn tokens_on_the_gpu_and_tokens_copied_to_it_train_alike() {
    let Some(()) = gpu("tokens in its memory") else { return };
    let job = Job::new();
    job.train("resident", &["--device=cuda", DOUBLE]);
    job.train("copied", &["--device=cuda", DOUBLE, "--device-memory=0"]);
    job.compare("losses of steps, tokens copied", ["copied", "resident"], F64);
}

#[test]
fn bf16_trains_about_as_f32_does() {
    let Some(()) = gpu("bf16") else { return };
    let job = Job::new();
    job.train("bf16", &["--device=cuda", "--precision=bf16"]);
    job.train("f32", &["--device=cuda"]);

    job.compare("losses of steps, bf16", ["bf16", "f32"], BF16_LOSS);
    pretrain(&job, "bf16 words", &["--device=cuda", "--precision=bf16"]);
    pretrain(&job, "f32 words", &["--device=cuda"]);
    job.compare("losses of a pretraining's steps, bf16", ["bf16 words", "f32 words"], BF16_LOSS);
}

/// float16 would lose the gradients of a loss that is divided by many rows.
#[test]
fn in_bf16_the_lstm_keeps_small_gradients() {
    let device = if has_gpu() { Device::Cuda(0) } else { Device::Cpu };
    let sizes = LstmSettings { ids: 20, embedding: 8, hidden: 16, layers: 2, bidirectional: true };
    let settings = ClassifierSettings { objective: Objective::Rating, pool: Pool::Last, linear: 4 };
    let start = Start { seed: 1, embedding_std: 1.0 };
    let model = Classifier::new(&sizes, settings, start, (Kind::Float, device)).unwrap();
    let tokens: Vec<i64> = (0..24).map(|at| 1 + at % 19).collect();
    let tokens = Tensor::from_slice(&tokens).view([4, 6]).to_device(device);
    let lengths = Tensor::from_slice(&[6i64, 1, 4, 6]).to_device(device);
    let parameters = model.lstm().parameters();
    let at = parameters.names().iter().position(|name| name == "lstm.weight_hh_l0").unwrap();
    let states = |dropout| model.lstm().states(&tokens, &lengths, dropout).unwrap();
    let gradient = |scale: f64| {
        let states = c10d::in_bfloat16(|| states(Dropout::default())).unwrap();
        assert_eq!(states.kind(), Kind::BFloat16);
        let loss = states.to_kind(Kind::Float).square().sum(Kind::Float) * scale;
        let gradients = Tensor::run_backward(&[loss], &parameters.tensors()[at..=at], false, false);
        assert_eq!(gradients[0].kind(), Kind::Float);
        &gradients[0] / scale
    };
    let (found, expected) = (gradient(1e-9), gradient(1.0));
    let largest = expected.abs().max().double_value(&[]);
    assert!(largest > 0.0);
    let apart = (found - &expected).abs().max().double_value(&[]) / largest;
    is_within("gradients of state weights in bf16, from a loss of 1e-9", apart, BF16_GRADIENT);
    assert_eq!(states(Dropout::default()).kind(), Kind::Float);
}

#[test]
fn without_tf32_the_gpu_multiplies_with_all_bits() {
    let Some(()) = gpu("TF32") else { return };
    let job = Job::new();
    job.train("exact", &["--device=cuda", "--no-tf32"]);
    job.train("processor", BY_PYTORCH);
    job.compare("losses of steps, f32 without TF32", ["exact", "processor"], F32_EXACT_LOSS);
}

/// cuDNN copies weights that are not in one buffer in each call, and PyTorch warns of it each time.
#[test]
fn cudnn_finds_the_weights_in_one_buffer() {
    let Some(()) = gpu("the buffer of cuDNN") else { return };
    let job = Job::new();
    for precision in ["f32", "bf16"] {
        let (code, _, told) = run(job.fit(precision, &["--device=cuda", "--precision", precision]));
        assert_eq!(code, Some(0), "{told}");
        assert!(!told.contains("single contiguous chunk"), "{told}");
        assert!(!told.contains("Warning"), "{told}");
    }
}

fn pretrain(job: &Job, name: &str, more: &[&str]) {
    let sizes: Vec<&str> = SIZES.iter().copied().filter(|size| !size.starts_with("--linear")).collect();
    let mut command = trainer();
    command.arg("pretrain").arg(&job.dataset).arg("--out").arg(job.out(name));
    command.args(plain_of_words(&[&sizes, more, &["--rate=0.005"]].concat()));
    said(command);
}

#[test]
fn two_ranks_over_gloo_have_the_losses_of_one() {
    let job = Job::new();
    job.train("one", &[PROCESSOR, &[DOUBLE]].concat());
    ranks_train(&job, "two", 2, &[PROCESSOR, &[DOUBLE]].concat());
    job.compare("losses of steps, two ranks over Gloo", ["two", "one"], F64);
}

#[test]
fn a_rank_for_each_gpu_has_the_losses_of_one() {
    let n_gpus = if has_gpu() { Cuda::device_count() } else { 0 };
    if n_gpus < 2 {
        skipped(&format!("ranks over NCCL: they need several GPUs, and this machine has {n_gpus}"));
        return;
    }
    let job = Job::new();
    job.train("one", &["--device=cuda", DOUBLE]);
    ranks_train(&job, "all", n_gpus, &["--device=cuda", DOUBLE]);
    job.compare(&format!("losses of steps, {n_gpus} ranks over NCCL"), ["all", "one"], F64);
}

/// The ranks are balanced by the times that PyTorch needs: on the GPUs of this machine, or on its processor.
#[test]
fn balanced_ranks_have_the_losses_of_one_and_measure_their_phases() {
    let n_gpus = if has_gpu() { Cuda::device_count() } else { 0 };
    let (n_ranks, device) = if n_gpus < 2 { (2, BY_PYTORCH) } else { (n_gpus, &["--device=cuda"][..]) };
    let job = Job::new();
    job.train("one", &[device, &[DOUBLE]].concat());
    // Ranks of equal speed may keep their shares, so unequal ones are replayed.
    let mut parts = vec![1; n_ranks as usize];
    parts[0] = 33 - parts.len();
    decide(&job.out("made"), &[(2, parts)]);
    let replay = format!("--decisions={}", job.out("made").display());
    for (name, rule) in
        [("measured", vec!["--balance=dynamic"]), ("replayed", vec!["--balance=replay", &replay])]
    {
        ranks_train(&job, name, n_ranks, &[device, &[DOUBLE], &rule[..]].concat());
        job.compare(&format!("losses of steps, {n_ranks} ranks, {name} shares"), [name, "one"], F64);
    }

    for step in events(&job.out("measured"), "steps") {
        let shares = step["shares"].as_array().unwrap();
        assert_eq!(shares.len() as i64, n_ranks);
        assert!(shares.iter().all(|share| share["computed_s"].as_f64().unwrap() > 0.0), "{step}");
    }
    let last = events(&job.out("replayed"), "steps").pop().unwrap();
    let [most, least] = [0, 1].map(|rank| last["shares"][rank]["work"].as_f64().unwrap());
    assert!(most > 5.0 * least, "{last}");
    let epochs = events(&job.out("measured"), "epoch");
    let ranks = epochs.iter().flat_map(|epoch| epoch["ranks"].as_array().unwrap());
    for rank in ranks {
        let of = |name: &str| rank["profile"][name].as_f64().unwrap();
        let computed = of("forward_s") + of("backward_s") + of("optimizer_s");
        let measured = computed + of("loading_s") + of("waiting_s") + of("reduction_s");
        assert!(of("backward_s") > 0.0 && measured <= rank["seconds"].as_f64().unwrap(), "{rank}");
    }
}

const PROCESSOR: &[&str] = &["--device=cpu"];
const BY_PYTORCH: &[&str] = &["--device=cpu", "--compute=pytorch"];

/// The flags that select the GPU, or PyTorch on the CPU if there is no GPU.
fn on_gpu() -> &'static [&'static str] {
    if has_gpu() { &["--device=cuda"] } else { BY_PYTORCH }
}

/// Whether there is a GPU. Loads CUDA before any query for a GPU, as the program does.
fn has_gpu() -> bool {
    c10d::load_cuda().is_ok() && Cuda::device_count() > 0
}

fn gpu(tested: &str) -> Option<()> {
    if has_gpu() {
        return Some(());
    }
    skipped(&format!("{tested}: this machine has no GPU"));
    None
}

fn ranks_train(job: &Job, name: &str, n_ranks: i64, more: &[&str]) {
    let mut launch = trainer();
    launch.args(["launch", "--nproc", &n_ranks.to_string(), "--"]);
    launch.args(job.fit(name, more).get_args());
    said(launch);
}

/// The standard output of a command that must succeed.
fn said(command: Command) -> String {
    let named = format!("{command:?}");
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{named}: {told}");
    said
}

fn text(at: u32) -> String {
    let words: Vec<String> = (0..1 + at % 19).map(|n| word((at * 31 + n * (7 + at)) % 50)).collect();
    words.join(" ")
}

/// All numbers of a JSON value, each with the path to it.
fn numbers(value: &Value) -> Vec<(String, f64)> {
    let under = |name: &str, value: &Value| {
        let within = numbers(value).into_iter();
        within
            .map(|(path, number)| (format!("{name}.{path}").trim_end_matches('.').to_owned(), number))
            .collect()
    };
    match value {
        Value::Number(number) => vec![(String::new(), number.as_f64().unwrap())],
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, value)| -> Vec<_> { under(name, value) }).collect()
        }
        _ => Vec::new(),
    }
}

#[track_caller]
fn is_within(what: &str, found: f64, bound: f64) {
    measured(&json!({"what": what, "found": found, "bound": bound}));
    assert!(found <= bound, "{what}: {found} apart, expected at most {bound}");
}

/// Writes to standard error directly, because the test harness hides the output of passing tests.
fn measured(line: &Value) {
    std::io::stderr().write_all(format!("MEASURED {line}\n").as_bytes()).unwrap();
}
