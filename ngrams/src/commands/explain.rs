//! `ngrams explain`.

use std::io;

use classifiers::fasttext::Loss;
use classifiers::files::bin::BinLoss;
use classifiers::{Classifier, Model, Preparation};
use corpus::ledger::NoReview;
use training::answers::explain::{Form, Options, run};
use training::answers::{Content, Counts, LineOptions, Refusal};
use training::arguments::Explain;
use training::lines::{FastTextLine, Formats, one_line, read_each};
use training::{Error, Result};

use super::{invalid_utf8, model_at};
use crate::classifier::explain::explain as explain_text;

/// Explains a text, or lines.
pub(super) fn explain(arguments: &Explain) -> Result<()> {
    let s3 = arguments.storage.options();
    let model = model_at(&arguments.model, &s3, "explain")?;
    let formats = Formats::of(&arguments.lines, &model, FastTextLine::Words)?;
    let sources = arguments.sources()?;
    let classifier = Classifier::read(&model)?;
    let has_tree = match classifier.model() {
        Model::Program(model) => model.args().loss == BinLoss::HierarchicalSoftmax,
        Model::FastText(model) => model.loss() == Loss::HierarchicalSoftmax,
        Model::Linear(_) => false,
    };
    if has_tree {
        return Err(Error::setting(
            "the loss of the model",
            "hierarchical softmax",
            "softmax or independent labels: with a tree of labels, no score is a sum over n-grams",
        ));
    }
    let options = Options {
        names: classifier.labels().names(),
        top: arguments.top,
        form: Form::of_output(arguments.json),
    };
    let mut preparation = Preparation::of(classifier.words());
    let mut reader = classifier.reader();
    let mut explain = |input: Content<'_>, lines: &LineOptions| -> Result<Counts> {
        run(input, io::stdout().lock(), lines, &options, |text| {
            let text = preparation.text(text).ok_or(Refusal::Line(NoReview::EmptyText));
            Ok(text.and_then(|text| explain_text(&mut reader, text)))
        })
    };
    if let Some(text) = &arguments.text {
        let (line, lines) = one_line(text);
        return explain(line.as_bytes().into(), &lines).map(drop);
    }
    read_each(&sources, &formats, invalid_utf8(&classifier), explain)
}
