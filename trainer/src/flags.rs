//! Parses the arguments. A flag that has no effect is refused. If a flag belongs to another command, the error names
//! this command.

mod idle;
mod locations;
mod moved;
mod unknown;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory};
use idle::{of_computing, of_evaluation, of_fit, of_training};
use locations::{locations, locations_of_fit, out};
use moved::moved;
use program::location::Location;
use training::arguments::idle::{conflict, refuse_idle, refuse_replaced, s3};
use training::places::is_any_in_s3;
use unknown::hint;

use crate::arguments::{Arguments, Autotune, BalanceName, Command, Fit};

/// Parses the program's arguments. Errors, besides those of the parser: a flag without an effect.
pub fn parse(words: &[OsString]) -> Result<Arguments, clap::Error> {
    if let Some(command) = words.get(1..).and_then(moved) {
        let message = format!("this command is in another program now; run `{command}`");
        return Err(Arguments::command().error(ErrorKind::InvalidSubcommand, message));
    }
    let libraries = [("PyTorch", c10d::compiled_version())];
    training::arguments::parse(words, option_env!("SENTIMILL_COMMIT"), &libraries, hint, check)
}

/// Refuses a flag that was passed and has no effect.
fn check(arguments: &Arguments, given: &ArgMatches) -> Result<(), clap::Error> {
    let mut idle = match &arguments.command {
        Command::Autotune(autotune) => return of_search(autotune, given),
        Command::Fit(fit) => of_fit(fit),
        Command::Pretrain(pretrain) => {
            of_training(&pretrain.lstm, &pretrain.optimisation, &pretrain.training)
        }
        Command::Evaluate(evaluate) => of_evaluation(evaluate),
        Command::Predict(predict) => {
            predict.of_all.check::<Arguments>()?;
            of_computing(&predict.computing)
        }
        Command::Explain(explain) => of_computing(&explain.computing),
        Command::Export(_) | Command::Report(_) | Command::Launch(_) => Vec::new(),
    };
    idle.push(s3(is_any_in_s3(locations(&arguments.command).into_iter())));
    let (out, force) = out(&arguments.command);
    refuse_replaced::<Arguments>(out, force)?;
    if let Command::Fit(fit) = &arguments.command
        && fit.folds.is_some()
        && let Some(message) = refused_with_folds(fit)
    {
        return Err(conflict::<Arguments>(message));
    }
    refuse_idle::<Arguments>(&idle, given)
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
fn of_search(Autotune { fit, .. }: &Autotune, given: &ArgMatches) -> Result<(), clap::Error> {
    if fit.training.resume.is_some() {
        return Err(conflict::<Arguments>("--resume has no effect in a search; omit --resume"));
    }
    if fit.folds.is_some() {
        return Err(conflict::<Arguments>(
            "--folds cannot be searched; omit --folds, and run the printed command with --folds to test its settings",
        ));
    }
    let idle = [of_fit(fit), vec![s3(is_any_in_s3(locations_of_fit(fit).into_iter()))]].concat();
    refuse_idle::<Arguments>(&idle, given)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn refusal(arguments: &str) -> Option<String> {
        let words = ["trainer"].into_iter().chain(arguments.split(' ')).map(OsString::from);
        parse(&words.collect::<Vec<_>>()).err().map(|error| error.to_string())
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
        for (arguments, flag) in [
            ("a.h5 --label-field kind", "--label-field has no effect without a file of texts"),
            ("a.h5 --positive-from 3", "--positive-from has no effect without a file of texts"),
            ("a.h5 --format csv", "--format has no effect without a file of texts"),
            ("a.csv --loaders 8", "--loaders has no effect without a dataset"),
        ] {
            let told = refusal(&format!("evaluate m {arguments}")).unwrap_or_default();
            assert!(told.contains(flag), "{arguments}: {told}");
        }
        assert_eq!(refusal("evaluate m a.h5 a.csv --loaders 8 --format csv"), None);
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
}
