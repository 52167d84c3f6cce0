//! The commands. Each module converts the arguments of a command into calls of other crates.

mod convert;
mod evaluate;
mod pip;
mod serve;
mod train;

use std::ffi::OsString;
use std::process::ExitCode;

use launch::Options;
use program::exit::Exit;
use training::Result;
use training::page::report;
use training::ranks::{check_alone, run_ranks};

use crate::arguments::Command;

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
                let command = of_rank(std::env::args_os().skip(1));
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

/// Flags of the start of ranks, with a value.
const OF_START: [&str; 3] = ["--nproc", "--log-dir", "--master-port"];

/// The words of the command of each rank.
fn of_rank(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut is_value = false;
    let is_kept = |word: &OsString| {
        let text = word.to_string_lossy();
        let (flag, value) = text.split_once('=').map_or((&*text, None), |(flag, value)| (flag, Some(value)));
        let is_of_start = OF_START.contains(&flag);
        let was_value = std::mem::replace(&mut is_value, is_of_start && value.is_none());
        !(is_of_start || was_value || flag == "--oversubscribe")
    };
    words.filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_the_words_of_the_command_without_those_of_their_start() {
        let of = |words: &str| of_rank(words.split(' ').map(OsString::from));
        for words in [
            "train --nproc 2 --log-dir logs --input a --out b",
            "train --input a --nproc=2 --oversubscribe --out b --master-port 29500",
        ] {
            assert_eq!(of(words), ["train", "--input", "a", "--out", "b"], "{words}");
        }
    }
}
