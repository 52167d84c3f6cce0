//! What the exports of models share: the format that the name of `--out` selects, and the card of a folder for the
//! [Hugging Face Hub](https://huggingface.co/docs/hub/model-cards).

use std::fmt::Write;
use std::path::Path;

use program::exit::{Exit, Failed};
use program::location::Location;
use runs::training::{Line, METRICS, RunSettings, SETTINGS, read_json};
use scoring::{Choice, Measured, Scoring};

use crate::error::Result;
use crate::outcome::chosen;
use crate::print::names_of_means;

/// The name of the card in an exported folder.
pub const CARD: &str = "README.md";

/// What an export writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// A folder with `predict.py`.
    Folder,
    /// A file of ONNX.
    Onnx,
    /// Arrays of NumPy.
    Npz,
    /// A model of the fastText program.
    Bin,
    /// The same with quantised matrices.
    Ftz,
    /// The vectors of words, as text.
    Vec,
}

impl ExportFormat {
    /// The format that the extension of `--out` selects, which is one of these besides a folder.
    pub fn of(out: &Location, files: &[Self]) -> Result<Self> {
        let name = match out {
            Location::Local(path) => path.as_path(),
            Location::S3(url) => Path::new(url.file_name()),
        };
        let extension = name.extension().map(|extension| extension.to_string_lossy());
        let extension = extension.as_deref();
        // A folder can have the name of a version or of a date.
        let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        if extension.is_none_or(|name| matches!(name, "export" | "model") || is_number(name)) {
            return Ok(Self::Folder);
        }
        let found = files.iter().find(|format| format.extension() == extension);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = files.iter().filter_map(|format| format.extension()).collect();
            let message = format!(
                "--out is {out}, expected a file with the extension .{}, or a folder with .export, .model or no extension",
                known.join(", .")
            );
            Failed::new(Exit::Usage, message).into()
        })
    }

    fn extension(self) -> Option<&'static str> {
        match self {
            Self::Folder => None,
            Self::Onnx => Some("onnx"),
            Self::Npz => Some("npz"),
            Self::Bin => Some("bin"),
            Self::Ftz => Some("ftz"),
            Self::Vec => Some("vec"),
        }
    }
}

/// What a card says of a model besides its training.
#[derive(Clone, Copy, Debug)]
pub struct CardOf<'a> {
    /// The name of the model.
    pub name: &'a str,
    /// The kind of the model: a noun and its article.
    pub kind: &'a str,
    /// The tag of the kind.
    pub tag: &'a str,
    /// The Python packages that `predict.py` requires.
    pub requires: &'a str,
    /// The names of the labels.
    pub labels: &'a [&'a str],
    /// The calibration and the threshold.
    pub choice: Choice,
    /// The meaning of the score of two labels.
    pub scoring: Scoring,
}

/// A model card. The training folder has the metrics and the settings; a model folder that is not in one, such as one from S3,
/// has none.
pub fn card(model: &Path, of: CardOf<'_>) -> String {
    let CardOf { name, kind, tag, requires, labels, choice, scoring } = of;
    let training = model.parent().unwrap_or(model);
    let settings: Option<RunSettings> = read_json(&training.join(SETTINGS));
    let metrics = tested(&training.join(METRICS)).map(|metrics| named(&metrics)).unwrap_or_default();
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut card = format!(
        "---\nlibrary_name: sentimill\npipeline_tag: text-classification\ntags:\n- text-classification\n- {tag}\n"
    );
    let mut add = |text: std::fmt::Arguments<'_>| card.write_fmt(text).expect("a string grows");
    if let Some(settings) = settings.as_ref().filter(|_| !metrics.is_empty()) {
        let paths: Vec<&str> = match (&settings.test, settings.recipe["input"].as_array()) {
            (Some(test), _) => vec![&test.path],
            // The path of several inputs has all of them.
            (None, Some(inputs)) => inputs.iter().filter_map(|input| input.as_str()).collect(),
            (None, None) => vec![&settings.dataset.path],
        };
        let names: Vec<&str> = paths.iter().filter_map(|path| path.rsplit('/').next()).collect();
        let dataset = quoted(&names.join(", "));
        let results = format!(
            "  - task:\n      type: text-classification\n    dataset:\n      name: {dataset}\n      type: {dataset}\n"
        );
        add(format_args!("model-index:\n- name: {}\n  results:\n{results}    metrics:\n", quoted(name)));
        metrics.iter().for_each(|(metric, value)| {
            // The metrics of the Hub have one word.
            let kind = metric.rsplit(' ').next().unwrap_or_default().to_lowercase();
            add(format_args!("    - type: {kind}\n      name: {metric}\n      value: {value:.4}\n"));
        });
    }
    let version = env!("CARGO_PKG_VERSION");
    add(format_args!(
        "---\n\n# {name}\n\n{kind}, made with sentimill {version}. Labels: {}.\n",
        labels.join(", ")
    ));
    if let Some(chosen) = chosen(choice, scoring) {
        let of_score = match labels {
            [_, second] => format!(
                " `predict.py` prints scores, which are not calibrated: one above {:.4} is a prediction of {second}.",
                choice.decision(scoring).threshold()
            ),
            _ => String::new(),
        };
        add(format_args!("\nCalibration and threshold: {chosen}.{of_score}\n"));
    }
    add(format_args!(
        "\n## Use\n\n`predict.py` requires {requires}. Its first lines describe its input and output.\n\n"
    ));
    add(format_args!("```\necho 'Works great, I love it!' | python predict.py\n```\n"));
    if !metrics.is_empty() {
        add(format_args!("\n## Metrics\n\nOn held-out texts:\n\n| metric | value |\n|---|---|\n"));
        metrics.iter().for_each(|(metric, value)| add(format_args!("| {metric} | {value:.4} |\n")));
    }
    if let Some(mut settings) = settings {
        // Paths of the machine of the training.
        if let Some(recipe) = settings.recipe.as_object_mut() {
            recipe.remove("input");
        }
        add(format_args!("\n## Settings\n\n```json\n{:#}\n```\n", settings.recipe));
    }
    card
}

/// The metrics of the last test of a training, if there was one.
fn tested(events: &Path) -> Option<Measured> {
    let lines = program::bounded::read(events, EVENTS_BYTES_MAX).ok()?;
    let lines = lines.rsplit(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    lines
        .into_iter()
        .find_map(|line| if let Line::Test { metrics, .. } = line { Some(metrics) } else { None })
}

/// Some 500 bytes per step that is logged.
const EVENTS_BYTES_MAX: u64 = 1 << 30;

fn named(metrics: &Measured) -> Vec<(&'static str, f64)> {
    let [f1, precision, recall] = names_of_means(if metrics.has_classes() { 3 } else { 2 });
    let names =
        [("accuracy", "accuracy"), ("f1", f1), ("precision", precision), ("recall", recall), ("auc", "AUC")];
    let shown = |(key, value): (&str, Option<f64>)| {
        let (_, name) = names.into_iter().find(|(of, _)| *of == key)?;
        Some((name, value?))
    };
    metrics.named().into_iter().filter_map(shown).collect()
}
