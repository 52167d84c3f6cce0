//! Refuses flags that have no effect together with other flags.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::arguments::{
    Arguments, Command, Computing, DecayName, DeviceName, LossName, LstmFlags, Optimisation, OptimizerName,
    TrainingFlags,
};
use crate::defaults::Defaults;

/// Parses the program's arguments. Errors of the parser include flags without effect.
pub fn parse() -> Result<Arguments, clap::Error> {
    let matches = Arguments::command().try_get_matches()?;
    let arguments = Arguments::from_arg_matches(&matches)?;
    check(&arguments, &matches)?;
    Ok(arguments)
}

/// Refuses a flag that was set and has no effect.
fn check(arguments: &Arguments, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((_, given)) = matches.subcommand() else { return Ok(()) };
    let idle = match &arguments.command {
        Command::Fit(fit) => {
            let loss = idle("pos_weight", !matches!(fit.loss, LossName::Label), "--loss label");
            [vec![loss], of_training(&fit.lstm, &fit.optimisation, &fit.training)].concat()
        }
        Command::Pretrain(pretrain) => {
            of_training(&pretrain.lstm, &pretrain.optimisation, &pretrain.training)
        }
        Command::Evaluate(evaluate) => of_computing(&evaluate.running.computing),
        Command::Predict(predict) => of_computing(&predict.computing),
        Command::Export(_) | Command::Report(_) | Command::Launch(_) => Vec::new(),
    };
    let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
    match idle.iter().find(|Idle { id, is_idle, .. }| *is_idle && is_given(id)) {
        None => Ok(()),
        Some(Idle { id, needs, .. }) => {
            let flag = id.replace('_', "-");
            let message = format!("--{flag} does nothing without {needs}; leave it out, or add that");
            Err(Arguments::command().error(ErrorKind::ArgumentConflict, message))
        }
    }
}

/// A flag, and whether other flags make it ineffective.
#[derive(Clone, Copy)]
struct Idle {
    id: &'static str,
    is_idle: bool,
    /// The setting with which it has an effect.
    needs: &'static str,
}

fn idle(id: &'static str, is_idle: bool, needs: &'static str) -> Idle {
    Idle { id, is_idle, needs }
}

fn of_training(lstm: &LstmFlags, optimisation: &Optimisation, training: &TrainingFlags) -> Vec<Idle> {
    let Optimisation { batch, accumulate, base_batch, optimizer, decay, .. } = *optimisation;
    // The rows are not counted yet, so a batch size that depends on them may have any value.
    let defaults = Defaults::of(optimisation.recipe, 0);
    let rows = batch.map_or(u64::MAX, |batch| u64::from(batch) * u64::from(accumulate));
    // The warm-up starts from the rate of the base batch. Without a base batch smaller than the batch, there is none.
    let climbs = base_batch.is_some_and(|base| base < rows);
    let steps = decay.unwrap_or(defaults.decay) == DecayName::Step;
    let computing = &training.running.computing;
    let mut all = vec![
        idle("momentum", optimizer.unwrap_or(defaults.optimizer) != OptimizerName::Sgd, "--optimizer sgd"),
        idle("decay_epochs", !steps, "--decay step"),
        idle("decay_factor", !steps, "--decay step"),
        idle("warm_up", !climbs, "a --base-batch of fewer rows than a step"),
        idle("dropout_layers", lstm.layers.unwrap_or(defaults.layers) == 1, "--layers 2 or more"),
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
    use super::*;

    fn told(arguments: &str) -> Option<String> {
        let words = ["trainer"].into_iter().chain(arguments.split(' '));
        let matches = Arguments::command().try_get_matches_from(words).unwrap();
        let arguments = Arguments::from_arg_matches(&matches).unwrap();
        check(&arguments, &matches).err().map(|error| error.to_string())
    }

    #[test]
    fn a_flag_that_does_nothing_is_refused_by_what_it_needs() {
        for (flags, flag, needs) in [
            ("--loss rating --pos-weight 2", "--pos-weight", "--loss label"),
            ("--loss five-ratings --pos-weight balanced", "--pos-weight", "--loss label"),
            ("--optimizer adam --momentum 0.5", "--momentum", "--optimizer sgd"),
            ("--optimizer adamw --momentum 0.9", "--momentum", "--optimizer sgd"),
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
            ("--device cpu --device-memory 100", "--device-memory", "a GPU"),
            ("--device cuda --compute pytorch", "--compute", "--device cpu or auto"),
        ] {
            let told = told(&format!("fit a.h5 --out b {flags}")).unwrap_or_default();
            assert!(told.contains(&format!("{flag} does nothing without {needs};")), "{flags}: {told}");
        }
        let told = told("evaluate m a.h5 --device cuda --compute auto").unwrap_or_default();
        assert!(told.contains("--compute does nothing without "), "{told}");
    }

    #[test]
    fn a_flag_that_does_something_is_taken() {
        for flags in [
            "",
            "--loss label --pos-weight 2",
            "--optimizer sgd --momentum 0.5",
            "--decay step --decay-epochs 2 --decay-factor 0.5",
            "--warm-up 100 --batch 64 --base-batch 32",
            "--warm-up 100 --batch 32 --accumulate 2 --base-batch 32",
            "--layers 2 --dropout-layers 0.5",
            "--recipe original --dropout-layers 0.2 --momentum 0.5",
            "--device auto --device-memory 100 --compute pytorch",
        ] {
            let arguments = format!("fit a.h5 --out b {flags}");
            assert_eq!(told(arguments.trim_end()), None, "{flags}");
        }
    }

    #[test]
    fn a_report_names_settings_by_flags_that_there_are() {
        let mut command = Arguments::command();
        command.build();
        let flags: Vec<String> = ["fit", "pretrain"]
            .iter()
            .flat_map(|name| command.find_subcommand(name).unwrap().get_arguments())
            .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
            .collect();
        for (place, name) in report::SETTING_NAMES {
            let flag = name.split(',').next().unwrap_or(name);
            assert!(!name.starts_with("--") || flags.iter().any(|known| known == flag), "{place}: {name}");
        }
    }
}
