//! Parses the arguments. A flag that has no effect is refused. If a flag belongs to another command, the error names
//! this command.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use program::location::Location;

use crate::arguments::{
    Arguments, Autotune, BalanceName, Command, Computing, DecayName, DeviceName, Embed, EmbedModel, Explain,
    Fit, Given, LossName, LstmFlags, ModelName, Ngrams, Optimisation, OptimizerName, Passed, Pip, Predict,
    Pretrain, Report, Serve, TrainingFlags, Tuned, Vectors, VectorsAction,
};
use crate::defaults::Defaults;
use crate::places::is_any_in_s3;

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

/// Replaces the parser's error about an unknown argument by one that names the right command, where there is one.
fn hint(words: &[OsString], error: clap::Error) -> clap::Error {
    let mut command = Arguments::command();
    let names: Vec<String> = command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
    let of_user = words.iter().skip(1).filter_map(|word| word.to_str());
    let Some(here) = of_user.clone().find(|word| names.iter().any(|name| name == word)) else { return error };
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let unknown = context(ContextKind::InvalidArg);
    let is_nested = of_user.clone().any(|word| ["ngrams", "fit"].contains(&word));
    let is_of_autotune = match here {
        "ngrams" => ["--validation", "--minutes", "--autotune"].contains(&unknown),
        "fit" => ["--minutes", "--autotune"].contains(&unknown),
        _ => false,
    };
    let message = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument
            if here == "launch" && !words.iter().any(|word| word == "--") =>
        {
            "trainer launch requires -- before the command, as in: trainer launch --nproc 2 -- fit reviews.h5"
                .to_owned()
        }
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand if here == "autotune" && !is_nested => {
            "trainer autotune requires the command whose settings are searched, as in: trainer autotune ngrams --input \
             train.txt --validation dev.txt --minutes 5"
                .to_owned()
        }
        ErrorKind::UnknownArgument if is_of_autotune => {
            format!(
                "unexpected argument '{unknown}' found; to search settings, run `trainer autotune {here}` with --validation \
                 and --minutes"
            )
        }
        ErrorKind::UnknownArgument if matches!(unknown, "--pretrain" | "--model") => format!(
            "unexpected argument '{unknown}' found; run `trainer pretrain DATASET --out FOLDER`, then `trainer fit \
             DATASET --init-from FOLDER`"
        ),
        ErrorKind::UnknownArgument if ["ngrams", "embed"].contains(&here) && !unknown.starts_with('-') => {
            format!("unexpected argument '{unknown}' found; pass inputs with --input: trainer {here} --input {unknown}")
        }
        ErrorKind::UnknownArgument => match owners(&command, unknown, here).as_slice() {
            [] => return error,
            owners => {
                let owners: Vec<String> = owners.iter().map(|name| format!("`trainer {name}`")).collect();
                let owners = owners.join(", ");
                format!(
                    "unexpected argument '{unknown}' found; it is a flag of {owners}, not of `trainer {here}`"
                )
            }
        },
        _ => return error,
    };
    command.error(error.kind(), message)
}

/// The commands other than `here` that have a flag.
fn owners(command: &clap::Command, flag: &str, here: &str) -> Vec<String> {
    let Some(name) = flag.strip_prefix("--") else { return Vec::new() };
    let has = |known: &&clap::Command| {
        known.get_arguments().any(|argument| {
            let aliases = argument.get_all_aliases().unwrap_or_default();
            argument.get_long() == Some(name) || aliases.contains(&name)
        })
    };
    let others = command.get_subcommands().filter(|known| known.get_name() != here);
    others.filter(has).map(|known| known.get_name().to_owned()).collect()
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
        Command::Ngrams(ngrams) => return of_ngrams(ngrams, &[]),
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
        && fit.training.resume.as_ref().is_some_and(|from| *from != Location::Local("latest".into()))
    {
        let message = "--resume takes no folder with --folds: each fold resumes from its newest checkpoint";
        return Err(Arguments::command().error(ErrorKind::ArgumentConflict, message));
    }
    refuse_idle(&idle, given)
}

/// Refuses a flag without an effect if it was passed.
fn refuse_idle(idle: &[Idle], given: &ArgMatches) -> Result<(), clap::Error> {
    let is_given = |id: &str| {
        given.try_contains_id(id).is_ok() && given.value_source(id) == Some(ValueSource::CommandLine)
    };
    match idle.iter().find(|Idle { id, is_idle, .. }| *is_idle && is_given(id)) {
        None => Ok(()),
        Some(Idle { id, needs, .. }) => {
            let flag = id.replace('_', "-");
            let message = format!("--{flag} has no effect without {needs}; omit --{flag}, or pass {needs}");
            Err(Arguments::command().error(ErrorKind::ArgumentConflict, message))
        }
    }
}

/// Refuses flags without an effect in a search.
fn of_search(training: &Tuned, given: &ArgMatches) -> Result<(), clap::Error> {
    let refused = |message: &str| Err(Arguments::command().error(ErrorKind::ArgumentConflict, message));
    match training {
        Tuned::Ngrams(tuned) if tuned.ngrams.resume => refused(NO_RESUME),
        Tuned::Ngrams(tuned) => of_ngrams(&tuned.ngrams, &tuned.validation),
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

/// The paths and URLs in the arguments of a command.
fn locations(command: &Command) -> Vec<&Location> {
    match command {
        Command::Fit(fit) => locations_of_fit(fit),
        Command::Pretrain(pretrain) => {
            let Pretrain { dataset, out, lstm, training, .. } = &**pretrain;
            let optional = [out, &lstm.init_from, &training.resume];
            std::iter::once(dataset).chain(optional.into_iter().flatten()).collect()
        }
        Command::Evaluate(evaluate) => std::iter::once(&evaluate.model).chain(&evaluate.datasets).collect(),
        Command::Predict(Predict { model, files, .. }) => std::iter::once(model).chain(files).collect(),
        Command::Explain(Explain { model, input, .. }) => std::iter::once(model).chain(input).collect(),
        Command::Export(export) => std::iter::once(&export.model).chain(&export.out).collect(),
        Command::Report(Report { runs, out, .. }) => runs.iter().chain([out]).collect(),
        Command::Embed(embed) => embed.out.iter().collect(),
        // Their places are checked by `of_ngrams` and `of_search`.
        Command::Ngrams(_)
        | Command::Autotune(_)
        | Command::Serve(_)
        | Command::Vectors(_)
        | Command::Launch(_) => Vec::new(),
    }
}

fn locations_of_fit(fit: &Fit) -> Vec<&Location> {
    let Fit { dataset, out, validation, test, soft_labels, unlabelled, lstm, training, .. } = fit;
    let optional = [out, validation, test, unlabelled, &lstm.init_from, &training.resume];
    std::iter::once(dataset).chain(soft_labels).chain(optional.into_iter().flatten()).collect()
}

/// The URL of an output that `--force` would replace.
fn replaced_in_s3(command: &Command) -> Option<&Location> {
    let out = match command {
        Command::Fit(fit) if fit.training.force => &fit.out,
        Command::Pretrain(pretrain) if pretrain.training.force => &pretrain.out,
        Command::Embed(embed) if embed.force => &embed.out,
        Command::Export(export) if export.force => &export.out,
        _ => return None,
    };
    out.as_ref().filter(|out| matches!(out, Location::S3(_)))
}

/// A flag, and whether it has no effect because of other flags.
#[derive(Clone, Copy)]
struct Idle {
    id: &'static str,
    is_idle: bool,
    /// The flags with which this flag has an effect.
    needs: &'static str,
}

fn idle(id: &'static str, is_idle: bool, needs: &'static str) -> Idle {
    Idle { id, is_idle, needs }
}

fn of_embed(embed: &Embed) -> Vec<Idle> {
    let is_other = embed.model != EmbedModel::CharLstm;
    let of_lstm =
        ["hidden", "char_dim", "outputs", "batch"].map(|id| idle(id, is_other, "--model char-lstm"));
    let of_skip_gram = ["char_ngrams", "buckets", "step_pairs", "average_every"]
        .map(|id| idle(id, !is_other, "--model skip-gram"));
    let is_alone = embed.served.servers.is_empty();
    let of_servers =
        ["token_file", "tls_ca", "tls_certificate", "tls_key"].map(|id| idle(id, is_alone, "--async"));
    // The training folder is that of worker 0.
    let is_other = embed.served.worker.number > 0;
    let of_folder =
        ["out", "resume", "force", "similarity", "held_out"].map(|id| idle(id, is_other, "--worker 0/N"));
    [&of_lstm[..], &of_skip_gram[..], &of_servers[..], &of_folder[..]].concat()
}

fn of_serve(serve: &Serve) -> Vec<Idle> {
    let ids = [
        "listen",
        "shard",
        "workers",
        "staleness",
        "remove_after",
        "memory",
        "log_sync",
        "snapshot_every",
        "until_done",
        "json",
    ];
    ids.map(|id| idle(id, serve.folder.is_none(), "--folder")).to_vec()
}

fn of_vectors(vectors: &Vectors) -> Vec<Idle> {
    match &vectors.action {
        VectorsAction::Pip(Pip { corpus, .. }) => {
            ["window", "shift", "words"].map(|id| idle(id, corpus.is_empty(), "--corpus")).to_vec()
        }
        _ => Vec::new(),
    }
}

fn of_fit(fit: &Fit) -> Vec<Idle> {
    let is_other = !matches!(fit.loss, LossName::Label);
    let is_untested = fit.test.is_none() && fit.folds.is_none() && fit.test_fraction == 0.0;
    let of_fit = vec![
        idle("pos_weight", is_other, "--loss label"),
        idle("class_weight", is_other, "--loss label"),
        idle("soft_labels", is_other, "--loss label"),
        idle("calibrate", matches!(fit.loss, LossName::Rating), "--loss label or five-ratings"),
        idle("test_every", is_untested, "a test split"),
    ];
    [of_fit, of_training(&fit.lstm, &fit.optimisation, &fit.training)].concat()
}

fn of_training(lstm: &LstmFlags, optimisation: &Optimisation, training: &TrainingFlags) -> Vec<Idle> {
    let Optimisation { batch, accumulate, base_batch, optimizer, decay, balance, .. } = *optimisation;
    // The rows are not counted yet, so the default batch size, which depends on their number, is unknown
    // here.
    let defaults = Defaults::of(optimisation.recipe, 0);
    let rows = batch.map_or(u64::MAX, |batch| u64::from(batch) * u64::from(accumulate));
    // The warm-up starts from the rate of the base batch. There is no warm-up unless the base batch is smaller than
    // the batch.
    let climbs = base_batch.is_some_and(|base| base < rows);
    let steps = decay.unwrap_or(defaults.decay) == DecayName::Step;
    let has_decisions = matches!(balance, BalanceName::Dynamic | BalanceName::PerEpoch);
    let has_momentum =
        matches!(optimizer.unwrap_or(defaults.optimizer), OptimizerName::Sgd | OptimizerName::Lars);
    let computing = &training.running.computing;
    let mut all = vec![
        idle("momentum", !has_momentum, "--optimizer sgd or lars"),
        idle("decay_epochs", !steps, "--decay step"),
        idle("decay_factor", !steps, "--decay step"),
        idle("warm_up", !climbs, "a --base-batch of fewer rows than a step"),
        idle("dropout_layers", lstm.layers.unwrap_or(defaults.layers) == 1, "--layers 2 or more"),
        idle("balance_every", !has_decisions, "--balance dynamic or per-epoch"),
        idle("decisions", balance != BalanceName::Replay, "--balance replay"),
        idle("device_memory", computing.device == DeviceName::Cpu, "a GPU"),
    ];
    all.extend(of_computing(computing));
    all
}

fn of_computing(computing: &Computing) -> Vec<Idle> {
    vec![idle("compute", computing.device == DeviceName::Cuda, "--device cpu or auto")]
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

    fn hinted(arguments: &str) -> String {
        let words: Vec<OsString> =
            ["trainer"].into_iter().chain(arguments.split(' ')).map(OsString::from).collect();
        let error = Arguments::command().try_get_matches_from(&words).unwrap_err();
        hint(&words, error).to_string()
    }

    #[test]
    fn a_flag_of_another_command_is_named_with_that_command() {
        for (arguments, expected) in [
            (
                "fit a.h5 --candidates 9",
                "'--candidates' found; it is a flag of `trainer pretrain`, not of `trainer fit`",
            ),
            ("pretrain a.h5 --pos-weight 2", "it is a flag of `trainer fit`, not of `trainer pretrain`"),
            ("pretrain a.h5 --early-stopping 2", "it is a flag of `trainer fit`, not of `trainer pretrain`"),
            (
                "fit a.h5 --format text",
                "it is a flag of `trainer ngrams`, `trainer embed`, `trainer evaluate`, `trainer predict`, `trainer \
                 explain`, not of `trainer fit`",
            ),
            (
                "fit a.h5 --pretrain",
                "run `trainer pretrain DATASET --out FOLDER`, then `trainer fit DATASET --init-from",
            ),
            ("ngrams a.txt", "pass inputs with --input: trainer ngrams --input a.txt"),
            ("embed a.txt", "pass inputs with --input: trainer embed --input a.txt"),
            ("autotune --validation a.txt --minutes 5", "as in: trainer autotune ngrams --input"),
            ("autotune train.txt", "as in: trainer autotune ngrams --input"),
            ("autotune fit a.h5 --minutes 5 --candidates 9", "it is a flag of `trainer pretrain`, not of"),
            ("ngrams --input a.txt --validation b.txt", "run `trainer autotune ngrams` with --validation"),
            ("fit a.h5 --minutes 5", "run `trainer autotune fit` with --validation and --minutes"),
            ("launch --nproc 2 fit a.h5", "requires -- before the command"),
            ("launch --nproc 2", "requires -- before the command"),
        ] {
            let found = hinted(arguments);
            assert!(found.contains(expected), "{arguments}: {found}");
        }
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
