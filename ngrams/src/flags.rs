//! Parses the arguments. A flag that has no effect is refused.

use std::ffi::OsString;

use clap::ArgMatches;
use clap::error::ErrorKind;
use program::location::Location;
use training::arguments::idle::{Idle, conflict, idle, of_labelled, refuse_idle, refuse_replaced, s3};
use training::places::{is_any_in_s3, is_any_url_of_s3, is_dataset};

use crate::arguments::{Arguments, Autotune, Command, ModelName, Train};

/// Parses the program's arguments. Errors, besides those of the parser: a flag without an effect.
pub fn parse(words: &[OsString]) -> Result<Arguments, clap::Error> {
    training::arguments::parse(words, option_env!("SENTIMILL_COMMIT"), &[], hint, check)
}

/// Refuses a flag that was passed and has no effect.
fn check(arguments: &Arguments, given: &ArgMatches) -> Result<(), clap::Error> {
    let idle = match &arguments.command {
        Command::Train(train) => of_training(train, &[])?,
        Command::Autotune(autotune) => {
            let Autotune { train, validation, .. } = &**autotune;
            if train.resume {
                return Err(conflict::<Arguments>("--resume has no effect in a search; omit --resume"));
            }
            if train.test_every {
                return Err(conflict::<Arguments>(
                    "--test-every has no effect in a search; omit --test-every",
                ));
            }
            let initial =
                [("--init-from", &train.init_from), ("--pretrained-vectors", &train.pretrained_vectors)];
            if let Some((flag, _)) = initial.iter().find(|(_, path)| path.is_some()) {
                return Err(conflict::<Arguments>(format!(
                    "{flag} has no effect in a search, which changes sizes; omit it, and pass it to `ngrams train`"
                )));
            }
            of_training(train, validation)?
        }
        Command::Evaluate(evaluate) => {
            let has_texts = evaluate.files.iter().any(|file| !is_dataset(&file.to_string()));
            let places = [&evaluate.model].into_iter().chain(&evaluate.files);
            [of_labelled(has_texts), of_places(places)].concat()
        }
        Command::Predict(predict) => {
            predict.of_all.check::<Arguments>()?;
            of_places([&predict.of_all.model].into_iter().chain(&predict.of_all.files))
        }
        Command::Explain(explain) => of_places([&explain.model].into_iter().chain(&explain.input)),
        Command::Export(export) => of_places([&export.model].into_iter().chain(&export.out)),
        Command::Report(report) => of_places(report.runs.iter().chain([&report.out])),
    };
    refuse_idle::<Arguments>(&idle, given)
}

fn of_places<'a>(places: impl Iterator<Item = &'a Location>) -> Vec<Idle> {
    vec![s3(is_any_in_s3(places))]
}

/// Refuses a flag of the other model. `validation` are further inputs. Returns the flags that may have no effect.
fn of_training(train: &Train, validation: &[String]) -> Result<Vec<Idle>, clap::Error> {
    refuse_replaced::<Arguments>(train.out.as_ref(), train.force)?;
    let places = train.input.iter().chain(&train.test).chain(validation);
    let of_weights = train.init_from.iter().chain(&train.pretrained_vectors);
    let has_url = is_any_in_s3(train.out.iter().chain(of_weights)) || is_any_url_of_s3(places);
    if let Err((flag, model)) = train.model() {
        let other = match model {
            ModelName::Linear => ModelName::FastText,
            ModelName::FastText => ModelName::Linear,
        };
        return Err(conflict::<Arguments>(format!(
            "{flag} has no effect with --model {}; omit {flag}, or pass --model {}",
            model.name(),
            other.name()
        )));
    }
    let is_of_bytes = train.format.is_fasttext();
    let is_untested = train.test.is_empty() && train.test_fraction == 0.0 && train.validation_fraction == 0.0;
    let untested = idle("test_every", is_untested, "a test or validation split");
    Ok(vec![
        s3(has_url),
        untested,
        idle("invalid_utf8_max", is_of_bytes, "--format json, csv, tsv or polarity-csv"),
    ])
}

/// The command that has a flag of a search.
fn hint(_: &[OsString], _: ErrorKind, command: &str, unknown: &str) -> Option<String> {
    let is_of_search = command == "train" && ["--validation", "--minutes", "--autotune"].contains(&unknown);
    is_of_search.then(|| {
        format!(
            "unexpected argument '{unknown}' found; to search settings, run `ngrams autotune` with --validation and --minutes"
        )
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn refusal(arguments: &str) -> Option<String> {
        let words = ["ngrams"].into_iter().chain(arguments.split(' ')).map(OsString::from);
        parse(&words.collect::<Vec<_>>()).err().map(|error| error.to_string())
    }

    #[test]
    fn a_flag_that_does_nothing_is_refused_by_what_it_needs() {
        for command in ["train", "autotune --validation b --minutes 1"] {
            let told = refusal(&format!("{command} --input a --format fasttext --invalid-utf8-max 1"));
            let expected =
                "--invalid-utf8-max has no effect without --format json, csv, tsv or polarity-csv;";
            assert!(told.unwrap_or_default().contains(expected), "{command}");
        }
        for (arguments, expected) in [
            ("train --input a --s3 region=eu-central-1", "--s3 has no effect without an s3:// URL;"),
            ("train --input a --model linear --dim 5", "--dim has no effect with --model linear; omit --dim"),
            ("train --input a --out s3://bucket/a --force", "nothing in S3 is replaced"),
            ("predict m a.h5 b.h5 --soft c.npy", "--soft requires one dataset, found 2 files"),
            ("evaluate m a.h5 --label-field a", "--label-field has no effect without a file of texts;"),
            ("evaluate m a.h5 --s3 region=eu-central-1", "--s3 has no effect without an s3:// URL;"),
            ("autotune --input a --validation b --minutes 1 --resume", "--resume has no effect in a search"),
            (
                "autotune --input a --validation b --minutes 1 --init-from m",
                "--init-from has no effect in a search",
            ),
            (
                "train --input a --model linear --pretrained-vectors v",
                "--pretrained-vectors has no effect with --model",
            ),
            ("train --input a --init-from m --pretrained-vectors v", "cannot be used with"),
            ("train --input a --test-every", "--test-every has no effect without a test or validation split"),
            (
                "train --input a --test b --test-every --model linear",
                "--test-every has no effect with --model linear",
            ),
            ("train a.txt", "pass inputs with --input: ngrams train --input a.txt"),
            ("train --input a.txt --validation b.txt", "run `ngrams autotune` with --validation"),
        ] {
            let told = refusal(arguments).unwrap_or_default();
            assert!(told.contains(expected), "{arguments}: {told}");
        }
        assert_eq!(refusal("train --input a --invalid-utf8-max 1"), None);
        assert_eq!(refusal("evaluate s3://bucket/m a.txt --s3 region=eu-central-1"), None);
    }

    #[test]
    fn a_flag_of_one_ngram_model_selects_it_and_the_other_model_refuses_it() {
        let model = |flags: &str| {
            let words = format!("ngrams train --input a.txt {flags}");
            let Command::Train(train) =
                Arguments::try_parse_from(words.trim_end().split(' ')).unwrap().command
            else {
                panic!("another command")
            };
            train.model()
        };
        assert_eq!(model(""), Ok(ModelName::Linear));
        assert_eq!(model("--ngrams 2 --epochs 5 --threads 2"), Ok(ModelName::Linear));
        assert_eq!(model("--ngrams 2 --dim 10 --epochs 5 --rate 0.5 --threads 2"), Ok(ModelName::FastText));
        assert_eq!(model("--loss bce"), Ok(ModelName::FastText));
        assert_eq!(model("--model linear --dim 10"), Err(("--dim".to_owned(), ModelName::Linear)));
        let told = refusal("train --input a.txt --model fasttext --weights nb").unwrap_or_default();
        assert!(
            told.contains(
                "--weights has no effect with --model fasttext; omit --weights, or pass --model linear"
            ),
            "{told}"
        );
    }
}
