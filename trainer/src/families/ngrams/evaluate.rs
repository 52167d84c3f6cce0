//! Evaluates an n-gram model on texts with labels.

use std::num::NonZeroUsize;
use std::thread;

use ::ngrams::{Block, Dictionary, TextRef, Texts, UNKNOWN};

use super::Classifier;
use super::quality::{Evaluated, Measured, Quality};
use crate::error::Result;

/// The metrics of texts, and the texts that are not in them.
#[derive(Debug)]
pub struct Evaluation {
    /// The metrics.
    pub evaluated: Evaluated,
    /// Texts without a known word or n-gram, for a file of the fastText program, which does not predict them. Other models
    /// have probabilities for them.
    pub only_unknown: u64,
    /// Texts with a label that the model does not have. They are in the metrics, as texts that are predicted wrongly or
    /// in part.
    pub unknown_label: u64,
}

impl Evaluation {
    /// A warning of labels that the model does not have.
    pub fn warning(&self, place: &str, n_texts: u64) -> Option<String> {
        let n = self.unknown_label;
        let text =
            || format!("warning: {place}: {n} of {n_texts} texts have a label that the model does not have");
        (n > 0).then(text)
    }
}

/// The probabilities of a text, and its labels by number of the model.
struct Answer {
    probabilities: Option<Vec<f32>>,
    labels: Vec<u32>,
    n_unknown: usize,
}

/// Evaluates all texts. The result does not depend on the number of threads.
pub fn evaluate(classifier: &Classifier, texts: &Texts, threads: NonZeroUsize) -> Result<Evaluation> {
    let Counted { quality, only_unknown, unknown_label } = count(classifier, texts, threads)?;
    Ok(Evaluation { evaluated: quality.finish()?, only_unknown, unknown_label })
}

/// The metrics that [`evaluate`] computes, without intervals.
pub fn measure(classifier: &Classifier, texts: &Texts, threads: NonZeroUsize) -> Result<Measured> {
    count(classifier, texts, threads)?.quality.measured()
}

/// The counts of all texts.
struct Counted<'a> {
    quality: Quality<'a>,
    only_unknown: u64,
    unknown_label: u64,
}

fn count<'a>(classifier: &'a Classifier, texts: &Texts, threads: NonZeroUsize) -> Result<Counted<'a>> {
    let names = texts.dictionary.labels();
    let labels: Vec<Option<u32>> = names.iter().map(|name| classifier.label(name)).collect();
    let mut quality =
        Quality::new(classifier.labels(), labels.iter().filter(|label| label.is_none()).count());
    let (mut only_unknown, mut unknown_label) = (0, 0);
    let indices: Vec<usize> = (0..texts.n_blocks()).collect();
    for wave in indices.chunks(threads.get()) {
        let answer = |index| answers(classifier, texts, index, &labels);
        let answers: Vec<Result<Vec<Answer>>> = match wave {
            &[index] => vec![answer(index)],
            wave => thread::scope(|scope| {
                let answer = &answer;
                let threads: Vec<_> = wave.iter().map(|&index| scope.spawn(move || answer(index))).collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().expect("an evaluation does not panic"))
                    .collect()
            }),
        };
        for answers in answers {
            for Answer { probabilities, labels, n_unknown } in answers? {
                unknown_label += u64::from(n_unknown > 0);
                match probabilities {
                    Some(probabilities) => quality.add(&probabilities, &labels, n_unknown),
                    None => only_unknown += 1,
                }
            }
        }
    }
    Ok(Counted { quality, only_unknown, unknown_label })
}

/// The answers for the texts of a block.
fn answers(
    classifier: &Classifier,
    texts: &Texts,
    index: usize,
    labels: &[Option<u32>],
) -> Result<Vec<Answer>> {
    let mut scratch = Block::default();
    let block = texts.block(index, &mut scratch)?;
    let mut reader = classifier.reader();
    let mut line = Vec::new();
    let answer = |text: TextRef<'_>| {
        spell(&texts.dictionary, text, &mut line);
        let known: Vec<u32> = text.labels.iter().filter_map(|&label| labels[label as usize]).collect();
        let n_unknown = text.labels.len() - known.len();
        let probabilities = reader.probabilities(&line).map(<[f32]>::to_vec);
        Answer { probabilities, labels: known, n_unknown }
    };
    Ok(block.texts().map(answer).collect())
}

/// Writes the words of a text, separated by spaces.
fn spell(dictionary: &Dictionary, text: TextRef<'_>, line: &mut Vec<u8>) {
    line.clear();
    // The vocabulary of evaluated texts is not bounded, so it has all words.
    for &token in text.tokens.iter().filter(|&&token| token != UNKNOWN) {
        line.extend_from_slice(dictionary.name(token));
        line.push(b' ');
    }
}
