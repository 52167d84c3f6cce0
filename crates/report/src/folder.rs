//! Reads one training from its folder.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use batches::Part;
use durable::sha256;
use program::bounded;
use runs::training::{
    CHECKPOINTS, EVALUATION, EvaluationRecord, FORMAT_VERSION, Line, METRICS, MODEL, NGRAMS, RunSettings,
    SCORES, SETTINGS, read_scores,
};
use runs::{Error, Result};
use serde::de::DeserializeOwned;

use crate::numbers::counted;
use crate::run::{DecisionLine, Run};

/// Maximum length of a line. Even with thousands of ranks, lines are shorter.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// Maximum size of a document. Stop words, a data card and fifty reviews are much smaller.
const DOCUMENT_BYTES_MAX: u64 = 256 << 20;

impl Run {
    /// Reads a training folder. Errors: the folder is not a training folder, or a newer program wrote it.
    pub fn read(folder: &Path) -> Result<Self> {
        let name = folder.file_name().map_or_else(|| folder.to_string_lossy(), |name| name.to_string_lossy());
        let mut run = Self {
            name: name.into_owned(),
            path: folder.to_string_lossy().into_owned(),
            is_complete: folder.join(MODEL).is_dir(),
            ..Self::default()
        };
        if !folder.join(METRICS).is_file() && !folder.join(SETTINGS).is_file() {
            let expected = "a training folder of trainer, ngrams or vectors";
            return Err(Error::unusable(folder, &format!("no {METRICS}"), expected));
        }
        run.settings = run.document(folder, SETTINGS, "the settings and the data card")?;
        run.fold = run.settings.as_ref().and_then(RunSettings::fold);
        run.read_lines(&folder.join(METRICS))?;
        run.read_evaluation(folder)?;
        run.ngrams = run.document(folder, NGRAMS, "the n-grams with the largest weights")?;
        run.note_what_is_missing(folder);
        Ok(run)
    }

    fn document<T: DeserializeOwned>(&mut self, folder: &Path, name: &str, what: &str) -> Result<Option<T>> {
        let path = folder.join(name);
        let Ok(file) = File::open(&path) else { return Ok(None) };
        let read = |file: File| -> std::io::Result<serde_json::Value> {
            Ok(serde_json::from_reader(BufReader::new(file.take(DOCUMENT_BYTES_MAX)))?)
        };
        let value = match read(file) {
            Ok(value) => value,
            Err(error) => {
                self.notes.push(format!("{name} cannot be read, so {what} are missing: {error}."));
                return Ok(None);
            }
        };
        check_version(&path, value.get("version").and_then(serde_json::Value::as_u64))?;
        match serde_json::from_value(value) {
            Ok(document) => Ok(Some(document)),
            Err(error) => {
                self.notes.push(format!(
                    "{name} was changed after it was written, so {what} are missing: {error}."
                ));
                Ok(None)
            }
        }
    }

    fn read_lines(&mut self, path: &Path) -> Result<()> {
        let Ok(file) = File::open(path) else { return Ok(()) };
        let mut file = BufReader::new(file);
        let (mut line, mut n_unread) = (Vec::new(), 0usize);
        loop {
            line.clear();
            let n = file.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            match n.map_err(|source| Error::Io { path: path.to_owned(), source })? {
                0 => break,
                _ if line.iter().all(u8::is_ascii_whitespace) => {}
                _ => match serde_json::from_slice::<Line>(&line) {
                    Ok(Line::Start { version, .. }) if version > FORMAT_VERSION => {
                        check_version(path, Some(u64::from(version)))?;
                    }
                    Ok(line) => self.take(line),
                    Err(_) => n_unread += 1,
                },
            }
        }
        if n_unread > 0 {
            let lines = counted(n_unread as u64, "line");
            self.notes.push(format!(
                "{lines} of {METRICS} cannot be read: a killed training leaves half a line, and other versions of this program \
                 write other lines."
            ));
        }
        Ok(())
    }

    /// Applies a line. Steps that it repeats replace those of an interrupted process.
    fn take(&mut self, line: Line) {
        match line {
            Line::Start { step, .. } => {
                self.starts += 1;
                self.forget_after(step);
            }
            Line::Steps(line) => {
                if self.steps.last().is_some_and(|last| last.step >= line.step) {
                    self.forget_after(line.step.saturating_sub(1));
                }
                self.last_step = line.step;
                self.steps.push(line);
            }
            Line::Epoch(line) => {
                self.epochs.retain(|earlier| earlier.epoch < line.epoch);
                self.last_step = line.step;
                self.epochs.push(line);
            }
            Line::Tokens(line) => {
                self.last_step = line.step;
                self.tokens.push(line);
            }
            Line::Similarity(line) => self.similarities.push(line),
            Line::HeldOut { step, loss } => self.held_out.push((step, loss)),
            Line::Pip(line) => self.pips.push(line),
            Line::Shares { step, decision } => {
                let (from_batch, fractions) = (decision.from_batch, decision.fractions().collect());
                // A resumed training writes the decisions of its checkpoint again.
                self.decisions.retain(|earlier| earlier.from_batch < from_batch);
                self.decisions.push(DecisionLine { step, from_batch, fractions });
            }
            Line::Lost { step, ranks, world_size, rows, .. } => {
                self.uncount_start();
                self.notes.push(format!(
                    "Lost after step {step}: {}. Remaining: {}. Rows trained again: {rows}.",
                    named(&ranks),
                    counted(world_size as u64, "rank")
                ));
            }
            Line::Joined { step, ranks, world_size, .. } => {
                self.uncount_start();
                let now = counted(world_size as u64, "rank");
                self.notes.push(format!("Joined after step {step}: {}. Now: {now}.", named(&ranks)));
            }
            Line::Test { metrics, .. } => self.measured = Some((Part::Test, metrics)),
        }
    }

    /// The last start was that of a group of ranks without a lost one, or with one that joined. No process started.
    fn uncount_start(&mut self) {
        self.starts = self.starts.saturating_sub(1);
    }

    fn forget_after(&mut self, step: u64) {
        self.steps.retain(|line| line.step <= step);
        self.decisions.retain(|line| line.step <= step);
        self.epochs.retain(|line| line.step <= step);
        self.tokens.retain(|line| line.step <= step);
        self.similarities.retain(|line| line.step <= step);
        self.held_out.retain(|&(n_tokens, _)| n_tokens <= step);
        self.pips.retain(|line| line.step <= step);
        self.last_step = step;
        self.measured = None;
    }

    fn read_evaluation(&mut self, folder: &Path) -> Result<()> {
        let what = "calibration, ROC curve and the most wrong reviews";
        let Some(record) = self.document::<EvaluationRecord>(folder, EVALUATION, what)? else {
            return Ok(());
        };
        if record.step < self.last_step {
            let step = record.step;
            self.notes.push(format!("{EVALUATION} is from step {step}; the training has continued since."));
            return Ok(());
        }
        self.measured = Some((record.part, record.metrics.into()));
        let path = folder.join(SCORES);
        if !record.scoring.is_of_label() {
            // There is no ROC curve and no calibration of three or more classes.
        } else if !path.exists() {
            self.notes
                .push(format!("{SCORES} is missing, so there is no ROC curve and no calibration plot."));
        } else if sha256::of_file(&path).is_ok_and(|found| found == record.scores_sha256) {
            match read_scores(&path, record.metrics.rows) {
                Ok(scores) => self.scores = Some(scores),
                Err(error) => self.notes.push(format!("No ROC curve and no calibration: {error}.")),
            }
        } else {
            let note = format!(
                "{SCORES} was changed after it was written, so there is no ROC curve and no calibration plot."
            );
            self.notes.push(note);
        }
        self.evaluation = Some(record);
        Ok(())
    }

    fn note_what_is_missing(&mut self, folder: &Path) {
        if !self.is_complete {
            let newest = bounded::read_text(&folder.join(CHECKPOINTS).join("latest"), LINE_BYTES_MAX).ok();
            let next = match newest {
                Some(name) => format!("its newest checkpoint is {}; resume with --resume", name.trim()),
                None => "it has no checkpoint yet".to_owned(),
            };
            self.notes.push(format!(
                "There is no model: the training is running, or was interrupted after {} {}; {next}.",
                if self.is_of_vectors() { "token" } else { "step" },
                self.last_step
            ));
        } else if self.measured.is_none() && self.of_many_labels().is_none() && !self.is_of_vectors() {
            self.notes.push(
                match (self.is_of_words(), self.is_of_ngrams()) {
                    (true, _) => "A pretraining has no test split: its quality shows in the classifier that starts from it.",
                    (false, true) => {
                        "No test texts were held out (--test or --test-fraction), so the quality of the model is unknown; ngrams evaluate \
                         computes it."
                    }
                    (false, false) => {
                        "There is no test split (--test-fraction 0) and no validation split, so the quality of the model \
                         is unknown."
                    }
                }
                .to_owned(),
            );
        }
        if let Some((Part::Validation, _)) = self.measured {
            self.notes
                .push("There is no test split: the metrics are those of the validation split.".to_owned());
        }
        if self.settings.is_none() && !self.notes.iter().any(|note| note.starts_with(SETTINGS)) {
            self.notes.push(format!(
                "There is no {SETTINGS}: an older version of sentimill wrote the folder, so settings and data card are \
                 missing."
            ));
        }
        if self.is_complete && self.evaluation.is_none() && self.measured.is_some() && !self.is_of_ngrams() {
            self.notes
                .push(format!("There is no {EVALUATION}: no ROC curve, no calibration and no reviews."));
        }
        if self.starts > 1 {
            self.notes.push(format!(
                "The training was started or resumed {} times; for {} that were repeated, the last results are shown.",
                self.starts,
                if self.is_of_vectors() { "tokens" } else { "steps" }
            ));
        }
        match self.epochs.len() {
            0 if self.is_of_vectors() || self.is_complete && self.is_of_ngrams() => {}
            0 => self.notes.push("No epoch is finished.".to_owned()),
            _ if !self.is_of_words() && !self.is_of_ngrams() && self.epochs.iter().all(|epoch| epoch.validation.is_none()) => self.notes.push(
                "There is no validation split, so accuracy and F1 are computed at the end only; --validation-fraction 0.1 \
                 computes them after each epoch."
                    .to_owned(),
            ),
            _ => {}
        }
    }
}

fn check_version(path: &Path, version: Option<u64>) -> Result<()> {
    match version {
        Some(found) if found > u64::from(FORMAT_VERSION) => {
            let expected = format!("{FORMAT_VERSION} or less; a newer sentimill reads it");
            Err(Error::unusable(path, &format!("format version {found}"), &expected))
        }
        _ => Ok(()),
    }
}

/// Ranks in words.
fn named(ranks: &[usize]) -> String {
    format!("rank {}", ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
}
