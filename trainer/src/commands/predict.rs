//! `trainer predict`: reads lines of files or of standard input, and writes one prediction per line to
//! standard output. With `--soft`, it reads a dataset and writes the probabilities of its rows.

use kernels::TokenRows;
use scoring::Scoring;
use training::lines::{FastTextLine, Formats, InvalidUtf8, predict_each, sources};

use super::{device, model_at, soft_labels};
use crate::arguments::Predict;
use crate::error::Result;
use crate::families::classifier::Answers;
use crate::families::classifier::predict::{PredictOptions, Tokenizer, run};
use crate::families::{SavedClassifier, read_classifier};

/// Predicts line by line.
pub fn predict(arguments: &Predict) -> Result<()> {
    if let (Some(out), [dataset]) = (&arguments.of_all.soft, &arguments.of_all.files[..]) {
        return soft_labels::write(arguments, dataset, out);
    }
    arguments.of_all.check_out()?;
    let s3 = arguments.storage.options();
    let folder = model_at(&arguments.of_all.model, &s3, "predict")?;
    let formats = Formats::of(&arguments.of_all.lines, &folder, FastTextLine::Review)?;
    let sources = sources(&arguments.of_all.files, &arguments.of_all.model, &s3)?;
    let compute = device::choose(&arguments.computing, arguments.backend.compute)?;
    let SavedClassifier { model, vocabulary, config, scoring, .. } =
        read_classifier(&folder, compute.device())?;
    let mut tokenizer = Tokenizer::new(&config.preparation, &vocabulary, config.tokens_max)?;
    let options = PredictOptions {
        batch_rows: arguments.batch as usize,
        decision: config.decision(scoring),
        classes: config.preparation.labels.given_names(),
        answers_unknown: false,
    };
    let classes = config.preparation.labels.names().into_iter().map(str::to_owned).collect();
    let has_rating = matches!(options.decision.scoring(), Scoring::Rating { .. });
    let file = arguments.of_all.file(classes, has_rating)?;
    let mut answers = Answers::of(&model, &compute);
    predict_each(&sources, &formats, InvalidUtf8::Spaces, file, |input, output, lines| {
        run(input, output, lines, &mut tokenizer, &options, |texts: TokenRows<'_>| answers.of_rows(texts))
    })
}
