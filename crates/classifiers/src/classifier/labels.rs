//! The labels of a model by number and by name.
//!
//! A model numbers its labels by frequency. Users see them in the order of `--labels`, as `fit` numbers them, and without
//! named classes in the order of their names: the labels 0 and 1, or 1 and 2, are in this order in the confusion matrix.

use std::borrow::Cow;

use scoring::{Calibrator, Choice, Decision, Scoring};

use crate::dictionary::Dictionary;
use crate::names::Names;

/// The labels of a model.
#[derive(Clone, Debug)]
pub struct Labels {
    names: Vec<String>,
    /// The labels in the order in which users see them.
    order: Vec<u32>,
    /// The place of each label in this order.
    places: Vec<u32>,
    choice: Choice,
    /// The decision between two labels.
    decision: Decision,
}

impl Labels {
    /// Labels by number. `classes` has all names in their order, or none, as [`Dictionary::classes`].
    pub fn new(names: Vec<String>, classes: &Names) -> Self {
        let place =
            |name: &str| classes.iter().position(|class| class == name.as_bytes()).unwrap_or(usize::MAX);
        let mut order: Vec<u32> = (0..names.len() as u32).collect();
        order.sort_by_cached_key(|&label| (place(&names[label as usize]), names[label as usize].clone()));
        let mut places = vec![0; names.len()];
        (0..).zip(&order).for_each(|(place, &label)| places[label as usize] = place);
        Self { names, order, places, choice: Choice::default(), decision: Scoring::Logit.into() }
    }

    /// Sets the calibration and the threshold.
    pub fn with_choice(self, choice: Choice) -> Self {
        Self { choice, decision: choice.decision(Scoring::Logit), ..self }
    }

    /// The calibration and the threshold.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.names.len()
    }

    /// The name of a label.
    pub fn name(&self, label: u32) -> &str {
        &self.names[label as usize]
    }

    /// The labels of a dictionary.
    pub fn of(dictionary: &Dictionary) -> Self {
        let names = dictionary.labels().iter().map(|name| String::from_utf8_lossy(name).into_owned());
        Self::new(names.collect(), dictionary.classes())
    }

    /// The names in their order.
    pub fn names(&self) -> Vec<String> {
        self.in_order().map(|label| self.name(label).to_owned()).collect()
    }

    /// The labels in their order.
    pub fn in_order(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter().copied()
    }

    /// The place of a label in the order: its number for users.
    pub fn place(&self, label: u32) -> u32 {
        self.places[label as usize]
    }

    /// The most probable label, or that of the threshold; of equally probable labels the first in the order, as in the
    /// metrics of `scoring`. The probabilities are not calibrated yet.
    pub fn predicted(&self, probabilities: &[f32]) -> u32 {
        if let ([first, second], false) = (&self.order[..], self.choice.is_none()) {
            let score = self.decision.score(&self.outputs(probabilities));
            return if self.decision.is_positive(score) { *second } else { *first };
        }
        let of = |label: u32| probabilities[label as usize];
        let largest = self.in_order().reduce(|one, other| if of(other) > of(one) { other } else { one });
        largest.unwrap_or(0)
    }

    /// The outputs that `scoring` expects for a text: for two labels the log-odds of the second, otherwise the logarithm
    /// of each probability, both in their order.
    pub fn outputs(&self, probabilities: &[f32]) -> Vec<f64> {
        let logarithm = |label: u32| f64::from(probabilities[label as usize].max(f32::MIN_POSITIVE)).ln();
        match self.order[..] {
            [first, second] => vec![logarithm(second) - logarithm(first)],
            ref order => order.iter().map(|&label| logarithm(label)).collect(),
        }
    }

    /// The calibrated probabilities.
    pub fn calibrated<'a>(&self, probabilities: &'a [f32]) -> Cow<'a, [f32]> {
        let Some(calibration) = self.choice.calibration else { return probabilities.into() };
        let outputs = self.outputs(probabilities);
        let mut calibrated = vec![0.0; self.order.len()];
        match (&self.order[..], calibration) {
            (&[first, second], _) => {
                let of_second = self.decision.probability(self.decision.score(&outputs)).unwrap_or(0.5);
                calibrated[first as usize] = (1.0 - of_second) as f32;
                calibrated[second as usize] = of_second as f32;
            }
            (order, Calibrator::Temperature(temperature)) => {
                let largest = outputs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> =
                    outputs.iter().map(|output| ((output - largest) / temperature).exp()).collect();
                let sum: f64 = weights.iter().sum();
                for (&label, weight) in order.iter().zip(weights) {
                    calibrated[label as usize] = (weight / sum) as f32;
                }
            }
            // There is none of more labels.
            (_, Calibrator::Platt { .. }) => return probabilities.into(),
        }
        calibrated.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str], classes: &[&str]) -> Vec<String> {
        let classes = classes.iter().map(|class| class.as_bytes()).collect();
        Labels::new(names.iter().map(|&name| name.to_owned()).collect(), &classes).names()
    }

    #[test]
    fn labels_have_the_order_of_their_classes_or_of_their_names() {
        assert_eq!(names(&["b", "é", "a"], &[]), ["a", "b", "é"]);
        assert_eq!(names(&["poor", "good"], &["poor", "good"]), ["poor", "good"]);
        assert_eq!(names(&["good", "poor"], &["poor", "fair", "good"]), ["poor", "good"]);
        // A file may have been altered: no label is lost.
        assert_eq!(names(&["x", "good", "a"], &["poor", "good"]), ["good", "a", "x"]);
    }

    #[test]
    fn the_output_of_two_labels_is_the_log_odds_of_the_second() {
        let labels = |classes: &[&str]| {
            let classes = classes.iter().map(|class| class.as_bytes()).collect();
            Labels::new(["poor", "good"].map(str::to_owned).into(), &classes)
        };
        let of = |classes: &[&str]| labels(classes).outputs(&[0.2, 0.8])[0];
        assert!((of(&["poor", "good"]) - 4.0f64.ln()).abs() < 1e-6);
        assert!((of(&[]) + 4.0f64.ln()).abs() < 1e-6);
        for classes in [&[][..], &["poor", "good"]] {
            let labels = labels(classes);
            // As log-odds of 0 are counted.
            assert_eq!(labels.outputs(&[0.5, 0.5])[0], 0.0);
            assert_eq!(labels.place(labels.predicted(&[0.5, 0.5])), 0);
            assert_eq!([labels.predicted(&[0.2, 0.8]), labels.predicted(&[0.8, 0.2])], [1, 0]);
        }
        assert_eq!([labels(&[]).place(0), labels(&["poor", "good"]).place(0)], [1, 0]);
    }

    #[test]
    fn a_choice_changes_probabilities_and_labels_but_no_score() {
        let names = |n: usize| (0..n).map(|at| at.to_string()).collect::<Vec<_>>();
        let temperature = Choice { calibration: Some(Calibrator::Temperature(2.0)), threshold: None };
        let warm = Labels::new(names(3), &Names::default()).with_choice(temperature);
        let found = warm.calibrated(&[0.09, 0.01, 0.9]);
        let sum = 0.3 + 0.1 + 0.9f32.sqrt();
        let expected = [0.3 / sum, 0.1 / sum, 0.9f32.sqrt() / sum];
        assert!(
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6),
            "{found:?}"
        );

        let threshold = scoring::Threshold { by: scoring::Criterion::F1, score: 2.0 };
        let platt = Some(Calibrator::Platt { slope: 0.5, intercept: 1.0 });
        let strict = Labels::new(names(2), &Names::default())
            .with_choice(Choice { calibration: platt, threshold: Some(threshold) });
        let probabilities = |log_odds: f32| {
            let second = 1.0 / (1.0 + (-log_odds).exp());
            [1.0 - second, second]
        };
        assert_eq!([1.9, 2.1].map(|log_odds| strict.predicted(&probabilities(log_odds))), [0, 1]);
        assert!((strict.outputs(&probabilities(1.9))[0] - 1.9).abs() < 1e-5);
        let [first, second] = strict.calibrated(&probabilities(-2.0))[..] else { panic!("two labels") };
        assert!((first - 0.5).abs() < 1e-6 && (second - 0.5).abs() < 1e-6);
    }
}
