//! Errors about arguments that the parser does not know.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::ErrorKind;

use crate::arguments::Arguments;

/// Commands that `ngrams` has for its models.
const OF_MODELS: [&str; 4] = ["evaluate", "predict", "explain", "export"];
/// Flags that these commands had for models of n-grams.
const OF_NGRAMS: [&str; 16] = [
    "--format",
    "--preset",
    "--text-field",
    "--rating-field",
    "--class-ratings",
    "--rating-scale",
    "--unrated",
    "--with-title",
    "--delimiter",
    "--quote",
    "--label-field",
    "--positive-from",
    "--labels",
    "--top",
    "--threshold",
    "--rows",
];

/// A message that names the right command, where there is one.
pub(super) fn hint(words: &[OsString], kind: ErrorKind, here: &str, unknown: &str) -> Option<String> {
    let message = match kind {
        ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument
            if here == "launch" && !words.iter().any(|word| word == "--") =>
        {
            "trainer launch requires -- before the command, as in: trainer launch --nproc 2 -- fit reviews.h5"
                .to_owned()
        }
        ErrorKind::UnknownArgument if here == "fit" && ["--minutes", "--autotune"].contains(&unknown) => {
            format!(
                "unexpected argument '{unknown}' found; to search settings, run `trainer autotune` with --validation and \
             --minutes"
            )
        }
        ErrorKind::UnknownArgument if matches!(unknown, "--pretrain" | "--model") => format!(
            "unexpected argument '{unknown}' found; run `trainer pretrain DATASET --out FOLDER`, then `trainer fit \
             DATASET --init-from FOLDER`"
        ),
        ErrorKind::UnknownArgument if OF_MODELS.contains(&here) && OF_NGRAMS.contains(&unknown) => format!(
            "unexpected argument '{unknown}' found; for a model of n-grams, it is a flag of `ngrams {here}`"
        ),
        ErrorKind::UnknownArgument => match owners(unknown, here).as_slice() {
            [] => return None,
            owners => {
                let owners: Vec<String> = owners.iter().map(|name| format!("`trainer {name}`")).collect();
                let owners = owners.join(", ");
                format!(
                    "unexpected argument '{unknown}' found; it is a flag of {owners}, not of `trainer {here}`"
                )
            }
        },
        _ => return None,
    };
    Some(message)
}

/// The commands other than `here` that have a flag.
fn owners(flag: &str, here: &str) -> Vec<String> {
    let Some(name) = flag.strip_prefix("--") else { return Vec::new() };
    let program = Arguments::command();
    let has = |known: &&clap::Command| {
        known.get_arguments().any(|argument| {
            let aliases = argument.get_all_aliases().unwrap_or_default();
            argument.get_long() == Some(name) || aliases.contains(&name)
        })
    };
    // The flags of autotune are those of fit.
    let others = program.get_subcommands().filter(|known| ![here, "autotune"].contains(&known.get_name()));
    others.filter(has).map(|known| known.get_name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hinted(arguments: &str) -> String {
        let words = ["trainer"].into_iter().chain(arguments.split(' ')).map(OsString::from);
        crate::flags::parse(&words.collect::<Vec<_>>()).unwrap_err().to_string()
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
                "it is a flag of `trainer evaluate`, `trainer predict`, `trainer explain`, not of `trainer fit`",
            ),
            (
                "fit a.h5 --pretrain",
                "run `trainer pretrain DATASET --out FOLDER`, then `trainer fit DATASET --init-from",
            ),
            ("autotune a.h5 --minutes 5 --candidates 9", "it is a flag of `trainer pretrain`, not of"),
            ("fit a.h5 --minutes 5", "run `trainer autotune` with --validation and --minutes"),
            ("predict m --top 3", "for a model of n-grams, it is a flag of `ngrams predict`"),
            ("export m --rows 5", "it is a flag of `ngrams export`"),
            ("launch --nproc 2 fit a.h5", "requires -- before the command"),
            ("launch --nproc 2", "requires -- before the command"),
        ] {
            let found = hinted(arguments);
            assert!(found.contains(expected), "{arguments}: {found}");
        }
    }
}
