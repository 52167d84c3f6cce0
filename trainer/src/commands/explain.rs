//! `trainer explain`: reads texts, and writes the words that spoke for and against each prediction to standard output.

use std::io;

use kernels::TokenRows;
use training::answers::explain::{Form, Options, run};
use training::answers::{Content, Counts, LineOptions};
use training::lines::{FastTextLine, Formats, InvalidUtf8, one_line, read_each};

use super::{device, model_at};
use crate::arguments::Explain;
use crate::error::Result;
use crate::families::classifier::Answers;
use crate::families::classifier::explain::explain as explain_text;
use crate::families::classifier::predict::Tokenizer;
use crate::families::{SavedClassifier, read_classifier};

/// Explains a text, or lines.
pub fn explain(arguments: &Explain) -> Result<()> {
    let s3 = arguments.of_all.storage.options();
    let folder = model_at(&arguments.of_all.model, &s3, "explain")?;
    let formats = Formats::of(&arguments.of_all.lines, &folder, FastTextLine::Review)?;
    let sources = arguments.of_all.sources()?;
    let compute = device::choose(&arguments.computing, arguments.backend.compute)?;
    let SavedClassifier { model, vocabulary, config, scoring, .. } =
        read_classifier(&folder, compute.device())?;
    let mut tokenizer = Tokenizer::new(&config.preparation, &vocabulary, config.tokens_max)?;
    let decision = config.decision(scoring);
    let options = Options {
        names: config.preparation.labels.names().into_iter().map(str::to_owned).collect(),
        top: arguments.of_all.top,
        form: Form::of_output(arguments.of_all.json),
    };
    let mut answers = Answers::of(&model, &compute);
    let mut explain = |input: Content<'_>, lines: &LineOptions| -> Result<Counts> {
        run(input, io::stdout().lock(), lines, &options, |text| {
            explain_text(text, &mut tokenizer, decision, |texts: TokenRows<'_>| answers.of_rows(texts))
        })
    };
    if let Some(text) = &arguments.of_all.text {
        let (line, lines) = one_line(text);
        return explain(line.as_bytes().into(), &lines).map(drop);
    }
    read_each(&sources, &formats, InvalidUtf8::Spaces, explain)
}
