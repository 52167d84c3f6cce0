//! Evaluates an n-gram model on texts with labels.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::thread;

use classifiers::{Block, Classifier, END, TextRef, Texts};
use corpus::digest::{Digest, of_labelled};
use program::threads::spawn;
use report::whole;
use scoring::Measured;
use training::Result;

use super::quality::{Evaluated, Quality};

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
    /// The digest of the texts and their labels, if the texts have keys.
    pub digest: Option<Digest>,
}

/// Minimum share of the copies of one text of which a warning is printed.
const COPIES_MIN: f64 = 0.01;

impl Evaluation {
    /// Warnings of labels that the model does not have, and of a text with many copies.
    pub fn warnings(&self, place: &str, n_texts: u64) -> Vec<String> {
        let mut warnings = Vec::new();
        let n = self.unknown_label;
        if n > 0 {
            let found = "texts have a label that the model does not have";
            warnings.push(format!("warning: {place}: {n} of {n_texts} {found}"));
        }
        let Evaluated { ref metrics, most_copies, distinct_accuracy, .. } = self.evaluated;
        let share = most_copies as f64 / metrics.rows() as f64;
        if most_copies > 1 && share > COPIES_MIN {
            warnings.push(format!(
                "warning: {place}: {} of {} texts are copies of one text ({:.1} %), which counts as often in the metrics; \
                 with each distinct text once, the accuracy is {distinct_accuracy:.4}; compare that, or remove the copies",
                whole(most_copies),
                whole(metrics.rows()),
                100.0 * share
            ));
        }
        warnings
    }
}

/// The answer for a text, and what is known of it.
pub struct Answer {
    /// The probability of each label, before the calibration.
    pub probabilities: Option<Vec<f32>>,
    key: Option<u64>,
    labels: Vec<u32>,
    /// Those of its labels that the model has, by number of the model.
    pub known: Vec<u32>,
}

/// Evaluates all texts. The result does not depend on the number of threads.
pub fn evaluate(classifier: &Classifier, texts: &Texts, threads: NonZeroUsize) -> Result<Evaluation> {
    let Counted { quality, only_unknown, unknown_label, sums } = count(classifier, texts, threads)?;
    let names = texts.dictionary.labels();
    let named = |labels: &Vec<u32>| {
        let names = labels.iter().map(|&label| String::from_utf8_lossy(names.get(label)));
        names.collect::<Vec<_>>().join(" ")
    };
    let sums: BTreeMap<String, Digest> = sums.iter().map(|(labels, sum)| (named(labels), *sum)).collect();
    let digest = (!sums.is_empty()).then(|| of_labelled(&sums));
    Ok(Evaluation { evaluated: quality.finish()?, only_unknown, unknown_label, digest })
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
    /// The sum of the digests of the keys of texts with these labels; none without keys.
    sums: BTreeMap<Vec<u32>, Digest>,
}

fn count<'a>(classifier: &'a Classifier, texts: &Texts, threads: NonZeroUsize) -> Result<Counted<'a>> {
    let names = texts.dictionary.labels();
    let n_unknown = names.iter().filter(|name| classifier.label(name).is_none()).count();
    let mut quality = Quality::new(classifier.labels(), n_unknown);
    let (mut only_unknown, mut unknown_label) = (0, 0);
    let mut sums: BTreeMap<Vec<u32>, Digest> = BTreeMap::new();
    let mut numbers = 0..;
    each_answer(classifier, texts, threads, |Answer { probabilities, key, labels, known }| {
        let number = numbers.next().unwrap_or(u64::MAX);
        let n_unknown = labels.len() - known.len();
        unknown_label += u64::from(n_unknown > 0);
        if let Some(key) = key {
            *sums.entry(labels).or_default() += Digest::of(&key.to_le_bytes());
        }
        match probabilities {
            Some(probabilities) => quality.add(&probabilities, &known, n_unknown, key.unwrap_or(number)),
            None => only_unknown += 1,
        }
    })?;
    Ok(Counted { quality, only_unknown, unknown_label, sums })
}

/// What a report shows of a text.
#[derive(Clone, Debug, Default)]
pub struct ShownText {
    /// Its labels.
    pub labels: Vec<String>,
    /// Its key, as 16 hexadecimal digits.
    pub hash: Option<String>,
    /// Its words, up to 16 KiB.
    pub words: Vec<String>,
}

/// Maximum length of the words that are shown of a text.
const SHOWN_BYTES_MAX: usize = 16 << 10;
/// In place of the other words.
const CUT: &str = "…";

/// The texts with these indices.
pub fn shown(texts: &Texts, indices: impl Iterator<Item = u64>) -> Result<HashMap<u64, ShownText>> {
    let mut wanted: HashMap<u64, ShownText> = indices.map(|index| (index, ShownText::default())).collect();
    let (names, mut scratch, mut numbers) = (texts.dictionary.labels(), Block::default(), 0..);
    for index in 0..texts.n_blocks() {
        for (text, number) in texts.block(index, &mut scratch)?.texts().zip(&mut numbers) {
            let Some(shown) = wanted.get_mut(&number) else { continue };
            let name = |&label: &u32| String::from_utf8_lossy(names.get(label)).into_owned();
            shown.labels = text.labels.iter().map(name).collect();
            shown.hash = text.key.map(|key| format!("{key:016x}"));
            let words = text.words().flatten().map(|word| texts.dictionary.name(word));
            let mut n_bytes = 0;
            for word in words.filter(|&word| word != END) {
                n_bytes += word.len();
                if n_bytes > SHOWN_BYTES_MAX {
                    shown.words.push(CUT.to_owned());
                    break;
                }
                shown.words.push(String::from_utf8_lossy(word).into_owned());
            }
        }
    }
    Ok(wanted)
}

/// Calls `each` with the answer for each text, in the order of the texts. Threads compute them.
pub fn each_answer(
    classifier: &Classifier,
    texts: &Texts,
    threads: NonZeroUsize,
    mut each: impl FnMut(Answer),
) -> Result<()> {
    let names = texts.dictionary.labels();
    let labels: Vec<Option<u32>> = names.iter().map(|name| classifier.label(name)).collect();
    let indices: Vec<usize> = (0..texts.n_blocks()).collect();
    for wave in indices.chunks(threads.get()) {
        let answer = |index| answers(classifier, texts, index, &labels);
        let answers: Vec<Result<Vec<Answer>>> = match wave {
            &[index] => vec![answer(index)],
            wave => thread::scope(|scope| {
                let answer = &answer;
                let threads: Vec<_> = wave.iter().map(|&index| spawn(scope, move || answer(index))).collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().expect("an evaluation does not panic"))
                    .collect()
            }),
        };
        for answers in answers {
            answers?.into_iter().for_each(&mut each);
        }
    }
    Ok(())
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
        texts.dictionary.spell(text, &mut line);
        let known: Vec<u32> = text.labels.iter().filter_map(|&label| labels[label as usize]).collect();
        let probabilities = reader.probabilities(&line).map(<[f32]>::to_vec);
        Answer { probabilities, key: text.key, labels: text.labels.to_vec(), known }
    };
    Ok(block.texts().map(answer).collect())
}
