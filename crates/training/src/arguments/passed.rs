//! The words of a command line that a command passes on to another one.

use std::env;
use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory};

/// The flags that a user passed, with their values.
#[derive(Clone, Debug, Default)]
pub struct Passed(Vec<(String, Vec<OsString>)>);

impl Passed {
    /// Those of this process, which is the program `A` with a command.
    pub fn of_process<A: CommandFactory>() -> Self {
        let mut program = A::command();
        let matches = program.try_get_matches_from_mut(env::args_os()).expect("these words have been parsed");
        let given =
            matches.subcommand().and_then(|(name, given)| Some((program.find_subcommand(name)?, given)));
        given.map(|(command, given)| Self::of(command, given)).unwrap_or_default()
    }

    /// The arguments of a command that have a value from the command line, in the order of the command's definition.
    fn of(command: &Command, matches: &ArgMatches) -> Self {
        let is_passed = |id: &str| {
            matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        let words = |argument: &clap::Arg| {
            let id = argument.get_id().as_str();
            let occurrences = matches.get_raw_occurrences(id).into_iter().flatten();
            let has_values = argument.get_action().takes_values();
            let word = |values: Vec<OsString>| match (argument.get_long(), has_values) {
                (None, _) => values,
                (Some(flag), false) => vec![format!("--{flag}").into()],
                (Some(flag), true) => match &values[..] {
                    // A value that looks like a flag.
                    [value] if value.as_encoded_bytes().starts_with(b"-") => {
                        let mut word = OsString::from(format!("--{flag}="));
                        word.push(value);
                        vec![word]
                    }
                    _ => std::iter::once(format!("--{flag}").into()).chain(values).collect(),
                },
            };
            occurrences.flat_map(|values| word(values.map(OsString::from).collect())).collect()
        };
        let passed = command.get_arguments().filter(|argument| is_passed(argument.get_id().as_str()));
        Self(passed.map(|argument| (argument.get_id().to_string(), words(argument))).collect())
    }

    /// Whether a flag was passed, by its name with underscores.
    pub fn has(&self, id: &str) -> bool {
        self.0.iter().any(|(passed, _)| passed == id)
    }

    /// All words except those of some flags.
    pub fn without(&self, ids: &[&str]) -> Vec<OsString> {
        let kept = self.0.iter().filter(|(id, _)| !ids.contains(&id.as_str()));
        kept.flat_map(|(_, words)| words.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction};

    use super::*;

    #[test]
    fn the_words_are_those_that_were_passed() {
        let flag = |name: &'static str| Arg::new(name).long(name.replace('_', "-"));
        let command = Command::new("search")
            .arg(Arg::new("dataset"))
            .arg(flag("input").num_args(1..))
            .arg(flag("soft_labels").num_args(1).action(ArgAction::Append))
            .arg(flag("minutes").allow_hyphen_values(true))
            .arg(flag("rate").default_value("1"))
            .arg(flag("l1").action(ArgAction::SetTrue));
        let words = "search a.h5 --l1 --soft-labels b --minutes -1 --soft-labels c --input x y";
        let matches = command.clone().try_get_matches_from(words.split(' ')).unwrap();
        let passed = Passed::of(&command, &matches);
        let all = "a.h5 --input x y --soft-labels b --soft-labels c --minutes=-1 --l1";
        assert_eq!(passed.without(&[]), all.split(' ').collect::<Vec<_>>());
        assert_eq!(passed.without(&["minutes", "input", "soft_labels"]), ["a.h5", "--l1"]);
        assert!(passed.has("l1") && !passed.has("rate"));
    }
}
