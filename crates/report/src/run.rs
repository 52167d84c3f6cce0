//! Reads one training from its folder.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use dataset::sha256;
use program::bounded;
use serde::de::DeserializeOwned;

use crate::numbers::counted;
use crate::origins::Origins;
use batches::{Fold, Part};
use corpus::digest::Digest;
use runs::training::{
    CHECKPOINTS, EVALUATION, EvaluationRecord, FORMAT_VERSION, Line, METRICS, MODEL, NGRAMS, RunSettings,
    SCORES, SETTINGS, TopNgrams, read_scores,
};
use runs::training::{OfManyLabels, RankTimes, ShareTimes};
use runs::{Error, Result};
use scoring::RowScore;
use scoring::{Intervals, Metrics};

/// Maximum length of a line. Even with thousands of ranks, lines are shorter.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// Maximum size of a document. Stop words, a data card and fifty reviews are much smaller.
const DOCUMENT_BYTES_MAX: u64 = 256 << 20;

/// A training.
#[derive(Debug, Default)]
pub struct Run {
    /// Name on the page.
    pub name: String,
    /// Its folder.
    pub path: String,
    /// The settings; `None` for folders of an older version.
    pub settings: Option<RunSettings>,
    /// The fold, if the training is one of a cross-validation.
    pub fold: Option<Fold>,
    /// Number of times that a process started or resumed the training.
    pub starts: usize,
    /// Progress lines, in the order of steps.
    pub steps: Vec<StepsLine>,
    /// Changes of the shares of the ranks, in the order of steps.
    pub decisions: Vec<DecisionLine>,
    /// Epochs, in order.
    pub epochs: Vec<EpochLine>,
    /// The last step.
    pub last_step: u64,
    /// The evaluated split and its metrics.
    pub tested: Option<(Part, Metrics)>,
    /// Further results of the evaluation.
    pub evaluation: Option<EvaluationRecord>,
    /// The n-grams with the largest weights, of an n-gram model.
    pub ngrams: Option<TopNgrams>,
    /// Progress lines of a training of word vectors, in the order of tokens.
    pub tokens: Vec<TokensLine>,
    /// Comparisons with files of word similarity, in the order of tokens.
    pub similarities: Vec<SimilarityLine>,
    /// Numbers of tokens, and losses of held-out sentences.
    pub held_out: Vec<(u64, f64)>,
    /// Comparisons with other vectors, in the order of tokens.
    pub pips: Vec<PipLine>,
    /// Words of a model of word vectors. The caller reads them from the model.
    pub words: Option<Words>,
    /// Where the reviews of the most wrong rows come from, if that is known.
    pub origins: Origins,
    /// Scores of the evaluation.
    pub scores: Option<Vec<RowScore>>,
    /// Whether the model exists.
    pub is_complete: bool,
    /// What the page cannot show, and why.
    pub notes: Vec<String>,
}

/// The metrics of evaluated rows, of any number of classes. F1, precision and recall of three or more are means.
#[derive(Clone, Debug)]
pub struct Evaluated {
    pub part: Part,
    pub rows: u64,
    pub accuracy: f64,
    pub f1: f64,
    pub precision: f64,
    pub recall: f64,
    pub auc: Option<f64>,
    pub loss: f64,
    /// The most frequent class, and the accuracy of always answering it.
    pub largest: String,
    pub baseline: f64,
    pub intervals: Option<Intervals>,
}

/// A progress line.
#[derive(Clone, Debug)]
pub struct StepsLine {
    pub step: u64,
    pub epoch: u32,
    pub loss: f64,
    pub rate: f64,
    pub reviews_per_s: f64,
    pub waited_share: f64,
    /// By rank, if there are several.
    pub shares: Vec<ShareTimes>,
}

/// A change of the shares of the ranks.
#[derive(Clone, Debug)]
pub struct DecisionLine {
    pub step: u64,
    /// The first batch with these shares, counted over the whole training.
    pub from_batch: u64,
    /// Fractions of a batch, by rank.
    pub fractions: Vec<f64>,
}

/// A progress line of a training of word vectors.
#[derive(Clone, Debug)]
pub struct TokensLine {
    pub n_tokens: u64,
    pub loss: Option<f64>,
    pub tokens_per_s: f64,
    pub skipped_lines: u64,
}

/// A comparison with other vectors, by the PIP loss of vectors of length 1.
#[derive(Clone, Debug)]
pub struct PipLine {
    pub n_tokens: u64,
    pub reference: String,
    pub words: u64,
    pub loss: f64,
    pub random: f64,
}

/// A comparison with a file of word similarity.
#[derive(Clone, Debug)]
pub struct SimilarityLine {
    pub n_tokens: u64,
    pub file: String,
    pub spearman: Option<f64>,
    pub pairs: u64,
    pub found: u64,
}

/// Words of a model of word vectors, as the page shows them.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Words with their neighbours and the cosines.
    pub neighbours: Vec<(String, Vec<(String, f32)>)>,
    /// Words with their places on the map.
    pub map: Vec<(String, [f32; 2])>,
    /// Number of words in the vocabulary.
    pub n_words: u64,
    /// Dimension of the vectors.
    pub dim: u64,
}

/// An epoch.
#[derive(Clone, Debug)]
pub struct EpochLine {
    pub epoch: u32,
    pub step: u64,
    pub loss: f64,
    pub seconds: Option<f64>,
    pub from_step: Option<u64>,
    pub validation: Option<Metrics>,
    pub test: Option<Metrics>,
    pub ranks: Vec<RankTimes>,
}

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
            return Err(Error::Report {
                path: folder.to_owned(),
                found: format!("no {METRICS}"),
                expected: "a training folder of trainer, ngrams or vectors".to_owned(),
            });
        }
        run.settings = run.document(folder, SETTINGS, "the settings and the data card")?;
        run.fold = run.settings.as_ref().and_then(RunSettings::fold);
        run.read_lines(&folder.join(METRICS))?;
        run.read_evaluation(folder)?;
        run.ngrams = run.document(folder, NGRAMS, "the n-grams with the largest weights")?;
        run.note_what_is_missing(folder);
        Ok(run)
    }

    /// Whether another run was evaluated on the same rows. `None` if that is not known: an older version trained one of
    /// them, and they are not of one dataset.
    pub fn has_rows_of(&self, other: &Self) -> Option<bool> {
        let n_rows = |run: &Self| run.rates().map(|of| of.rows);
        if let (Some(digest), Some(of_other)) = (self.rows_digest(), other.rows_digest()) {
            return Some(digest == of_other);
        }
        let place = |run: &Self| {
            let record = run.evaluation.as_ref()?;
            Some((record.dataset.clone(), record.part, run.fold))
        };
        match n_rows(self) == n_rows(other) {
            true => place(self).filter(|of_self| Some(of_self) == place(other).as_ref()).map(|_| true),
            false => Some(false),
        }
    }

    /// The digest of the evaluated texts and their labels.
    fn rows_digest(&self) -> Option<Digest> {
        let of_ngrams = self.ngrams.as_ref().and_then(|top| top.tested?.digest);
        self.evaluation.as_ref().and_then(|record| record.rows_digest).or(of_ngrams)
    }

    /// Number of distinct texts among the evaluated ones, of a model of n-grams.
    pub fn distinct_texts(&self) -> Option<u64> {
        Some(self.ngrams.as_ref()?.tested?.distinct_texts)
    }

    /// The step in which a batch is trained on; batches are counted over the whole training.
    pub fn step_of_batch(&self, batch: u64) -> u64 {
        let accumulated = self.settings.as_ref().and_then(|settings| settings.recipe["accumulate"].as_u64());
        batch / accumulated.unwrap_or(1).max(1)
    }

    /// Whether the model predicts next words. Then no row is right or wrong.
    pub fn is_of_words(&self) -> bool {
        self.settings.as_ref().is_some_and(RunSettings::is_of_words)
    }

    /// Whether the model has word vectors and nothing else.
    pub fn is_of_vectors(&self) -> bool {
        self.settings.as_ref().is_some_and(RunSettings::is_of_vectors)
    }

    /// Whether the model is one of n-grams.
    pub fn is_of_ngrams(&self) -> bool {
        self.settings.as_ref().is_some_and(RunSettings::is_of_ngrams)
    }

    /// The names of the classes of its dataset, for this number of classes.
    pub fn class_names(&self, n_classes: usize) -> Vec<String> {
        let of_record = self.evaluation.as_ref().map(|record| record.classes.clone());
        let preparation = self.settings.as_ref().and_then(|settings| settings.preparation.as_ref());
        let of_settings = preparation.map(|preparation| preparation.labels.given_names());
        // Texts with labels have them in the description of the input.
        let classes = self.settings.as_ref().map(|settings| &settings.dataset.classes);
        let of_input = classes.map(|classes| classes.iter().map(|(name, _)| name.clone()).collect());
        match [of_record, of_settings, of_input].into_iter().flatten().find(|names| names.len() == n_classes)
        {
            Some(names) => names,
            None if n_classes == 2 => ["negative", "positive"].map(str::to_owned).into(),
            None => (0..n_classes).map(|class| format!("class {class}")).collect(),
        }
    }

    /// Whether its metrics are those of three or more classes.
    pub fn has_classes(&self) -> bool {
        if self.of_many_labels().is_some() {
            return true;
        }
        let tested = self.tested.iter().map(|(_, metrics)| metrics);
        let validated = self.epochs.iter().filter_map(|epoch| epoch.validation.as_ref());
        tested.chain(validated).next().is_some_and(|metrics| metrics.confusion.n_classes() > 2)
    }

    /// Number of completed epochs. The log of a linear model has none of them.
    pub fn n_epochs(&self) -> u64 {
        let is_linear = self.is_complete && self.is_of_ngrams() && self.epochs.is_empty();
        let planned = self.settings.as_ref().filter(|_| is_linear).and_then(RunSettings::epochs);
        planned.unwrap_or(self.epochs.len() as u64)
    }

    /// Number of planned steps, if known.
    pub fn steps_planned(&self) -> Option<u64> {
        let settings = self.settings.as_ref()?;
        settings.epochs()?.checked_mul(settings.steps_of_epoch)
    }

    /// Steps per epoch, from the settings or from the completed epochs.
    pub fn steps_of_epoch(&self) -> Option<u64> {
        let told = self.settings.as_ref().map(|settings| settings.steps_of_epoch);
        let shown = self.epochs.first().map(|first| first.step / u64::from(first.epoch.max(1)));
        told.or(shown).filter(|&steps| steps > 0)
    }

    /// Whether another process started the epoch, so that its duration covers only the rest.
    pub fn is_partial(&self, epoch: &EpochLine) -> bool {
        match (epoch.from_step, self.steps_of_epoch()) {
            (Some(from), Some(steps)) => {
                from > u64::from(epoch.epoch.saturating_sub(1)).saturating_mul(steps)
            }
            _ => false,
        }
    }

    /// Its evaluation, if it has the metrics of many labels.
    pub fn of_many_labels(&self) -> Option<&OfManyLabels> {
        self.ngrams.as_ref().and_then(|top| top.evaluation.as_ref())
    }

    /// The metrics of the evaluated rows, of any number of classes.
    pub fn rates(&self) -> Option<Evaluated> {
        if let Some((part, metrics)) = self.tested {
            let larger = metrics.larger_class();
            let names = self.class_names(metrics.confusion.n_classes());
            return Some(Evaluated {
                part,
                rows: metrics.rows,
                accuracy: metrics.accuracy,
                f1: metrics.f1,
                precision: metrics.precision,
                recall: metrics.recall,
                auc: metrics.auc,
                loss: metrics.loss,
                largest: names.get(usize::from(larger.label)).cloned().unwrap_or_default(),
                baseline: larger.accuracy,
                intervals: self.evaluation.as_ref().and_then(|record| record.intervals),
            });
        }
        let of_many = self.of_many_labels()?;
        let of = of_many.of_one_label.clone()?;
        Some(Evaluated {
            part: of_many.part,
            rows: of_many.texts,
            accuracy: of_many.precision_at_1,
            f1: of_many.macro_f1,
            precision: of.precision,
            recall: of.recall,
            auc: None,
            loss: of.loss,
            largest: of.largest,
            baseline: of.baseline,
            intervals: Some(of.intervals),
        })
    }

    /// Times of each rank, summed over all epochs.
    pub fn ranks(&self) -> Vec<RankTimes> {
        let mut sums: Vec<RankTimes> = Vec::new();
        for times in self.epochs.iter().flat_map(|epoch| &epoch.ranks) {
            match sums.iter_mut().find(|sum| sum.rank == times.rank) {
                None => sums.push(times.clone()),
                Some(sum) => {
                    sum.rows = sum.rows.saturating_add(times.rows);
                    sum.seconds += times.seconds;
                    sum.waited_for_batches_s += times.waited_for_batches_s;
                    sum.waited_for_ranks_s =
                        sum.waited_for_ranks_s.zip(times.waited_for_ranks_s).map(|(a, b)| a + b);
                    sum.profile = sum.profile.zip(times.profile).map(|(a, b)| a + b);
                }
            }
        }
        sums.sort_by_key(|times| times.rank);
        sums
    }

    /// Total duration of the epochs, and whether some of it is missing.
    pub fn training_seconds(&self) -> Option<(f64, bool)> {
        let seconds: Vec<f64> = self.epochs.iter().filter_map(|epoch| epoch.seconds).collect();
        let is_partial =
            seconds.len() < self.epochs.len() || self.epochs.iter().any(|epoch| self.is_partial(epoch));
        (!seconds.is_empty()).then(|| (seconds.iter().sum(), is_partial))
    }

    /// Reviews per second, over all epochs or, before the first epoch ends, over the progress lines.
    pub fn reviews_per_s(&self) -> Option<f64> {
        let ranks = self.ranks();
        let rows: u64 = ranks.iter().map(|times| times.rows).sum();
        let seconds = ranks.iter().map(|times| times.seconds).fold(0.0, f64::max);
        if seconds > 0.0 {
            return Some(rows as f64 / seconds);
        }
        let n = self.steps.len();
        (n > 0).then(|| self.steps.iter().map(|line| line.reviews_per_s).sum::<f64>() / n as f64)
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
            Line::Steps { epoch, step, loss, rate, reviews_per_s, waited_share, shares, .. } => {
                if self.steps.last().is_some_and(|last| last.step >= step) {
                    self.forget_after(step.saturating_sub(1));
                }
                self.steps.push(StepsLine { step, epoch, loss, rate, reviews_per_s, waited_share, shares });
                self.last_step = step;
            }
            Line::Epoch { epoch, step, loss, seconds, from_step, validation, test, ranks } => {
                self.epochs.retain(|earlier| earlier.epoch < epoch);
                self.epochs.push(EpochLine {
                    epoch,
                    step,
                    loss,
                    seconds,
                    from_step,
                    validation,
                    test,
                    ranks,
                });
                self.last_step = step;
            }
            Line::Tokens { step, loss, tokens_per_s, skipped_lines, .. } => {
                self.tokens.push(TokensLine { n_tokens: step, loss, tokens_per_s, skipped_lines });
                self.last_step = step;
            }
            Line::Similarity { step, file, spearman, pairs, found } => {
                self.similarities.push(SimilarityLine { n_tokens: step, file, spearman, pairs, found });
            }
            Line::HeldOut { step, loss } => self.held_out.push((step, loss)),
            Line::Pip { step, reference, words, loss, random } => {
                self.pips.push(PipLine { n_tokens: step, reference, words, loss, random });
            }
            Line::Shares { step, decision } => {
                let (from_batch, fractions) = (decision.from_batch, decision.fractions().collect());
                // A resumed training writes the decisions of its checkpoint again.
                self.decisions.retain(|earlier| earlier.from_batch < from_batch);
                self.decisions.push(DecisionLine { step, from_batch, fractions });
            }
            Line::Test { metrics, .. } => self.tested = Some((Part::Test, metrics)),
        }
    }

    fn forget_after(&mut self, step: u64) {
        self.steps.retain(|line| line.step <= step);
        self.decisions.retain(|line| line.step <= step);
        self.epochs.retain(|line| line.step <= step);
        self.tokens.retain(|line| line.n_tokens <= step);
        self.similarities.retain(|line| line.n_tokens <= step);
        self.held_out.retain(|&(n_tokens, _)| n_tokens <= step);
        self.pips.retain(|line| line.n_tokens <= step);
        self.last_step = step;
        self.tested = None;
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
        self.tested = Some((record.part, record.metrics));
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
        } else if self.tested.is_none() && self.of_many_labels().is_none() && !self.is_of_vectors() {
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
        if let Some((Part::Validation, _)) = self.tested {
            self.notes
                .push("There is no test split: the metrics are those of the validation split.".to_owned());
        }
        if self.settings.is_none() && !self.notes.iter().any(|note| note.starts_with(SETTINGS)) {
            self.notes.push(format!(
                "There is no {SETTINGS}: an older version of sentimill wrote the folder, so settings and data card are \
                 missing."
            ));
        }
        if self.is_complete && self.evaluation.is_none() && self.tested.is_some() && !self.is_of_ngrams() {
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
        Some(found) if found > u64::from(FORMAT_VERSION) => Err(Error::Report {
            path: path.to_owned(),
            found: format!("format version {found}"),
            expected: format!("{FORMAT_VERSION} or less; a newer sentimill reads it"),
        }),
        _ => Ok(()),
    }
}
