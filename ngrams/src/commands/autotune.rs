//! Trials of `ngrams train`. Texts are read once per way to split and to count their words.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use batches::Part;
use clap::Parser;
use classifiers::fasttext::Optimizer;
use classifiers::linear::LinearSettings;
use classifiers::{Classifier, Model, Reading, Texts, Words, fasttext, linear};
use corpus::arguments::FormatArguments;
use scoring::Measured;
use training::arguments::{OF_SEARCH, Passed};
use training::autotune::search::{Dimension, Flags, Space};
use training::autotune::{Limit, Metrics, Plan, Trained};
use training::places::is_dataset;
use training::tell::tell;
use training::{Error, Result};

use super::settings::{ModelSettings, check_choice, label_weights, reading, words};
use super::train::check;
use crate::arguments::{Arguments, Autotune, Command, ModelName, Train};
use crate::classifier::choice::{self, choose};
use crate::classifier::evaluate::measure;
use crate::input::{input, read_split, with_format};

/// Searches settings of an n-gram model.
pub(super) fn tune(arguments: &Autotune) -> Result<()> {
    let began = Instant::now();
    let Autotune { validation, search, train } = arguments;
    let passed = Passed::of_process::<Arguments>();
    check_places(&train.input, validation)?;
    if validation.is_empty() && train.validation_fraction == 0.0 {
        return Err(Error::setting(
            "--validation-fraction",
            "0",
            "above 0, or other texts as --validation, because trials are compared on them",
        ));
    }
    let fitted = train.choice.fitted().into_iter().next();
    if let (Some((flag, found)), false) = (&fitted, validation.is_empty()) {
        let expected =
            "no --validation: the printed command chooses on a split of --input; pass --validation-fraction";
        return Err(Error::setting(flag, found, expected));
    }
    check_choice(train)?;
    if fitted.is_some() {
        tell(
            "warning: each trial fits its threshold or calibration on the texts by which trials are compared, so their metrics \
             are better than on other texts; evaluate the model on others",
        );
    }
    let train = &with_format(train, validation)?;
    let trained = Trained {
        command: ["ngrams", "train"],
        passed: passed.clone(),
        of_search: OF_SEARCH.iter().copied().chain(["validation"]).collect(),
    };
    let plan = Plan {
        began,
        arguments: search.clone(),
        is_json: train.json,
        seed: train.seed,
        spaces: spaces(train, &passed),
        trained: trained.clone(),
    };
    let texts = AllTexts { validation: validation.clone(), read: Vec::new() };
    let format = train.format.clone();
    let mut trials = Trials { trained, format, texts, kept: Kept::default(), is_checked: false };
    plan.run(move |flags, limit| trials.run(flags, limit))
}

/// Refuses standard input, which can be read only once, and validation texts that are trained on.
fn check_places(input: &[String], validation: &[String]) -> Result<()> {
    if input.iter().chain(validation).any(|place| place == "-") {
        return Err(Error::setting(
            "--input",
            "-",
            "files, because a search reads its texts several times; save the lines to a file",
        ));
    }
    let same = |place: &&String| input.iter().any(|other| other == *place || is_same_file(other, place));
    match validation.iter().find(same) {
        Some(place) => Err(Error::no_validation(place)),
        None => Ok(()),
    }
}

fn is_same_file(one: &str, other: &str) -> bool {
    let absolute = |place: &str| fs::canonicalize(Path::new(place)).ok();
    let (one, other): (Option<PathBuf>, _) = (absolute(one), absolute(other));
    one.is_some() && one == other
}

/// The settings that are searched: those of the model that the flags select first, then those of the other model if
/// no flag forbids it.
fn spaces(arguments: &Train, passed: &Passed) -> Vec<Space> {
    let first = arguments.model().unwrap_or(ModelName::Linear);
    let is_free = arguments.model.is_none();
    let is_possible = |model: &ModelName| {
        *model == first || is_free && Train { model: Some(*model), ..arguments.clone() }.model().is_ok()
    };
    let others = [ModelName::Linear, ModelName::FastText].into_iter().filter(|model| *model != first);
    let models: Vec<ModelName> = std::iter::once(first).chain(others).filter(is_possible).collect();
    let is_dataset = matches!(&arguments.input[..], [place] if is_dataset(place));
    let space = |&model: &ModelName| {
        let mut dimensions = match model {
            ModelName::Linear => of_linear(),
            ModelName::FastText => of_fasttext(arguments.optimizer),
        };
        if !is_dataset {
            dimensions.push(match words(arguments, model, false) {
                Words::Spaces => Dimension::choice("--words", &["punctuation"]),
                _ => Dimension::choice("--words", &["spaces"]),
            });
        }
        // The other loss of embeddings has no threshold.
        let has_loss = model == ModelName::Linear || arguments.choice.threshold.is_none();
        dimensions
            .retain(|dimension| !passed.has(&dimension.id()) && (has_loss || dimension.flag != "--loss"));
        let flags = if model == first { vec![] } else { vec![("--model", model.name().to_owned())] };
        Space { flags, dimensions }
    };
    models.iter().map(space).collect()
}

fn of_linear() -> Vec<Dimension> {
    vec![
        Dimension::ordered("--ngrams", &["1", "2", "3", "4", "5"], "3"),
        Dimension::ordered("--min-count", &["1", "2", "3", "5", "10"], "3"),
        Dimension::ordered("--buckets", &["1048576", "4194304", "16777216", "67108864"], "16777216"),
        Dimension::choice("--weights", &["tf-idf", "none"]),
        Dimension::choice("--loss", &["squared-hinge"]),
        Dimension::ordered("--c", &["0.03", "0.1", "0.2", "0.5", "1", "2", "5", "10", "30"], "1"),
        Dimension::ordered("--epochs", &["2", "3", "5", "8", "12", "20", "30"], "5"),
    ]
}

fn of_fasttext(optimizer: Option<Optimizer>) -> Vec<Dimension> {
    let rate = match optimizer {
        None | Some(Optimizer::Sgd) => {
            Dimension::ordered("--rate", &["0.05", "0.1", "0.2", "0.3", "0.5", "0.8", "1", "1.5"], "0.5")
        }
        Some(Optimizer::Adagrad) => {
            Dimension::ordered("--rate", &["0.01", "0.02", "0.05", "0.1", "0.2", "0.5"], "0.1")
        }
        Some(Optimizer::LazyAdam) => {
            Dimension::ordered("--rate", &["0.0005", "0.001", "0.002", "0.005", "0.01", "0.02"], "0.005")
        }
    };
    vec![
        Dimension::ordered("--ngrams", &["1", "2", "3", "4", "5"], "2"),
        Dimension::ordered("--min-count", &["1", "2", "5"], "1"),
        Dimension::ordered("--buckets", &["200000", "500000", "2000000", "8000000"], "2000000")
            .without("--ngrams", "1"),
        Dimension::choice("--char-ngrams", &["3-6"]),
        Dimension::ordered("--dim", &["2", "5", "10", "20", "50", "100", "200"], "10"),
        Dimension::choice("--loss", &["bce"]),
        rate,
        Dimension::ordered("--epochs", &["2", "3", "5", "8", "12", "20", "30", "50"], "5"),
        Dimension::ordered("--dropout", &["0", "0.1", "0.3", "0.5"], "0"),
        Dimension::ordered("--subsample", &["0", "1e-4", "1e-3", "1e-2"], "0"),
    ]
}

/// Trains and evaluates models in this process.
struct Trials {
    trained: Trained,
    format: FormatArguments,
    texts: AllTexts,
    kept: Kept,
    /// Whether the texts are known to be suitable.
    is_checked: bool,
}

/// Texts that were read in one or several ways.
struct AllTexts {
    validation: Vec<String>,
    read: Vec<Read>,
}

/// Texts, and how they were read.
struct Read {
    place: Place,
    words: Words,
    count_min: u64,
    texts: Texts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Input,
    Validation,
}

impl Trials {
    /// Trains with some flags, and evaluates the model. `None` if the limit was reached.
    fn run(&mut self, flags: &Flags, limit: &Limit) -> Result<Option<Metrics>> {
        let words = self.trained.words(flags);
        let arguments = Arguments::try_parse_from(words).map_err(|error| Error::internal(&error))?;
        let Command::Train(mut arguments) = arguments.command else {
            return Err(Error::internal(&"another command was parsed"));
        };
        arguments.format = self.format.clone();
        let Ok(model) = arguments.model() else {
            return Err(Error::internal(&"flags of both models were accepted"));
        };
        let is_dataset = matches!(&arguments.input[..], [place] if is_dataset(place));
        let reading = reading(&arguments, model, self::words(&arguments, model, is_dataset));
        let settings = ModelSettings::of(&arguments, model, reading.words);
        let of_validation = Reading { words_max: usize::MAX >> 1, count_min: 1, ..reading.clone() };
        self.texts.read(Place::Input, &arguments, &reading)?;
        if !self.is_checked {
            let texts = self.texts.get(Place::Input, &reading)?;
            check(texts, &arguments)?;
        }
        self.texts.read(Place::Validation, &arguments, &of_validation)?;
        let texts = self.texts.get(Place::Input, &reading)?;
        let validation = self.texts.get(Place::Validation, &of_validation)?;
        if !self.is_checked {
            let place = self.texts.place(&arguments);
            check_labels(texts, validation, &place)?;
            choice::check(&arguments.choice, texts, Some(validation), &place)?;
        }
        let settings = settings.with_label_weights(label_weights(&arguments, &texts.dictionary)?);
        let trained = self.kept.train(texts, reading.words, &settings, limit)?;
        let Some(model) = trained else { return Ok(None) };
        let mut classifier = Classifier::new(model);
        let choice = choose(&arguments.choice, &classifier, Some(validation), arguments.n_threads())?;
        classifier.choose(choice);
        let measured = measure(&classifier, validation, arguments.n_threads())?;
        self.is_checked = true;
        Ok((!limit.is_over()).then(|| metrics(&measured)))
    }
}

impl AllTexts {
    /// Reads texts unless they were read in this way. If all texts exceed the memory, those of other ways are dropped.
    fn read(&mut self, place: Place, arguments: &Train, how: &Reading) -> Result<()> {
        if self.get(place, how).is_ok() {
            return Ok(());
        }
        // Skipped lines are reported once.
        let is_read = self.read.iter().any(|read| read.place == place);
        let input = input(arguments, if is_read { |_| () } else { tell });
        let texts = match place {
            Place::Input => read_split(&input, arguments, Part::Training, how.clone())?,
            // The printed command holds it out, too.
            Place::Validation if self.validation.is_empty() => {
                read_split(&input, arguments, Part::Validation, how.clone())?
            }
            Place::Validation => input.read(&self.validation, how.clone())?.0,
        };
        let n_bytes: u64 = self.read.iter().map(|read| bytes(&read.texts)).sum();
        if n_bytes > arguments.memory as u64 / 2 {
            self.read.retain(|read| read.place != place);
        }
        self.read.push(Read { place, words: how.words, count_min: how.count_min, texts });
        Ok(())
    }

    /// The validation texts, for messages.
    fn place(&self, arguments: &Train) -> String {
        match &self.validation[..] {
            [] => format!("--validation-fraction {}", arguments.validation_fraction),
            places => format!("--validation {}", places.join(" ")),
        }
    }

    /// The texts that were read in this way.
    fn get(&self, place: Place, how: &Reading) -> Result<&Texts> {
        let is_same =
            |read: &&Read| read.place == place && read.words == how.words && read.count_min == how.count_min;
        let found = self.read.iter().find(is_same).map(|read| &read.texts);
        found.ok_or_else(|| Error::internal(&"texts of a trial were not read"))
    }
}

/// Memory of texts in bytes, about: four per token, and the names and numbers of words.
fn bytes(texts: &Texts) -> u64 {
    4 * texts.counts().n_tokens + 64 * texts.dictionary.n_words() as u64
}

/// N-grams of a linear model, which trials with other weights and losses use again.
#[derive(Default)]
struct Kept(Option<(Words, linear::Numbered)>);

impl Kept {
    /// Trains a model. `None` if the limit was reached.
    fn train(
        &mut self,
        texts: &Texts,
        words: Words,
        settings: &ModelSettings,
        limit: &Limit,
    ) -> Result<Option<Model>> {
        match settings {
            ModelSettings::Linear(settings, weights) => {
                // The words of n-grams are for reports.
                let settings = LinearSettings { n_named: 0, ..*settings };
                let numbered = match self.0.take() {
                    Some((of, numbered)) if of == words && numbered.is_for(&settings) => numbered,
                    _ => linear::Numbered::of(texts, &settings, None)?,
                };
                let (_, numbered) = self.0.insert((words, numbered));
                match numbered.train(texts, words, &settings, weights, |_| {}, &|| limit.is_over()) {
                    Ok(model) => Ok(Some(Model::Linear(Box::new(model)))),
                    Err(classifiers::Error::Stopped) => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
            ModelSettings::FastText(settings) => {
                self.0 = None;
                let mut training = fasttext::Training::new(texts, (**settings).clone())?;
                while training.step()?.is_some() {
                    if limit.is_over() {
                        return Ok(None);
                    }
                }
                Ok(Some(Model::FastText(Box::new(training.finish()))))
            }
        }
    }
}

/// Refuses validation texts that cannot measure a model, and warns of labels that the input does not have.
fn check_labels(texts: &Texts, validation: &Texts, place: &str) -> Result<()> {
    let (known, found) = (texts.dictionary.labels(), validation.dictionary.labels());
    let known: HashSet<&[u8]> = known.iter().collect();
    let n_unknown = found.iter().filter(|label| !known.contains(label)).count();
    let refused = |found: String, remedy| Err(Error::useless_texts(place, found, remedy));
    if validation.n_texts() == 0 {
        return refused("no text".to_owned(), "raise it, or pass other texts as --validation");
    }
    if n_unknown == found.len() {
        return refused(
            "no text has a label of --input".to_owned(),
            "validation texts need the labels and the --format of --input",
        );
    }
    if let 1 = found.len() {
        let label = String::from_utf8_lossy(found.get(0)).into_owned();
        return refused(
            format!("every text has the label {label}"),
            "a comparison needs validation texts of at least two labels",
        );
    }
    if n_unknown > 0 {
        tell(&format!("warning: {place}: {n_unknown} of {} labels are not in --input", found.len()));
    }
    Ok(())
}

/// The metrics by which trials are compared.
fn metrics(measured: &Measured) -> Metrics {
    Metrics { accuracy: measured.accuracy(), f1: measured.f1(), loss: measured.loss() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(flags: &[&str]) -> Train {
        let words = ["ngrams", "train", "--input", "a.txt"].iter().chain(flags);
        let Command::Train(ngrams) = Arguments::try_parse_from(words).unwrap().command else {
            panic!("another")
        };
        *ngrams
    }

    /// The settings that determine the model, as text.
    fn recipe(flags: &[&str]) -> String {
        let arguments = parsed(flags);
        let model = arguments.model().unwrap();
        let reading = reading(&arguments, model, words(&arguments, model, false));
        format!(
            "{:?} {:?} {}",
            ModelSettings::of(&arguments, model, reading.words),
            reading.words,
            reading.count_min
        )
    }

    #[test]
    fn a_default_is_that_of_the_command_and_other_values_differ_from_it() {
        let optimizers =
            ["sgd", "adagrad", "adam"].map(|name| vec!["--model", "fasttext", "--optimizer", name]);
        for flags in [vec!["--model", "linear"], vec!["--model", "fasttext"]].into_iter().chain(optimizers) {
            let arguments = parsed(&flags);
            let spaces = spaces(&arguments, &Passed::default());
            assert_eq!(spaces.len(), 1);
            assert!(spaces[0].dimensions.len() > 7);
            for dimension in &spaces[0].dimensions {
                for (at, value) in dimension.values.iter().enumerate() {
                    let is_default = at == dimension.default;
                    if is_default && !dimension.is_ordered {
                        continue;
                    }
                    let with = [&flags[..], &[dimension.flag, value.as_str()]].concat();
                    assert_eq!(recipe(&with) == recipe(&flags), is_default, "{with:?}");
                }
            }
        }
    }

    #[test]
    fn both_models_are_searched_unless_a_flag_belongs_to_one() {
        let models = |flags: &[&str]| {
            let spaces = spaces(&parsed(flags), &Passed::default());
            spaces.into_iter().map(|space| space.flags).collect::<Vec<_>>()
        };
        let second = vec![("--model", "fasttext".to_owned())];
        assert_eq!(models(&[]), [vec![], second.clone()]);
        assert_eq!(models(&["--ngrams", "2"]), [vec![], second]);
        assert_eq!(models(&["--c", "2"]), [vec![]]);
        assert_eq!(models(&["--dim", "5"]), [vec![]]);
        assert_eq!(models(&["--model", "linear"]), [vec![]]);
    }
}
