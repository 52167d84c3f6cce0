//! Evaluates a model on texts with labels. A text has the tokens of its row in a dataset, and each copy of it counts.

use classifiers::{Block, Texts};
use kernels::TokenRows;
use scoring::Decision;
use tch::{Kind, Tensor};

use super::{EvaluatedRows, Evaluating};
use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::families::classifier::predict::{Tokenizer, Window};
use crate::families::classifier::{Answers, Classifier};
use crate::inputs::Targets;
use crate::ranks::Ranks;

/// The label of texts, as the model has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Its number.
    pub label: u8,
    /// The rating, 1 to 5. Only models that predict the rating read it.
    pub rating: u8,
}

/// Results of texts, and the numbers of texts without one.
#[derive(Debug)]
pub struct EvaluatedTexts {
    /// The results; `None`: no text can be evaluated.
    pub rows: Option<EvaluatedRows>,
    /// Texts with a label that the model does not have.
    pub unknown_label: u64,
    /// Texts of stop words only.
    pub only_stopwords: u64,
}

/// Evaluates all texts, which have keys. `truths` are the labels of their dictionary; `None` for one that the model does not
/// have. Every rank has all texts and computes some windows of them.
pub fn evaluate_texts(
    (model, tokenizer): (&Classifier, &mut Tokenizer),
    (texts, truths): (&Texts, &[Option<Truth>]),
    ranks: &Ranks,
    compute: &Compute,
    (decision, batch_rows): (Decision, usize),
) -> Result<EvaluatedTexts> {
    let mut windows = Windows {
        here: Evaluating::new(decision),
        answers: Answers::of(model, compute),
        window: Window::new(batch_rows),
        truths: Vec::new(),
        n_rows: 0,
        n_windows: 0,
    };
    let (mut keys, mut unknown_label, mut only_stopwords) = (Vec::new(), 0, 0);
    let (mut scratch, mut line) = (Block::default(), Vec::new());
    for index in 0..texts.n_blocks() {
        for text in texts.block(index, &mut scratch)?.texts() {
            let Some(truth) = text.labels.first().and_then(|&label| truths[label as usize]) else {
                unknown_label += 1;
                continue;
            };
            texts.dictionary.spell(text, &mut line);
            let Ok(ids) = tokenizer.row(&String::from_utf8_lossy(&line)) else {
                only_stopwords += 1;
                continue;
            };
            windows.window.push(Ok(ids));
            windows.truths.push(truth);
            keys.extend(text.key);
            if windows.window.is_full() {
                windows.evaluate(ranks)?;
            }
        }
    }
    if keys.is_empty() {
        return Ok(EvaluatedTexts { rows: None, unknown_label, only_stopwords });
    }
    windows.evaluate(ranks)?;
    let rows = EvaluatedRows { keys: Some(keys), ..windows.here.of_all(ranks, decision)? };
    Ok(EvaluatedTexts { rows: Some(rows), unknown_label, only_stopwords })
}

/// The texts that are evaluated together.
struct Windows<'m> {
    here: Evaluating,
    answers: Answers<'m>,
    window: Window,
    truths: Vec<Truth>,
    /// Texts of earlier windows.
    n_rows: i64,
    n_windows: usize,
}

impl Windows<'_> {
    /// Evaluates the texts of the window if it is one of this rank, and clears it.
    fn evaluate(&mut self, ranks: &Ranks) -> Result<()> {
        ranks.check()?;
        let Self { here, answers, window, truths, n_rows, n_windows } = self;
        let truths = std::mem::take(truths);
        let first = std::mem::replace(n_rows, *n_rows + truths.len() as i64);
        *n_windows += 1;
        if *n_windows % ranks.world_size() != ranks.rank() {
            window.clear();
            return Ok(());
        }
        let outputs = window.outputs(|texts: TokenRows<'_>| answers.of_rows(texts))?;
        let outputs = outputs
            .into_iter()
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|refusal| Error::internal(&format!("a text has no output: {}", refusal.name())))?;
        let outputs = outputs.concat();
        if truths.is_empty() {
            return Ok(());
        }
        let outputs = Tensor::from_slice(&outputs).view([truths.len() as i64, -1]);
        let of_texts = |of: fn(&Truth) -> u8| truths.iter().map(of).collect::<Vec<u8>>();
        let labels = of_texts(|truth| truth.label);
        let ratings = Tensor::from_slice(&of_texts(|truth| truth.rating)).to_kind(Kind::Int64);
        let targets = Targets { soft: None, labels: Tensor::from_slice(&labels), ratings };
        here.add(&outputs, &targets, &labels, answers.objective())?;
        here.places.extend(first..*n_rows);
        Ok(())
    }
}
