//! `trainer explain` with an n-gram model.

use std::io::{self, Read};
use std::path::Path;

use ::ngrams::files::bin::Loss;

use super::invalid_utf8;
use crate::arguments::Explain;
use crate::commands::lines::{FastTextLine, check, inputs, one_line, options, read_each};
use crate::error::{Error, Result};
use crate::families::ngrams::explain::explain as explain_text;
use crate::families::ngrams::text::Preparation;
use crate::families::ngrams::{Classifier, Model};
use crate::predict::explain::{Form, Options, run};
use crate::predict::{Counts, LineOptions};

/// Explains a text, or lines.
pub(in crate::commands) fn explain(arguments: &Explain, model: &Path) -> Result<()> {
    let mut lines = options(&arguments.lines, FastTextLine::Words)?;
    let s3 = arguments.storage.options();
    let inputs = if arguments.text.is_some() { Vec::new() } else { inputs(&arguments.input, &s3)? };
    check(&inputs, &arguments.model)?;
    let classifier = Classifier::read(model)?;
    if let Model::Program(program) = classifier.model()
        && program.args().loss == Loss::HierarchicalSoftmax
    {
        return Err(Error::Setting {
            setting: "the loss of the model",
            found: "hierarchical softmax".to_owned(),
            expected: "softmax or independent labels: with a tree of labels, no score is a sum over n-grams"
                .to_owned(),
        });
    }
    let options = Options {
        names: classifier.labels().names(),
        top: arguments.top,
        form: Form::of_output(arguments.json),
    };
    let mut preparation = Preparation::of(classifier.words());
    let mut reader = classifier.reader();
    let mut explain = |input: &mut dyn Read, lines: &LineOptions| -> Result<Counts> {
        run(input, io::stdout().lock(), lines, &options, |text| {
            Ok(preparation.text(text).and_then(|text| explain_text(&mut reader, text)))
        })
    };
    if let Some(text) = &arguments.text {
        let (line, lines) = one_line(text);
        return explain(&mut line.as_bytes(), &lines).map(drop);
    }
    read_each(&inputs, &mut lines, invalid_utf8(&classifier), |mut input, lines| explain(&mut input, lines))
}
