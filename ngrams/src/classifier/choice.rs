//! Chooses the calibration and the threshold of a model on validation texts.

use std::num::NonZeroUsize;

use classifiers::{Classifier, Texts};
use scoring::{Choice, RowScore, Scores, Scoring, calibrate_logits};
use training::arguments::ChoiceFlags;
use training::outcome::NOT_CALIBRATED;
use training::tell::tell;
use training::{Error, Result};

use super::evaluate::each_answer;

/// Maximum number of outputs of a model that are kept: 1 GiB. Of more texts, every second, third and so on is used.
const OUTPUTS_MAX: usize = 1 << 27;

/// Refuses a threshold or a calibration for which the labels of the texts are not suitable. `place` is that of the
/// validation texts.
pub fn check(flags: &ChoiceFlags, texts: &Texts, validation: Option<&Texts>, place: &str) -> Result<()> {
    let labels = texts.dictionary.labels();
    flags.check_classes(labels.len())?;
    let validation = validation.filter(|_| !flags.fitted().is_empty());
    if let Some((flag, found)) = flags.passed().into_iter().next()
        && !std::iter::once(texts).chain(validation).all(Texts::has_one_label_each)
    {
        return Err(Error::setting(flag, found, "texts with one label each; omit it"));
    }
    let Some(validation) = validation else { return Ok(()) };
    let is_known = |label: &&[u8]| texts.dictionary.label(label).is_some();
    let known: Vec<&[u8]> = validation.dictionary.labels().iter().filter(is_known).collect();
    let found = match known[..] {
        [] => "no text of the validation split has a label of the training split".to_owned(),
        [label] => {
            let label = String::from_utf8_lossy(label);
            format!("every text of the validation split has the label {label}")
        }
        _ => return Ok(()),
    };
    let remedy = "raise --validation-fraction, or omit --threshold and --calibrate";
    Err(Error::useless_texts(place, found, remedy))
}

/// Chooses what the flags require, for texts that [`check`] accepts. Texts with a label that the model does not have
/// are not used.
pub fn choose(
    flags: &ChoiceFlags,
    classifier: &Classifier,
    validation: Option<&Texts>,
    threads: NonZeroUsize,
) -> Result<Choice> {
    let labels = classifier.labels();
    let n_labels = labels.n_labels();
    let (mut outputs, mut places) = (Vec::new(), Vec::new());
    if let Some(texts) = validation.filter(|_| !flags.fitted().is_empty()) {
        let step = (texts.n_texts() as usize).saturating_mul(n_labels).div_ceil(OUTPUTS_MAX).max(1);
        let (mut rows, mut not_finite) = (0, 0);
        each_answer(classifier, texts, threads, |answer| {
            rows += 1;
            let (Some(probabilities), &[label]) = (answer.probabilities, &answer.known[..]) else { return };
            if !probabilities.iter().all(|probability| probability.is_finite()) {
                not_finite += 1;
            } else if rows % step as u64 == 0 {
                outputs.extend(labels.outputs(&probabilities));
                places.push(labels.place(label) as usize);
            }
        })?;
        if not_finite > 0 {
            return Err(scoring::Error::NotFinite { found: not_finite, rows }.into());
        }
    }
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
