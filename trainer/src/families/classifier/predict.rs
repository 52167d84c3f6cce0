//! Predicts by a classifier. Words of a text get the ids of the model's training dataset.
//!
//! [`Scoring`] defines the score, and [`Decision`] the label and the probability of label 1: the sigmoid of a logit, or
//! the summed probability of the ratings with label 1, calibrated if the model has a calibration. If the model's dataset
//! was made with `--labels`, classes have names.
//!
//! Texts are passed to the model in batches of similar length, from a window of several batches.

#[cfg(test)]
mod tests;
mod tokenizer;
mod window;

use kernels::TokenRows;
use program::exit::Failed;
use scoring::{Decision, Scoring};
use training::answers::{self, Answer, AnswersError, Content, Counts, LineOptions, Output, Refusal};

pub use self::tokenizer::Tokenizer;
pub(crate) use self::window::Window;

/// Options of a prediction.
#[derive(Clone, Debug)]
pub struct PredictOptions {
    /// Maximum texts per batch.
    pub batch_rows: usize,
    /// How scores become probabilities and labels.
    pub decision: Decision,
    /// The names of the classes, if they have names.
    pub classes: Vec<String>,
    /// Whether a text of which the model knows no word has an answer, as in an evaluation.
    pub answers_unknown: bool,
}

/// Reads all lines of `input` and writes a prediction for each to `output`. The model must return as many outputs per
/// text as the scoring requires.
pub fn run<'i, 'o, E: From<AnswersError>>(
    input: impl Into<Content<'i>>,
    output: impl Into<Output<'o>>,
    lines: &LineOptions,
    tokenizer: &mut Tokenizer,
    options: &PredictOptions,
    model: impl FnMut(TokenRows<'_>) -> Result<Vec<Vec<f64>>, E>,
) -> Result<Counts, E> {
    let mut window = ModelWindow { window: Window::new(options.batch_rows), tokenizer, options, model };
    answers::run(input, output, lines, &mut window)
}

/// Lines whose texts are in a window.
struct ModelWindow<'a, M> {
    window: Window,
    tokenizer: &'a mut Tokenizer,
    options: &'a PredictOptions,
    model: M,
}

impl<'a, E: From<AnswersError>, M: FnMut(TokenRows<'_>) -> Result<Vec<Vec<f64>>, E>> answers::TextWindow<'a>
    for ModelWindow<'a, M>
{
    type Error = E;

    fn push(&mut self, text: Result<&[u8], Refusal>) {
        let Self { window, tokenizer, options, .. } = self;
        let ids = text.and_then(|text| {
            let text = String::from_utf8_lossy(text);
            if options.answers_unknown { tokenizer.row(&text) } else { tokenizer.ids(&text) }
        });
        window.push(ids);
    }

    fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    fn is_full(&self) -> bool {
        self.window.is_full()
    }

    fn answers(&mut self) -> Result<Vec<Result<Answer<'a>, Refusal>>, E> {
        let Self { window, options, model, .. } = self;
        let outputs = window.outputs(|texts| {
            let answers = model(texts)?;
            check_answers(texts, options.decision.scoring(), &answers)?;
            Ok::<_, E>(answers)
        })?;
        Ok(outputs.into_iter().map(|outputs| predicted(options, &outputs?)).collect())
    }
}

/// Refuses answers of another shape than the scoring requires.
pub(super) fn check_answers(
    texts: TokenRows<'_>,
    scoring: Scoring,
    answers: &[Vec<f64>],
) -> Result<(), AnswersError> {
    let (found, expected) = (answers.len(), texts.lengths.len());
    if found != expected {
        return Err(
            Failed::defect(format!("a model returned results for {found} of {expected} texts")).into()
        );
    }
    let expected = scoring.n_outputs();
    match answers.iter().map(Vec::len).find(|&found| found != expected) {
        None => Ok(()),
        Some(found) => {
            Err(Failed::defect(format!("a model has {found} outputs for a text, not {expected}")).into())
        }
    }
}

fn predicted<'a>(options: &'a PredictOptions, outputs: &[f64]) -> Result<Answer<'a>, Refusal> {
    if !outputs.iter().all(|output| output.is_finite()) {
        return Err(Refusal::NotFinite);
    }
    let decision = options.decision;
    let class = |label: u8| options.classes.get(usize::from(label)).map(String::as_str);
    if !decision.scoring().is_of_label() {
        let probabilities = decision.probabilities(outputs);
        let label = probabilities.predicted();
        let names = (0..).zip(options.classes.iter().map(String::as_str));
        return Ok(Answer::OfMany {
            label: Some(label.into()),
            class: Some(class(label).unwrap_or_default()),
            probabilities: names
                .zip(probabilities.all())
                .map(|((label, name), &probability)| (label, name, probability))
                .collect(),
        });
    }
    let score = decision.score(outputs);
    if !score.is_finite() {
        return Err(Refusal::NotFinite);
    }
    let label = u8::from(decision.is_positive(score));
    Ok(Answer::OfTwo {
        label: label.into(),
        score,
        probability: decision.probability(score).map(|probability| probability as f32),
        rating: matches!(decision.scoring(), Scoring::Rating { .. }).then(|| outputs[0] as f32),
        class: class(label),
    })
}
