//! The evaluation of a model that was trained: its lines on standard error, and what the training folder has of it.

use std::num::NonZeroUsize;

use batches::Part;
use classifiers::{Classifier, Texts};
use report::whole;
use runs::training::{
    EvaluationRecord, FORMAT_VERSION, Line, OfManyLabels, OfOneLabel, Tested, TopNgrams, WrongRow, most_wrong,
};
use scoring::{Interval, LargerClass, Measured};
use training::Result;
use training::log::Log;
use training::outcome::{Remedies, not_above_baseline};
use training::tell::tell;
use training::texts_out::TextsOut;

use super::progress::name_of;
use crate::classifier::evaluate::{Evaluation, ShownText, evaluate, shown};
use crate::classifier::quality::Evaluated;

/// The evaluation of a split.
pub struct Record {
    /// The split.
    pub part: Part,
    /// The places of its texts.
    place: String,
    evaluation: Evaluation,
    /// The names of the labels of the model, in their order.
    labels: Vec<String>,
    /// The texts that are predicted wrongly with the most confident scores, if the labels are few.
    wrong: Vec<WrongRow>,
}

impl Record {
    /// Evaluates the texts of a split, and prints warnings.
    pub fn of(
        classifier: &Classifier,
        (part, texts): (Part, &Texts),
        place: String,
        threads: NonZeroUsize,
    ) -> Result<Self> {
        let mut evaluation = evaluate(classifier, texts, threads)?;
        evaluation.warnings(&place, texts.n_texts()).iter().for_each(|warning| tell(warning));
        let evaluated = &mut evaluation.evaluated;
        let few = evaluated.scores.as_ref();
        let mut wrong = few.map_or_else(Vec::new, |(decision, scores)| most_wrong(*decision, scores));
        let indices = wrong.iter().map(|row| row.row).chain(evaluated.wrong.iter().map(|text| text.text));
        let mut shown = shown(texts, indices)?;
        for text in &mut evaluated.wrong {
            let ShownText { labels, hash, words } = shown.get(&text.text).cloned().unwrap_or_default();
            (text.labels, text.hash, text.words) = (labels, hash, words);
        }
        for row in &mut wrong {
            let ShownText { hash, words, .. } = shown.remove(&row.row).unwrap_or_default();
            (row.hash, row.words) = (hash, words.into_iter().map(Some).collect());
        }
        Ok(Self { part, place, evaluation, labels: classifier.labels().names(), wrong })
    }

    /// The metrics.
    pub fn evaluated(&self) -> &Evaluated {
        &self.evaluation.evaluated
    }

    /// Adds what a report shows of texts to the n-grams of the model.
    pub fn add_to(&mut self, top: &mut TopNgrams) {
        let Evaluation { evaluated, digest, .. } = &mut self.evaluation;
        top.tested = Some(Tested {
            part: self.part,
            digest: *digest,
            texts: evaluated.metrics.rows(),
            distinct_texts: evaluated.distinct_texts,
        });
        top.evaluation = of_many(self.part, evaluated);
    }

    /// Writes the scores and the metrics, if the labels are few, and logs the metrics of a test split. `step`: number of
    /// epochs.
    pub fn keep(&mut self, out: &TextsOut, log: &mut Log, step: u64) -> Result<()> {
        let evaluated = &mut self.evaluation.evaluated;
        if self.part == Part::Test {
            log.write(&Line::Test { step, metrics: evaluated.metrics });
        }
        let (Measured::Few(metrics), Some((decision, scores))) = (evaluated.metrics, evaluated.scores.take())
        else {
            return Ok(());
        };
        let record = EvaluationRecord {
            version: FORMAT_VERSION,
            part: self.part,
            dataset: self.place.clone(),
            rows_digest: self.evaluation.digest,
            step,
            scoring: decision.scoring(),
            tokens_max: 0,
            classes: self.labels.clone(),
            calibration: evaluated.choice.calibration,
            threshold: evaluated.choice.threshold,
            metrics,
            intervals: evaluated.intervals,
            probabilities: evaluated.probabilities,
            scores_sha256: String::new(),
            wrong: std::mem::take(&mut self.wrong),
        };
        out.keep_evaluation(record, &scores)
    }

    /// The metrics in some lines.
    pub fn lines(&self) -> Vec<String> {
        lines(self.part, &self.evaluation.evaluated)
    }
}

/// The metrics of a split in some lines.
fn lines(part: Part, evaluated: &Evaluated) -> Vec<String> {
    let name = name_of(part);
    let Evaluated { metrics, intervals, precision_at_1, recall_at_1, classes, .. } = evaluated;
    let interval = intervals.map_or_else(String::new, |of| {
        let Interval(low, high) = of.accuracy;
        format!(" [95 %: {low:.4} to {high:.4}]")
    });
    let rows = whole(metrics.rows());
    let (texts, of_distinct) = match evaluated.distinct_texts {
        distinct if distinct == metrics.rows() => (format!("{rows} {name} texts"), None),
        distinct => {
            let distinct = whole(distinct);
            let accuracy = evaluated.distinct_accuracy;
            (
                format!("{rows} {name} texts, {distinct} of them distinct"),
                Some(format!("accuracy {accuracy:.4} with each distinct text once")),
            )
        }
    };
    match metrics {
        Measured::Few(metrics) => {
            let LargerClass { label, accuracy: baseline, .. } = metrics.larger_class();
            let f1 = if metrics.confusion.n_classes() == 2 { "F1      " } else { "macro F1" };
            let mut lines = vec![
                format!(
                    "accuracy {:.4}{interval} on {texts} (majority-class baseline: {baseline:.4})",
                    metrics.accuracy
                ),
                format!("{f1} {:.4}", metrics.f1),
            ];
            lines.extend(of_distinct);
            let largest = classes.get(usize::from(label)).map_or("", |class| class.name.as_str());
            let remedies = Remedies {
                row: "text",
                weight: "--class-weight",
                not_learned: "train on more texts, longer, or search settings with `ngrams autotune`",
            };
            lines.extend(not_above_baseline(metrics, &format!("label {largest}"), &remedies));
            lines
        }
        Measured::Many { f1, accuracy, .. } => {
            let baseline = evaluated.largest.1;
            let first = match intervals {
                Some(_) => format!(
                    "accuracy {accuracy:.4}{interval} on {texts} (majority-class baseline: {baseline:.4})"
                ),
                // Texts have several labels.
                None => {
                    format!("precision at 1 {precision_at_1:.4}, recall at 1 {recall_at_1:.4} on {texts}")
                }
            };
            [first, format!("macro F1 {f1:.4}")].into_iter().chain(of_distinct).collect()
        }
    }
}

/// The evaluation for the report, if there are no scores.
fn of_many(part: Part, evaluated: &mut Evaluated) -> Option<OfManyLabels> {
    let Evaluated { metrics, precision_at_1, recall_at_1, intervals, largest, .. } = evaluated;
    let Measured::Many { f1, rows, loss, precision, recall, .. } = metrics else { return None };
    let of_one_label = intervals.map(|intervals| OfOneLabel {
        loss: *loss,
        precision: *precision,
        recall: *recall,
        largest: largest.0.clone(),
        baseline: largest.1,
        intervals,
    });
    Some(OfManyLabels {
        part,
        texts: *rows,
        precision_at_1: *precision_at_1,
        recall_at_1: *recall_at_1,
        macro_f1: *f1,
        of_one_label,
        wrong: Some(std::mem::take(&mut evaluated.wrong)),
    })
}
