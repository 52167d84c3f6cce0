//! Models of fastText's program: both programs give the same answers from the same files, whichever wrote them.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use classifiers::Features;
use classifiers::fasttext::{FastTextSettings, Scores, Training};
use classifiers::files::bin::answers::{BinScratch, best};
use classifiers::files::bin::{BinModel, Quantization};
use classifiers::files::{vectors, write_bin};
use tempfile::TempDir;
use tests::oracle::fasttext;

const DENSE: [&str; 5] = ["words.bin", "bigrams.bin", "characters.bin", "tree.bin", "negatives.bin"];
const QUANTIZED: [&str; 4] = ["all.ftz", "norms.ftz", "pruned.ftz", "retrained.ftz"];
/// The largest difference of probabilities.
const TOLERANCE: f64 = 1e-5;
/// White space, unknown words, labels within a text, and an end of a line within a line.
const ODD_LINES: &str = "\n \t\u{b}\u{c}\nunknown\n__label__pos\nw1, __label__pos w2, __label__other w3,\nw1, </s> w2, w3,\n\
    w1,\r\nw1,\u{a0}w2,";

/// Labels with their probabilities, best first.
type Answer = Vec<(String, f64)>;

/// Models that the program trained.
struct Trained {
    folder: TempDir,
    texts: PathBuf,
}

impl Trained {
    /// `None` if the program is not installed.
    fn new(names: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let [corpus, texts] = ["corpus.txt", "texts.txt"].map(|name| folder.path().join(name));
        fs::write(&corpus, lines(1000, 1)).unwrap();
        fs::write(&texts, [&lines(300, 2), ODD_LINES].concat()).unwrap();
        let mut arguments = vec![OsStr::new("train"), corpus.as_ref(), folder.path().as_ref()];
        arguments.extend(names.iter().map(OsStr::new));
        fasttext(&arguments)?;
        Some(Self { folder, texts })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> BinModel {
        BinModel::read(&self.path(name)).unwrap()
    }

    /// The program's answers to all texts from these files.
    fn their_answers(&self, names: &[String]) -> Vec<Vec<Answer>> {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        let mut arguments = vec![OsStr::new("answers"), self.texts.as_ref()];
        arguments.extend(paths.iter().map(|path| path.as_os_str()));
        let printed = fasttext(&arguments).unwrap();
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[track_caller]
    fn check(&self, name: &str, theirs: &[Answer]) {
        are_equal(name, &self.our_answers(&self.read(name)), theirs);
    }

    fn our_answers(&self, model: &BinModel) -> Vec<Answer> {
        let mut scratch = BinScratch::default();
        let texts = fs::read(&self.texts).unwrap();
        let answer = |line| {
            let Some(scores) = model.scores(line, &mut scratch) else { return Vec::new() };
            let named = |label: usize| {
                let name = String::from_utf8(model.entries().label(label as u32)).unwrap();
                (name, f64::from(scores[label].exp()))
            };
            best(scores, scores.len()).into_iter().map(named).collect()
        };
        texts.split(|&byte| byte == b'\n').map(answer).collect()
    }
}

#[track_caller]
fn are_equal(name: &str, ours: &[Answer], theirs: &[Answer]) {
    assert_eq!(ours.len(), theirs.len());
    for (line, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let is_same = |((label, our), (their_label, their)): (&(String, f64), &(String, f64))| {
            label == their_label && (our - their).abs() <= TOLERANCE
        };
        // The program omits labels of a tree whose probability is 0.
        let omitted = ours.get(theirs.len()..);
        let is_same = ours.iter().zip(theirs).all(is_same)
            && omitted.is_some_and(|omitted| omitted.iter().all(|(_, our)| *our <= TOLERANCE));
        assert!(is_same, "{name}, line {line}: {ours:?}, {theirs:?}");
    }
}

/// Lines of words that depend on one of three labels.
fn lines(n: u64, seed: u64) -> String {
    let mut state = seed;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut lines = String::new();
    for _ in 0..n {
        let label = random(10).min(2);
        write!(lines, "__label__{}", ["pos", "neg", "mixed"][label as usize]).unwrap();
        for _ in 0..=random(30) {
            // Low numbers are frequent; a third of the words depends on the label.
            let word = random(400) * random(400) / 400;
            match random(6) {
                0 | 1 => write!(lines, " {}{word}", ["gut", "schlecht", "mä\u{df}ig"][label as usize]),
                2 => write!(lines, "\t\u{65e5}\u{672c}{word}"),
                _ => write!(lines, "  w{word},"),
            }
            .unwrap();
        }
        lines.push('\n');
    }
    lines
}

#[test]
fn both_programs_give_the_same_answers_from_the_same_files() {
    let names = [&DENSE[..], &QUANTIZED].concat();
    let Some(trained) = Trained::new(&names) else { return };
    let mut files = Vec::new();
    for name in names {
        let model = trained.read(name);
        let ours = format!("ours-{name}");
        model.write(&trained.path(&ours)).unwrap();
        // The order of pruned buckets in the file is that of the program's hash table.
        if model.entries().pruned().is_none() {
            assert!(
                fs::read(trained.path(&ours)).unwrap() == fs::read(trained.path(name)).unwrap(),
                "{name}"
            );
        }
        files.extend([name.to_owned(), ours]);
    }
    let all = Quantization { part_columns: 2, separate_norms: false, output: false, rows_max: 0, threads: 2 };
    let few = Quantization { part_columns: 3, separate_norms: true, rows_max: 300, ..all };
    for name in ["bigrams.bin", "characters.bin", "tree.bin"] {
        for (how, ours) in [(all, format!("all-{name}")), (few, format!("few-{name}"))] {
            trained.read(name).quantised(&how).unwrap().write(&trained.path(&ours)).unwrap();
            files.push(ours);
        }
    }
    let answers = trained.their_answers(&files);
    assert_eq!(answers.len(), files.len());
    for (name, theirs) in files.iter().zip(&answers) {
        trained.check(name, theirs);
    }
}

#[test]
fn the_program_gives_the_answers_of_our_model() {
    let Some(trained) = Trained::new(&[]) else { return };
    let corpus = classifiers::read_fasttext_file(&trained.path("corpus.txt"), 2, Default::default()).unwrap();
    let features =
        Features { ngrams: 2, buckets: 5000, characters_min: 3, characters_max: 4, ..Features::default() };
    let settings = FastTextSettings { features, rate: 0.5, ..FastTextSettings::default() };
    let mut training = Training::new(&corpus, settings).unwrap();
    while training.step().unwrap().is_some() {}
    let model = training.finish();
    write_bin(&trained.path("ours.bin"), &model).unwrap();
    let theirs = trained.their_answers(&["ours.bin".to_owned()]).remove(0);
    let (texts, mut scores) = (lines(300, 2), Scores::default());
    let ours = texts.lines().map(|line| {
        let (_, text) = line.split_once([' ', '\t']).unwrap();
        let labels = model.dictionary().labels();
        let probabilities = model.scores(text.as_bytes(), &mut scores).iter();
        // The program adds 1e-5 to a probability before it takes the logarithm.
        let mut answer: Answer = labels
            .iter()
            .zip(probabilities)
            .map(|(label, &found)| {
                (format!("__label__{}", String::from_utf8_lossy(label)), f64::from(found) + 1e-5)
            })
            .collect();
        answer.sort_by(|a, b| b.1.total_cmp(&a.1));
        answer
    });
    are_equal("ours.bin", &ours.collect::<Vec<_>>(), &theirs[..300]);
}

#[test]
fn word_vectors_are_those_of_the_program() {
    let names = ["words.bin", "characters.bin"];
    let Some(trained) = Trained::new(&names) else { return };
    for name in names {
        let (model, ours) = (trained.path(name), trained.path(&format!("{name}.vec")));
        vectors::write_model(&ours, &trained.read(name)).unwrap();
        let theirs = fasttext(&["vectors".as_ref(), model.as_ref()]).unwrap();
        let ours = fs::read_to_string(ours).unwrap();
        assert_eq!(ours.lines().count(), theirs.lines().count());
        for (ours, theirs) in ours.lines().zip(theirs.lines()) {
            assert_eq!(ours, theirs, "{name}");
        }
    }
}
