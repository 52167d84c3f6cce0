//! Exported folders and files of ONNX have the answers of their models.

use super::*;

/// Texts as people write them, each with words of one label.
const TEXTS: [&str; 9] = [
    "GREAT!! <br />Don\u{2019}t <b>worry</b> 10/10 \u{2764}\u{fe0f}",
    "the caf\u{e9} was great, \u{130}stanbul &amp; \u{39f}\u{394}\u{39f}\u{3a3}",
    "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940} lovely \u{2167} \u{24b6} kettle\u{a0}it's",
    "awful awful e\u{301}t\u{e9} 'noise' ;-)",
    "It BROKE after a week: a waste of money &#33; <BR>never again",
    "b\u{f6}se \u{ff1a} \u{6c34} dull lid",
    "neither good nor bad, just a box </s> with more",
    "__label__no the handle \u{1f600} is ok \u{e000}",
    "ok ok fine I guess...",
];

/// Lines of JSON with one of `n_labels` labels; of fastText's format with one or two of three labels if it is 1.
fn input(n_labels: usize) -> String {
    let mut lines = String::new();
    for n in 0..900 {
        // Frequent labels have low numbers. The last is the most frequent, so their order is not that of names.
        let label = if n_labels == 3 { [2, 1, 2, 0, 1, 2][n % 6] } else { [1, 0, 1][n % 3] };
        // A label within a line of fastText's format would be another label of it.
        let [own, other] = [3 * label + n / 7 % 3, n * 5 % 9].map(|at| TEXTS[at].replace("__label__", ""));
        let (text, rating) = (format!("{own} {} {other}", OTHERS[n % 12]), [1, 3, 5][label]);
        let label = ["x", "y", "z"][label];
        let _ = match n_labels {
            1 if n % 4 == 0 => writeln!(lines, "__label__{label} __label__z {text}"),
            1 => writeln!(lines, "__label__{label} {text}"),
            _ => writeln!(lines, "{}", serde_json::json!({"text": text, "label": label, "rating": rating})),
        };
    }
    lines
}

fn probabilities(line: &Value, order: [&str; 3]) -> Option<Vec<f64>> {
    let of_names = line["probabilities"].as_object()?;
    Some(order.iter().filter_map(|&name| of_names.get(name)?.as_f64()).collect())
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64], most: f64, what: &str) {
    let is_close = |(found, expected): (&f64, &f64)| (found - expected).abs() <= most;
    let is_equal = found.len() == expected.len() && found.iter().zip(expected).all(is_close);
    assert!(is_equal, "{what}: {found:?}, expected {expected:?}");
}

#[test]
fn exports_have_the_probabilities_of_predict() {
    let folder = tempfile::tempdir().unwrap();
    let mut texts: Vec<u8> = TEXTS.iter().flat_map(|text| format!("{text}\n").into_bytes()).collect();
    texts.extend(b"great \xff caf\xc3( b\xedd\n\nqwertz uiop\nthe\n7\n</s> great\n");
    texts.extend(b"\r\n\xef\xbb\xbf\n<br />\n");
    for (at, (n_labels, flags)) in [
        (2, ""),
        (3, "--weights tf-idf --loss squared-hinge"),
        (3, "--rating-field rating --labels 5=z,1=x,3=y"),
        (2, "--buckets 0 --ngrams 2"),
        (2, "--validation-fraction 0.3 --calibrate platt --threshold 0.7"),
        (3, "--model fasttext --words punctuation --buckets 2000 --validation-fraction 0.3 --calibrate temperature"),
        (3, "--words cleaned --l1"),
        (1, "--words spaces"),
        (2, "--model fasttext --words punctuation --buckets 2000 --char-ngrams 3-5"),
        (3, "--model fasttext --words cleaned-punctuation --buckets 2000 --char-ngrams 2-4"),
        (1, "--model fasttext --loss bce --buckets 2000 --char-ngrams 3-5"),
        (3, "--loss hs --words punctuation --buckets 2000"),
    ]
    .into_iter()
    .enumerate()
    {
        let [train, out, exported, file, arrays] =
            ["txt", "ngrams", "export", "onnx", "npz"].map(|name| folder.path().join(format!("{at}.{name}")));
        fs::write(&train, input(n_labels)).unwrap();
        let (format, order) = match n_labels {
            1 => ("--format fasttext", ["x", "y", "z"]),
            _ if flags.contains("--labels") => ("--format json --text-field text", ["z", "x", "y"]),
            _ => ("--format json --text-field text --label-field label", ["x", "y", "z"]),
        };
        let flags: Vec<&str> = flags.split_whitespace().chain(["--seed", "1"]).collect();
        let mut training = program("ngrams");
        training.arg("train").arg("--input").arg(&train).arg("--out").arg(&out);
        training.args(format.split(' ')).args(&flags);
        let (code, told) = ended(training);
        assert_eq!(code, Some(0), "{told}");
        for path in [&exported, &file, &arrays] {
            let (code, told) = ended(command_of("export", &out, &["--out", path.to_str().unwrap()]));
            assert_eq!(code, Some(0), "{told}");
        }
        assert!(fs::read(exported.join("model.npz")).unwrap() == fs::read(&arrays).unwrap());
        let card = fs::read_to_string(exported.join("README.md")).unwrap();
        assert!(
            card.contains("\npipeline_tag: text-classification\n") && card.contains("\n## Settings\n"),
            "{card}"
        );

        // The logarithm of a small probability, which is 1 minus a large one, is less exact.
        let most = if flags.contains(&"--calibrate") { 1e-5 } else { 1e-6 };
        // A score is not calibrated.
        let config: Value =
            serde_json::from_slice(&fs::read(out.join("model/config.json")).unwrap()).unwrap();
        let platt = &config["choice"]["calibration"]["platt"];
        let [slope, intercept] =
            ["slope", "intercept"].map(|name| platt[name].as_f64()).map(Option::unwrap_or_default);
        let slope = if platt.is_null() { 1.0 } else { slope };
        assert_eq!(card.contains("\nCalibration and threshold: "), flags.contains(&"--calibrate"), "{card}");

        let ours = objects(&said(command_of("predict", &out, &["--format", "text", "--top", "3"]), &texts));
        let Some(theirs) = tests::oracle::predicted(&exported, &texts) else { return };
        let Some(onnx) = tests::oracle::onnx(&file, &exported, &texts) else { return };
        let onnx = objects(&onnx);
        assert_eq!([ours.len(), theirs.lines().count(), onnx.len()], [TEXTS.len() + 9; 3], "{flags:?}");
        assert!(ours.iter().filter(|line| line["error"].is_null()).count() >= TEXTS.len(), "{ours:?}");
        for ((ours, theirs), onnx) in ours.iter().zip(theirs.lines()).zip(&onnx) {
            let what = format!("{flags:?}, line {}", ours["line"]);
            let Some(expected) = probabilities(ours, order) else {
                assert_eq!(theirs, "nan", "{what}");
                continue;
            };
            let found: Vec<f64> = theirs.split(' ').map(|number| number.parse().unwrap()).collect();
            let found = match found[..] {
                [score] => {
                    let score = slope * score + intercept;
                    vec![1.0 / (1.0 + score.exp()), 1.0 / (1.0 + (-score).exp())]
                }
                _ => found,
            };
            assert_close(&found, &expected, most, &what);
            let found = onnx["probabilities"].as_array().unwrap().iter().map(|of| of.as_f64().unwrap());
            let mut found: Vec<f64> = found.collect();
            if flags.contains(&"bce") {
                // An output that differs in rounding can be in the next step of the program's logistic function.
                let log_odds = |of: f64| (of / (1.0 - of)).ln();
                for (found, &expected) in found.iter_mut().zip(&expected) {
                    let steps = (log_odds(*found) - log_odds(expected)).abs() * 32.0;
                    *found = if (steps - 1.0).abs() < 0.01 { expected } else { *found };
                }
            }
            assert_close(&found, &expected, most, &what);
        }
    }
}

#[test]
fn an_export_in_a_format_without_such_models_is_refused_by_name() {
    let (folder, train, _) = corpus();
    let [linear, embeddings, bin] =
        ["linear", "embeddings", "model.bin"].map(|name| folder.path().join(name));
    trained(&train, &linear, &[]);
    trained(&train, &embeddings, &["--model", "fasttext", "--buckets", "1000"]);
    let (code, told) = ended(command_of("export", &embeddings, &["--out", bin.to_str().unwrap()]));
    assert_eq!(code, Some(0), "{told}");
    for (model, out, expected_code, expected) in [
        (
            &linear,
            "m.txt",
            64,
            "expected a file with the extension .onnx, .npz, .bin, .ftz, .vec, or a folder",
        ),
        (&linear, "m.bin", 78, "expected a model of embeddings; the fastText program has no linear models"),
        (&bin, "m.onnx", 78, "expected a model folder; of a file of the fastText program, --out is .bin"),
        (&bin, "m", 78, "expected a model folder"),
        (&linear, "model.bin", 64, "model.bin: already exists: found a file"),
    ] {
        let out = folder.path().join(out);
        let before = fs::metadata(&out).is_ok();
        let (code, told) = ended(command_of("export", model, &["--out", out.to_str().unwrap()]));
        assert_eq!(code, Some(expected_code), "{told}");
        assert!(told.contains(expected) && fs::metadata(&out).is_ok() == before, "{told}");
    }
}
