//! `ngrams explain`.

use std::io;

use classifiers::{Classifier, Preparation};
use corpus::ledger::NoReview;
use training::Result;
use training::answers::explain::{Form, Options, run};
use training::answers::{Content, Counts, LineOptions, Refusal};
use training::arguments::Explain;
use training::lines::{FastTextLine, Formats, one_line, read_each};

use super::{invalid_utf8, model_at};
use crate::classifier::explain::explain as explain_text;

/// Explains a text, or lines.
pub(super) fn explain(arguments: &Explain) -> Result<()> {
    let s3 = arguments.storage.options();
    let model = model_at(&arguments.model, &s3, "explain")?;
    let formats = Formats::of(&arguments.lines, &model, FastTextLine::Words)?;
    let sources = arguments.sources()?;
    let classifier = Classifier::read(&model)?;
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
