//! Chooses the calibration and the threshold of a model on the texts of the validation split.

use std::num::NonZeroUsize;

use classifiers::Texts;
use scoring::{Choice, RowScore, Scores, Scoring, calibrate_logits};
use training::Result;
use training::arguments::ChoiceFlags;
use training::outcome::NOT_CALIBRATED;
use training::tell::tell;

use super::Classifier;
use super::evaluate::each_answer;

/// Chooses what the flags require. Texts with another number of known labels than one have no part in it.
pub fn choose(
    flags: &ChoiceFlags,
    classifier: &Classifier,
    validation: Option<&Texts>,
    threads: NonZeroUsize,
) -> Result<Choice> {
    let labels = classifier.labels();
    let (mut outputs, mut places) = (Vec::new(), Vec::new());
    if let Some(texts) = validation.filter(|_| !flags.fitted().is_empty()) {
        each_answer(classifier, texts, threads, |answer| {
            if let (Some(probabilities), &[label]) = (answer.probabilities, &answer.known[..]) {
                outputs.extend(labels.outputs(&probabilities));
                places.push(labels.place(label) as usize);
            }
        })?;
    }
    let n_labels = labels.n_labels();
    if n_labels > 2 {
        let calibration = flags.method().map(|_| calibrate_logits(n_labels, &outputs, &places));
        return Ok(Choice { calibration, threshold: None });
    }
    let score = |(row, (&output, &place)): (u32, (&f64, &usize))| RowScore {
        row,
        label: place as u8,
        score: output as f32,
    };
    let scores = Scores::Label((0..).zip(outputs.iter().zip(&places)).map(score).collect());
    let choice = Choice::of(flags.method(), flags.rule(), Scoring::Logit, &scores);
    if flags.method().is_some() && choice.calibration.is_none() {
        tell(NOT_CALIBRATED);
    }
    Ok(choice)
}
