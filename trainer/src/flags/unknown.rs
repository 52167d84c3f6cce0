//! Errors about arguments that the parser does not know.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::arguments::Arguments;

/// Replaces the parser's error about an unknown argument by one that names the right command, where there is one.
pub(super) fn hint(words: &[OsString], error: clap::Error) -> clap::Error {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
