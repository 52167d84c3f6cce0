//! `evaluate --wrong`: reads the files of an evaluation once more, and writes the predictions that are wrong.

use std::path::{Path, PathBuf};

use corpus::arguments::FormatArguments;
use corpus::lines::LINE_BYTES_MAX;
use program::exit::{Exit, Failed};
use program::location::Location;
use reading::{KeptColumns, Source};
use store::S3Options;

use crate::answers::file::{AddedColumns, AnswerFile};
use crate::answers::wrong::Wrong;
use crate::answers::{Content, Counts, Format, LineOptions, Output};
use crate::arguments::Rated;
use crate::error::{Error, Result};
use crate::inputs::repeatable;
use crate::lines::{FastTextLine, read};
use crate::places::is_dataset;

/// The files of an evaluation, and the path of their wrong predictions.
pub struct WrongFile {
    out: PathBuf,
    files: Vec<(String, Vec<Source>)>,
}

impl WrongFile {
    /// Refuses an output that cannot be made, and what cannot be read twice or has no texts.
    pub fn new(out: &Path, files: &[Location], s3: &S3Options) -> Result<Self> {
        AnswerFile::check(out, "--wrong")?;
        let refused = |found: String, remedy: &str| {
            let message = format!("--wrong: found {found}; {remedy}, or omit --wrong");
            Err(Failed::new(Exit::Usage, message).into())
        };
        let found = |file: &Location| {
            let place = file.to_string();
            if is_dataset(&place) {
                let found = format!("the dataset {place}, which does not have the texts as they are written");
                return refused(found, "evaluate the files of which it was made");
            }
            repeatable(&place, s3, "--wrong", "omit --wrong").map(|sources| (place, sources))
        };
        let files = files.iter().map(found).collect::<Result<_>>()?;
        Ok(Self { out: out.to_owned(), files })
    }

    /// Writes the wrong predictions of a model with these classes, of which the evaluation found `n_wrong`. `format` is the
    /// format and the labels of a file; `run` answers the texts of a source as the evaluation did.
    pub fn write<E: From<Error>>(
        &self,
        (fasttext, format): (FastTextLine, impl Fn(&str) -> (FormatArguments, Rated)),
        (classes, wrong, n_wrong): (Vec<String>, Wrong, u64),
        mut run: impl FnMut(Content<'_>, Output<'_>, &LineOptions) -> Result<Counts, E>,
    ) -> Result<(), E> {
        let added = AddedColumns { classes, has_rating: false, has_probabilities: false };
        let mut file = AnswerFile::new(&self.out, "--wrong", added, Some(wrong))?;
        if self.files.iter().map(|(_, sources)| sources.len()).sum::<usize>() > 1 {
            file.name_files();
        }
        for (place, sources) in &self.files {
            let (format, rated) = format(place);
            let encoding = format.encoding();
            let format = match (format.with_label(rated.label_field.clone()).map_err(Error::from)?, fasttext)
            {
                (corpus::format::Format::FastText { .. }, FastTextLine::Words) => Format::FastText,
                (format, _) => Format::Review(format),
            };
            file.wrong().into_iter().for_each(|wrong| wrong.rate_by(rated.all()));
            for source in sources {
                let options = LineOptions {
                    file: Some(source.name.clone()),
                    split_start: None,
                    format: format.clone(),
                    encoding,
                    line_bytes_max: match format {
                        Format::FastText => classifiers::LINE_BYTES_MAX,
                        Format::Review(_) | Format::Text => LINE_BYTES_MAX,
                    },
                };
                let is_table = source.is_table().map_err(Error::from)?;
                // The evaluation has reported what is wrong with the lines.
                read((source, is_table), &options, KeptColumns::All, |content| {
                    run(content, Output::File(&mut file), &options)
                })?;
            }
        }
        let found = file.wrong().map_or(0, |wrong| wrong.n_found());
        if found != n_wrong {
            let found = format!("found {found} wrong predictions, expected {n_wrong} as in the metrics");
            let why = "the files changed meanwhile, or this is a defect of sentimill: please report it";
            let message = format!("{}: {found}; {why}", self.out.display());
            return Err(Error::from(Failed::new(Exit::Internal, message)).into());
        }
        Ok(file.finish()?)
    }
}
