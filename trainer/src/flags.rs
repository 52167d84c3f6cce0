//! Parses the arguments. A flag that has no effect is refused. If a flag belongs to another command, the error names
//! this command.

mod idle;
mod locations;
mod unknown;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use program::location::Location;

use crate::arguments::{
    Arguments, Autotune, BalanceName, Command, Fit, Given, ModelName, Ngrams, Passed, Tuned,
};
use crate::places::is_any_in_s3;
use idle::{idle, of_computing, of_embed, of_fit, of_lines, of_serve, of_training, of_vectors, refuse_idle};
use locations::{locations, locations_of_fit, replaced_in_s3};
use unknown::hint;

/// Parses the program's arguments. Errors, besides those of the parser: a flag without an effect.
///
/// `commit` and `libraries` are for `--version`, as in [`arguments::described`].
pub fn parse(commit: Option<&str>, libraries: &[(&str, &str)]) -> Result<Arguments, clap::Error> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let mut command = arguments::described(Arguments::command(), commit, libraries);
    let matches = command.try_get_matches_from_mut(&words).map_err(|error| hint(&words, error))?;
    let mut arguments = Arguments::from_arg_matches(&matches)?;
    check(&arguments, &matches)?;
    note_given(&mut arguments.command, &matches);
    note_passed(&mut arguments.command, &command, &matches);
    Ok(arguments)
}

/// Stores the words that were passed, for the command that a search prints.
fn note_passed(command: &mut Command, program: &clap::Command, matches: &ArgMatches) {
    let Command::Autotune(autotune) = command else { return };
    let Some((name, nested, matches)) = nested(program, matches) else { return };
    let Some(definition) = nested.find_subcommand(name) else { return };
    let passed = Passed::of(definition, matches);
    match &mut autotune.training {
        Tuned::Ngrams(tuned) => tuned.passed = passed,
        Tuned::Fit(tuned) => tuned.passed = passed,
    }
}

/// A command within a command: its name, the definition of the outer one, and its arguments.
fn nested<'a>(
    program: &'a clap::Command,
    matches: &'a ArgMatches,
) -> Option<(&'a str, &'a clap::Command, &'a ArgMatches)> {
    let (outer, matches) = matches.subcommand()?;
    let (name, matches) = matches.subcommand()?;
    Some((name, program.find_subcommand(outer)?, matches))
}

/// Stores the flags that were passed, for commands that check them after they have detected the family of the model.
fn note_given(command: &mut Command, matches: &ArgMatches) {
    let Some((_, matches)) = matches.subcommand() else { return };
    let given = match command {
        Command::Evaluate(evaluate) => &mut evaluate.given,
        Command::Predict(predict) => &mut predict.given,
        Command::Explain(explain) => &mut explain.given,
        Command::Export(export) => &mut export.given,
        Command::Fit(_)
        | Command::Pretrain(_)
        | Command::Ngrams(_)
        | Command::Embed(_)
        | Command::Serve(_)
        | Command::Autotune(_)
        | Command::Report(_)
        | Command::Vectors(_)
        | Command::Launch(_) => return,
    };
    *given = Given::of(matches);
}

/// Refuses a flag that was passed and has no effect.
fn check(arguments: &Arguments, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((_, given)) = matches.subcommand() else { return Ok(()) };
    let idle = match &arguments.command {
        Command::Autotune(Autotune { training }) => {
            let Some((_, given)) = given.subcommand() else { return Ok(()) };
            return of_search(training, given);
        }
        Command::Fit(fit) => of_fit(fit),
        Command::Pretrain(pretrain) => {
            of_training(&pretrain.lstm, &pretrain.optimisation, &pretrain.training)
        }
        Command::Evaluate(evaluate) => of_computing(&evaluate.running.computing),
        Command::Predict(predict) => of_computing(&predict.computing),
        Command::Explain(explain) => of_computing(&explain.computing),
        Command::Ngrams(ngrams) => {
            of_ngrams(ngrams, &[])?;
            return refuse_idle(&of_lines(ngrams), given);
        }
        Command::Vectors(vectors) => {
            let Some((_, given)) = given.subcommand() else { return Ok(()) };
            return refuse_idle(&of_vectors(vectors), given);
        }
        Command::Embed(embed) => of_embed(embed),
        Command::Serve(serve) => of_serve(serve),
        Command::Export(_) | Command::Report(_) | Command::Launch(_) => Vec::new(),
    };
    if let Command::Predict(predict) = &arguments.command
        && predict.soft.is_some()
        && predict.files.len() != 1
    {
        let message = format!(
            "--soft requires one dataset, found {} files; run `trainer predict MODEL DATASET --soft F.npy`",
            predict.files.len()
        );
        return Err(Arguments::command().error(ErrorKind::WrongNumberOfValues, message));
    }
    let is_of_s3 = is_any_in_s3(locations(&arguments.command).into_iter());
    let idle = [idle, vec![self::idle("s3", !is_of_s3, "an s3:// URL")]].concat();
    if let Some(out) = replaced_in_s3(&arguments.command) {
        return Err(Arguments::command().error(ErrorKind::ArgumentConflict, not_replaced(out)));
    }
    if let Command::Fit(fit) = &arguments.command
        && fit.folds.is_some()
        && let Some(message) = refused_with_folds(fit)
    {
        return Err(Arguments::command().error(ErrorKind::ArgumentConflict, message));
    }
    refuse_idle(&idle, given)
}

/// Why flags are refused that are for one training.
fn refused_with_folds(fit: &Fit) -> Option<&'static str> {
    if fit.training.resume.as_ref().is_some_and(|from| *from != Location::Local("latest".into())) {
        return Some("--resume takes no folder with --folds: each fold resumes from its newest checkpoint");
    }
    if fit.training.trace.is_some() {
        return Some("--trace cannot be used with --folds: each fold would replace the file; omit --trace");
    }
    if fit.optimisation.balance == BalanceName::Replay {
        return Some(
            "--balance replay cannot be used with --folds: the decisions are those of one training; omit --folds, or \
             pass --balance dynamic",
        );
    }
    None
}

/// Refuses flags without an effect in a search.
fn of_search(training: &Tuned, given: &ArgMatches) -> Result<(), clap::Error> {
    let refused = |message: &str| Err(Arguments::command().error(ErrorKind::ArgumentConflict, message));
    match training {
        Tuned::Ngrams(tuned) if tuned.ngrams.resume => refused(NO_RESUME),
        Tuned::Ngrams(tuned) => {
            of_ngrams(&tuned.ngrams, &tuned.validation)?;
            refuse_idle(&of_lines(&tuned.ngrams), given)
        }
        Tuned::Fit(tuned) if tuned.fit.training.resume.is_some() => refused(NO_RESUME),
        Tuned::Fit(tuned) if tuned.fit.folds.is_some() => refused(
            "--folds cannot be searched; omit --folds, and run the printed command with --folds to test its settings",
        ),
        Tuned::Fit(tuned) => {
            let fit = &tuned.fit;
            let is_of_s3 = is_any_in_s3(locations_of_fit(fit).into_iter());
            let idle = [of_fit(fit), vec![idle("s3", !is_of_s3, "an s3:// URL")]].concat();
            refuse_idle(&idle, given)
        }
    }
}

const NO_RESUME: &str = "--resume has no effect in a search; omit --resume";

fn not_replaced(out: &Location) -> String {
    format!("--force has no effect on {out}: nothing in S3 is replaced; choose another --out")
}

/// Refuses a flag of the other n-gram model. `validation` are further inputs.
fn of_ngrams(ngrams: &Ngrams, validation: &[String]) -> Result<(), clap::Error> {
    let refused = |message: String| Err(Arguments::command().error(ErrorKind::ArgumentConflict, message));
    let out = ngrams.out.as_ref().filter(|out| matches!(out, Location::S3(_)));
    let mut places = ngrams.input.iter().chain(&ngrams.test).chain(validation);
    let is_of_s3 = out.is_some() || places.any(|place| place.starts_with("s3"));
    if let (Some(out), true) = (out, ngrams.force) {
        return refused(not_replaced(out));
    }
    if ngrams.storage.s3.is_some() && !is_of_s3 {
        return refused(
            "--s3 has no effect without an s3:// URL; omit --s3, or pass an s3:// URL".to_owned(),
        );
    }
    match ngrams.model() {
        Ok(_) => Ok(()),
        Err((flag, model)) => {
            let other = match model {
                ModelName::Linear => ModelName::FastText,
                ModelName::FastText => ModelName::Linear,
            };
            refused(format!(
                "{flag} has no effect with --model {}; omit {flag}, or pass --model {}",
                model.name(),
                other.name()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn refusal(arguments: &str) -> Option<String> {
        let words = ["trainer"].into_iter().chain(arguments.split(' '));
        let matches = Arguments::command().try_get_matches_from(words).unwrap();
        let arguments = Arguments::from_arg_matches(&matches).unwrap();
        check(&arguments, &matches).err().map(|error| error.to_string())
    }

    #[test]
    fn a_flag_that_does_nothing_is_refused_by_what_it_needs() {
        for (flags, flag, needs) in [
            ("--loss rating --pos-weight 2", "--pos-weight", "--loss label"),
            ("--test-every --test-fraction 0", "--test-every", "a test split"),
            ("--loss five-ratings --pos-weight balanced", "--pos-weight", "--loss label"),
            ("--loss rating --class-weight balanced", "--class-weight", "--loss label"),
            ("--loss five-ratings --soft-labels a.npy", "--soft-labels", "--loss label"),
            ("--loss rating --calibrate platt", "--calibrate", "--loss label or five-ratings"),
            ("--optimizer adam --momentum 0.5", "--momentum", "--optimizer sgd or lars"),
            ("--optimizer adamw --momentum 0.9", "--momentum", "--optimizer sgd or lars"),
            ("--decay constant --decay-epochs 2", "--decay-epochs", "--decay step"),
            ("--decay cosine --decay-factor 0.5", "--decay-factor", "--decay step"),
            ("--warm-up 100", "--warm-up", "a --base-batch of fewer rows than a step"),
            (
                "--warm-up 100 --batch 64 --base-batch 64",
                "--warm-up",
                "a --base-batch of fewer rows than a step",
            ),
            ("--dropout-layers 0.5", "--dropout-layers", "--layers 2 or more"),
            ("--layers 1 --dropout-layers 0.5", "--dropout-layers", "--layers 2 or more"),
            ("--balance-every 5", "--balance-every", "--balance dynamic or per-epoch"),
            ("--balance dynamic --decisions c", "--decisions", "--balance replay"),
            ("--device cpu --device-memory 100MiB", "--device-memory", "a GPU"),
            ("--device cuda --compute pytorch", "--compute", "--device cpu or auto"),
            ("--s3 region=eu-central-1", "--s3", "an s3:// URL"),
        ] {
            let told = refusal(&format!("fit a.h5 --out b {flags}")).unwrap_or_default();
            assert!(told.contains(&format!("{flag} has no effect without {needs};")), "{flags}: {told}");
        }
        for command in ["ngrams", "autotune ngrams --validation b --minutes 1"] {
            let told = refusal(&format!("{command} --input a --format fasttext --invalid-utf8-max 1"));
            let expected =
                "--invalid-utf8-max has no effect without --format json, csv, tsv or polarity-csv;";
            assert!(told.unwrap_or_default().contains(expected), "{command}");
        }
        assert_eq!(refusal("ngrams --input a --invalid-utf8-max 1"), None);
        let told = refusal("evaluate m a.h5 --device cuda --compute auto").unwrap_or_default();
        assert!(told.contains("--compute has no effect without "), "{told}");
    }

    #[test]
    fn a_flag_that_does_something_is_taken() {
        for flags in [
            "",
            "--loss label --pos-weight 2",
            "--loss five-ratings --calibrate temperature --threshold 0.3",
            "--optimizer sgd --momentum 0.5",
            "--optimizer lars --momentum 0.5",
            "--decay step --decay-epochs 2 --decay-factor 0.5",
            "--warm-up 100 --batch 64 --base-batch 32",
            "--warm-up 100 --batch 32 --accumulate 2 --base-batch 32",
            "--layers 2 --dropout-layers 0.5",
            "--recipe original --dropout-layers 0.2 --momentum 0.5",
            "--device auto --device-memory 100MiB --compute pytorch",
            "--test s3://bucket/test.h5 --s3 region=eu-central-1",
            "--init-from s3://bucket/model --s3 region=eu-central-1",
            "--validation s3://bucket/validation.h5 --s3 region=eu-central-1",
            "--test-every --test test.h5",
            "--balance per-epoch --balance-every 2",
            "--balance replay --decisions c",
        ] {
            let arguments = format!("fit a.h5 --out b {flags}");
            assert_eq!(refusal(arguments.trim_end()), None, "{flags}");
        }
    }

    #[test]
    fn a_replacement_in_s3_is_refused() {
        for arguments in [
            "fit a.h5 --out s3://bucket/b --force",
            "pretrain a.h5 --out s3://bucket/b --force",
            "export a --out s3://bucket/b --force",
            "ngrams --input a --out s3://bucket/b --force",
        ] {
            let told = refusal(arguments).unwrap_or_default();
            assert!(
                told.contains("--force has no effect on s3://bucket/b: nothing in S3 is replaced"),
                "{told}"
            );
        }
        assert_eq!(refusal("fit s3://bucket/a.h5 --out b --force"), None);
    }

    #[test]
    fn folds_do_not_resume_from_one_checkpoint() {
        let told =
            refusal("fit a.h5 --folds 3 --resume a.folds/fold-1/checkpoints/step-9").unwrap_or_default();
        assert!(told.contains("--resume takes no folder with --folds"), "{told}");
        assert_eq!(refusal("fit a.h5 --folds 3 --test-every --test-fraction 0 --resume"), None);
    }

    #[test]
    fn folds_are_neither_traced_nor_replayed() {
        for (flags, expected) in [
            ("--trace t.json", "--trace cannot be used with --folds"),
            ("--balance replay --decisions a", "--balance replay cannot be used with --folds"),
        ] {
            let message = refusal(&format!("fit a.h5 --folds 3 {flags}")).unwrap_or_default();
            assert!(message.contains(expected), "{flags}: {message}");
            assert_eq!(refusal(&format!("fit a.h5 {flags}")), None);
        }
        assert_eq!(refusal("fit a.h5 --folds 3 --balance dynamic"), None);
    }

    #[test]
    fn soft_labels_are_predicted_for_one_dataset() {
        for (files, found) in [("", "found 0 files"), (" a.h5 b.h5", "found 2 files")] {
            let told = refusal(&format!("predict m{files} --soft a.npy")).unwrap_or_default();
            assert!(
                told.contains(&format!("--soft requires one dataset, {found}; run `trainer predict")),
                "{told}"
            );
        }
        assert_eq!(refusal("predict m a.h5 --soft a.npy"), None);
        let words = "trainer predict m a.h5 --soft a.npy --format text";
        let told = Arguments::command().try_get_matches_from(words.split(' ')).unwrap_err().to_string();
        assert!(told.contains("'--soft <F.npy>' cannot be used with '--format"), "{told}");
    }

    #[test]
    fn a_flag_of_one_ngram_model_selects_it_and_the_other_model_refuses_it() {
        let model = |flags: &str| {
            let words = format!("trainer ngrams --input a.txt {flags}");
            let Command::Ngrams(ngrams) =
                Arguments::try_parse_from(words.trim_end().split(' ')).unwrap().command
            else {
                panic!("another command")
            };
            ngrams.model()
        };
        assert_eq!(model(""), Ok(ModelName::Linear));
        assert_eq!(model("--ngrams 2 --epochs 5 --threads 2"), Ok(ModelName::Linear));
        assert_eq!(model("--ngrams 2 --dim 10 --epochs 5 --rate 0.5 --threads 2"), Ok(ModelName::FastText));
        assert_eq!(model("--loss bce"), Ok(ModelName::FastText));
        assert_eq!(model("--model linear --dim 10"), Err(("--dim".to_owned(), ModelName::Linear)));
        let told = refusal("ngrams --input a.txt --model fasttext --weights nb").unwrap_or_default();
        assert!(
            told.contains(
                "--weights has no effect with --model fasttext; omit --weights, or pass --model linear"
            ),
            "{told}"
        );
    }

    #[test]
    fn usual_names_of_flags_are_accepted() {
        for (usual, ours) in [
            ("--lr 0.1", "--rate 0.1"),
            ("--learning-rate 0.1", "--rate 0.1"),
            ("--batch-size 8", "--batch 8"),
            ("--hidden-size 16", "--hidden 16"),
            ("--num-layers 2", "--layers 2"),
            ("--embedding-dim 8", "--embedding 8"),
            ("--warmup-steps 5 --base-batch 1", "--warm-up 5 --base-batch 1"),
            ("--warmup 5 --base-batch 1", "--warm-up 5 --base-batch 1"),
            ("--grad-clip 1", "--clip 1"),
            ("--max-grad-norm 1", "--clip 1"),
            ("--early-stopping 3", "--patience 3"),
            ("--num-workers 2", "--loaders 2"),
            ("-o b", "--out b"),
        ] {
            let parsed = |flags: &str| {
                let words = format!("trainer fit a.h5 {flags}");
                format!("{:?}", Arguments::try_parse_from(words.split(' ')).unwrap())
            };
            assert_eq!(parsed(usual), parsed(ours), "{usual}");
        }
    }

    #[test]
    fn a_report_names_settings_by_flags_that_there_are() {
        let mut command = Arguments::command();
        command.build();
        let flags: Vec<String> = ["fit", "pretrain", "ngrams", "embed"]
            .iter()
            .flat_map(|name| command.find_subcommand(name).unwrap().get_arguments())
            .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
            .collect();
        for (place, name) in runs::recipe::SETTING_NAMES {
            let flag = name.split(',').next().unwrap_or(name);
            assert!(!name.starts_with("--") || flags.iter().any(|known| known == flag), "{place}: {name}");
        }
    }
}
