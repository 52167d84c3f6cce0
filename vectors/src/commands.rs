//! The commands. Each module converts the arguments of a command into calls of other crates.

mod convert;
mod evaluate;
mod pip;
mod serve;
mod train;

use std::process::ExitCode;

use launch::Options;
use program::exit::Exit;
use training::Result;
use training::arguments::Passed;
use training::page::report;
use training::ranks::{check_alone, run_ranks};

use crate::arguments::{Arguments, Command};

/// Flags of the start of ranks, which ranks do not have.
const OF_START: [&str; 4] = ["nproc", "log_dir", "master_port", "oversubscribe"];

/// Runs a command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Train(arguments) => match arguments.nproc {
            Some(n_ranks) => {
                let options = Options {
                    log_dir: arguments.log_dir.clone(),
                    master_port: arguments.master_port,
                    ..Options::of(n_ranks)
                };
                let flags = Passed::of_process::<Arguments>().without(&OF_START);
                let command = [vec!["train".into()], flags].concat();
                return Ok(run_ranks(&options, &command, arguments.oversubscribe));
            }
            None => train::train(arguments)?,
        },
        Command::Serve(arguments) => {
            check_alone(Exit::Settings, ", because serve has one rank")?;
            serve::serve(arguments)?;
        }
        Command::Neighbours(arguments) => evaluate::neighbours(arguments)?,
        Command::Analogy(arguments) => evaluate::analogy(arguments)?,
        Command::Similarity(arguments) => evaluate::similarity(arguments)?,
        Command::Pip(arguments) => pip::pip(arguments)?,
        Command::Convert(arguments) => convert::convert(arguments)?,
        Command::Report(arguments) => report(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn flags_of_the_start_of_ranks_are_flags_of_train() {
        let program = Arguments::command();
        let train = program.find_subcommand("train").unwrap();
        for id in OF_START {
            assert!(train.get_arguments().any(|argument| argument.get_id() == id), "{id}");
        }
    }
}
