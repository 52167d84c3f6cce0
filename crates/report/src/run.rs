//! A training, as the page describes it.

use batches::{Fold, Part};
use corpus::digest::Digest;
use runs::training::{
    EpochLine, EvaluationRecord, OfManyLabels, PipLine, RankTimes, RunSettings, SimilarityLine, StepsLine,
    TokensLine, TopNgrams,
};
use scoring::{Intervals, Measured, Metrics, RowScore};

use crate::origins::Origins;

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
    /// The evaluated split and its metrics, of any number of labels.
    pub measured: Option<(Part, Measured)>,
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

/// A change of the shares of the ranks.
#[derive(Clone, Debug)]
pub struct DecisionLine {
    pub step: u64,
    /// The first batch with these shares, counted over the whole training.
    pub from_batch: u64,
    /// Fractions of a batch, by rank.
    pub fractions: Vec<f64>,
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

impl Run {
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
        let measured = self.measured.iter().map(|(_, metrics)| *metrics);
        let by_epoch = self.epochs.iter().filter_map(|epoch| epoch.validation.or(epoch.test));
        measured.chain(by_epoch).next().is_some_and(|metrics| metrics.has_classes())
    }

    /// Whether a line of an epoch has the loss. A linear training has one line for all epochs, without a loss; older versions
    /// logged none.
    pub fn has_losses(&self) -> bool {
        self.epochs.iter().any(|epoch| epoch.loss.is_some())
    }

    /// Number of completed epochs.
    pub fn n_epochs(&self) -> u64 {
        let is_linear = self.is_complete && self.is_of_ngrams() && !self.has_losses();
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

    /// The evaluated split and its metrics, if its labels are few.
    pub fn tested(&self) -> Option<(Part, Metrics)> {
        let (part, measured) = self.measured.as_ref()?;
        Some((*part, *measured.few()?))
    }

    /// The hash of each row that is listed as most wrong, if it is known.
    pub fn wrong_hashes(&self) -> Vec<Option<&String>> {
        let rows = self.evaluation.iter().flat_map(|record| &record.wrong).map(|row| row.hash.as_ref());
        let texts = self.of_many_labels().and_then(|of_many| of_many.wrong.as_deref()).unwrap_or_default();
        rows.chain(texts.iter().map(|text| text.hash.as_ref())).collect()
    }

    /// Whether the folder has the wrong predictions, or that there are none.
    pub fn has_wrong(&self) -> bool {
        self.evaluation.is_some() || self.of_many_labels().is_some_and(|of_many| of_many.wrong.is_some())
    }

    /// The metrics of the evaluated rows, of any number of classes.
    pub fn rates(&self) -> Option<Evaluated> {
        if let Some((part, metrics)) = self.tested() {
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

    /// Total duration of the epochs or, of word vectors, of all processes, and whether some of it is missing.
    pub fn training_seconds(&self) -> Option<(f64, bool)> {
        if let Some(last) = self.tokens.last() {
            // The time starts again in each process.
            let lines = self.tokens.windows(2).map(|at| [at[0].elapsed_s, at[1].elapsed_s]);
            let earlier: f64 = lines.filter(|[one, next]| next < one).map(|[one, _]| one).sum();
            return Some((earlier + last.elapsed_s, self.starts > 1));
        }
        let seconds: Vec<f64> = self.epochs.iter().filter_map(|epoch| epoch.seconds).collect();
        let is_partial =
            seconds.len() < self.epochs.len() || self.epochs.iter().any(|epoch| self.is_partial(epoch));
        (!seconds.is_empty()).then(|| (seconds.iter().sum(), is_partial))
    }

    /// Reviews per second, over all epochs or, of other models than n-grams before the first epoch ends, over the progress lines.
    pub fn reviews_per_s(&self) -> Option<f64> {
        let ranks = self.ranks();
        let rows: u64 = ranks.iter().map(|times| times.rows).sum();
        let seconds = ranks.iter().map(|times| times.seconds).fold(0.0, f64::max);
        if seconds > 0.0 {
            return Some(rows as f64 / seconds);
        }
        if let (true, Some((seconds, false)), Some(settings)) =
            (self.is_of_ngrams(), self.training_seconds(), &self.settings)
        {
            return Some(settings.dataset.rows[0].saturating_mul(self.n_epochs()) as f64 / seconds.max(1e-9));
        }
        let n = self.steps.len();
        (n > 0).then(|| self.steps.iter().map(|line| line.reviews_per_s).sum::<f64>() / n as f64)
    }
}
