//! Trains as `fasttext supervised` and prints the time: `train FILE TEST NGRAMS DIM RATE EPOCHS THREADS [OPTION…]`. The
//! model is written to the folder in the environment variable SAVE.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::path::Path;
use std::time::Instant;

use classifiers::Features;
use classifiers::fasttext::{FastTextSettings, Loss, Optimizer, Scores, Training};

/// Processor time of all threads so far, in seconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let number = |at: usize| arguments[at].parse::<f32>().unwrap();
    let threads = number(7) as usize;
    let ngrams = number(3) as u32;
    let start = Instant::now();
    let texts =
        classifiers::read_fasttext_file(Path::new(&arguments[1]), threads, Default::default()).unwrap();
    let (read, read_cpu) = (start.elapsed(), cpu());
    let buckets = if ngrams > 1 { 2_000_000 } else { 0 };
    let settings = FastTextSettings {
        features: Features { ngrams, buckets, ..Features::default() },
        dim: number(4) as usize,
        rate: number(5),
        epochs: number(6) as u32,
        threads,
        is_deterministic: has("--deterministic"),
        loss: if has("--bce") { Loss::Bce } else { Loss::Softmax },
        optimizer: match () {
            () if has("--adagrad") => Optimizer::Adagrad,
            () if has("--adam") => Optimizer::LazyAdam,
            () => Optimizer::Sgd,
        },
        l2: if has("--l2") { 1e-5 } else { 0.0 },
        dropout: if has("--dropout") { 0.3 } else { 0.0 },
        subsampling: if has("--subsample") { 1e-3 } else { 0.0 },
        seed: std::env::var("SEED").map_or(0, |seed| seed.parse().unwrap()),
        ..FastTextSettings::default()
    };
    let mut training = Training::new(&texts, settings).unwrap();
    let (drawn, drawn_cpu) = (start.elapsed(), cpu());
    while let Some(progress) = training.step().unwrap() {
        if has("--verbose") {
            println!("{progress:?}");
        }
    }
    let model = training.finish();
    let (trained, trained_cpu) = (start.elapsed(), cpu());
    if let Ok(folder) = std::env::var("SAVE") {
        classifiers::files::write(Path::new(&folder), classifiers::files::ModelRef::FastText(&model))
            .unwrap();
    }
    let (saved, saved_cpu) = (start.elapsed(), cpu());
    let test = std::fs::read(&arguments[2]).unwrap();
    let (mut n_right, mut n_texts, mut scores) = (0, 0, Scores::default());
    for line in test.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let (label, text) = line.split_at(line.iter().position(|&byte| byte == b' ').unwrap());
        let probabilities = model.scores(text, &mut scores);
        let best = (0..probabilities.len())
            .max_by(|&one, &other| probabilities[one].total_cmp(&probabilities[other]));
        n_right += usize::from(model.dictionary().labels().get(best.unwrap() as u32) == &label[9..]);
        n_texts += 1;
    }
    let phases = [
        ("read", read.as_secs_f64(), read_cpu),
        ("prepare", (drawn - read).as_secs_f64(), drawn_cpu - read_cpu),
        ("train", (trained - drawn).as_secs_f64(), trained_cpu - drawn_cpu),
        ("save", (saved - trained).as_secs_f64(), saved_cpu - trained_cpu),
        ("all", saved.as_secs_f64(), saved_cpu),
    ];
    for (phase, seconds, cpu) in phases {
        print!("{phase} {seconds:.3} ({cpu:.2}) ");
    }
    println!("{} rows accuracy {:.4}", model.met().len(), f64::from(n_right as u32) / f64::from(n_texts));
}
