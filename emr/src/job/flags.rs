//! Keys that are flags of the programs, checked by the parser of the programs, so that a job file and a command line
//! accept the same values.

use std::collections::BTreeMap;

use clap::error::ErrorKind;
use clap::{Arg, CommandFactory, FromArgMatches, Parser};
use corpus::arguments::{DatasetArguments, FormatArguments, RowArguments, parse_line_bytes};
use corpus::ledger::Share;
use program::exit::refusal;

use super::file::Value;
use crate::finding::unknown_key;

/// The flags of `mapper` in the table `input`.
#[derive(Parser, Clone, Debug)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
pub struct InputFlags {
    #[command(flatten)]
    pub format: FormatArguments,
    #[arg(long, value_parser = parse_line_bytes)]
    pub line_bytes_max: Option<u64>,
    #[arg(long)]
    pub bad_lines_max: Option<Share>,
    #[arg(long)]
    pub invalid_utf8_max: Option<Share>,
}

/// The flags of `reducer` in the table `rows`.
#[derive(Parser, Clone, Debug)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
pub struct RowFlags {
    #[command(flatten)]
    pub rows: RowArguments,
}

/// The flags of `merge`, and one of `reducer`, in the table `output`.
#[derive(Parser, Clone, Debug)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
pub struct OutputFlags {
    #[command(flatten)]
    pub dataset: DatasetArguments,
    #[arg(long)]
    pub texts: bool,
}

/// The flags of a table, without keys that are no flags. `true` is a flag without a value, `false` no flag.
pub fn flags(table: &BTreeMap<String, Value>, others: &[&str]) -> Vec<String> {
    let of_programs = table.iter().filter(|(name, _)| !others.contains(&name.as_str()));
    let flag = |(name, value): (&String, &Value)| match value {
        Value::Switch(false) => Vec::new(),
        Value::Switch(true) => vec![format!("--{name}")],
        value => vec![format!("--{name}"), value.text()],
    };
    of_programs.flat_map(flag).collect()
}

/// The key, if the parser names one, and the parser's message.
pub type FlagRefusal = (Option<String>, String);

/// The flag of `merge` that is no key: a job replaces nothing.
const NO_KEY: &str = "force";

/// The keys of a table: those that are no flags, and the flags.
pub fn keys<F: CommandFactory>(others: &[&str]) -> Vec<String> {
    let command = F::command();
    let longs = command.get_arguments().filter_map(Arg::get_long).filter(|long| *long != NO_KEY);
    others.iter().copied().chain(longs).map(str::to_owned).collect()
}

/// Parses the flags of a table as the programs do. The error has all keys that are unknown, and all values that are refused by
/// themselves. Without such a value, it has the message about all flags, such as a conflict.
pub fn parse_table<F: CommandFactory + FromArgMatches>(
    table: &BTreeMap<String, Value>,
    others: &[&str],
) -> Result<F, Vec<FlagRefusal>> {
    let known = keys::<F>(others);
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let mut table = table.clone();
    let unknown: Vec<_> = table.extract_if(.., |name, _| !known.contains(&name.as_str())).collect();
    let mut refused: Vec<FlagRefusal> =
        unknown.into_iter().map(|(name, _)| (Some(name.clone()), unknown_key(&name, &known))).collect();
    match parse_any(&flags(&table, others)) {
        Ok(parsed) if refused.is_empty() => return Ok(parsed),
        Ok(_) => {}
        Err((_, of_all)) => {
            let alone = |(name, value): (&String, &Value)| {
                let flags = flags(&BTreeMap::from([(name.clone(), value.clone())]), others);
                let (kind, (_, message)) = parse_any::<F>(&flags).err()?;
                // Other kinds are about several flags, such as one that requires another one.
                use ErrorKind::{InvalidValue, UnknownArgument, ValueValidation};
                let is_alone = matches!(kind, InvalidValue | UnknownArgument | ValueValidation);
                is_alone.then(|| (Some(name.clone()), message))
            };
            let each: Vec<_> = table.iter().filter_map(alone).collect();
            refused.extend(if each.is_empty() { vec![of_all] } else { each });
        }
    }
    Err(refused)
}

/// Parses flags as the programs do.
fn parse_any<F: CommandFactory + FromArgMatches>(flags: &[String]) -> Result<F, (ErrorKind, FlagRefusal)> {
    let mut command = F::command().mut_args(|arg| {
        let takes_values = arg.get_action().takes_values();
        if takes_values { arg.allow_hyphen_values(true) } else { arg }
    });
    let parsed = command.try_get_matches_from_mut(flags).and_then(|matches| F::from_arg_matches(&matches));
    parsed.map_err(|error| {
        debug_assert!(error.kind() != ErrorKind::DisplayHelp, "the help flag is disabled");
        (error.kind(), refused(&refusal(&error.format(&mut command).render().to_string())))
    })
}

/// Splits `--preset x: expected …; see --help` into the key and the rest.
pub fn refused(message: &str) -> FlagRefusal {
    let message = message.trim_end_matches("; see --help");
    let key = message.split("--").nth(1).map(|rest| {
        rest.chars().take_while(|&c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-').collect()
    });
    (key, message.trim_start_matches("--").to_owned())
}

#[cfg(test)]
mod tests {
    use corpus::format::Format;

    use super::*;

    fn parse<F: CommandFactory + FromArgMatches>(flags: &[String]) -> Result<F, FlagRefusal> {
        parse_any(flags).map_err(|(_, refused)| refused)
    }

    fn table(pairs: &[(&str, Value)]) -> BTreeMap<String, Value> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn a_table_has_the_flags_of_the_command_line() {
        let table = table(&[
            ("places", Value::Texts(vec!["x".to_owned()])),
            ("preset", Value::Text("yelp".to_owned())),
            ("with-title", Value::Switch(false)),
            ("bad-lines-max", Value::Amount(0.1)),
        ]);
        let flags = flags(&table, &["places"]);
        assert_eq!(flags, ["--bad-lines-max", "0.1", "--preset", "yelp"]);
        let parsed: InputFlags = parse(&flags).unwrap();
        assert_eq!(parsed.bad_lines_max.unwrap().to_string(), "0.1");
    }

    #[test]
    fn paths_of_fields_are_passed_and_checked_as_on_the_command_line() {
        let list = r"summary,data.te\.xt";
        let flags = flags(&table(&[("text-field", Value::Text(list.to_owned()))]), &[]);
        assert_eq!(flags, ["--text-field", list]);
        let parsed: InputFlags = parse(&flags).unwrap();
        let Ok(Format::Json(fields)) = parsed.format.format() else { panic!("the format is json") };
        assert_eq!(
            fields.text.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["summary", r"data.te\.xt"]
        );
        let refused = parse::<InputFlags>(&["--text-field", "a,,b"].map(str::to_owned)).unwrap_err();
        assert!(
            refused.1.contains("found an empty name, expected names between dots and commas"),
            "{}",
            refused.1
        );
        assert_eq!(refused.0.as_deref(), Some("text-field"));
    }

    #[test]
    fn all_wrong_values_and_keys_of_a_table_are_found() {
        let table = table(&[
            ("keep", Value::Text("end".to_owned())),
            ("max-token", Value::Number(4)),
            ("max-tokens", Value::Number(-4)),
            ("positive-from", Value::Number(9)),
            ("stopwords", Value::Text("none".to_owned())),
        ]);
        let refused = parse_table::<RowFlags>(&table, &[]).unwrap_err();
        let keys: Vec<_> = refused.iter().map(|(key, _)| key.as_deref().unwrap_or_default()).collect();
        assert_eq!(keys, ["max-token", "keep", "max-tokens", "positive-from"], "{refused:?}");
    }

    #[test]
    fn a_flag_that_would_replace_a_dataset_is_no_key() {
        let refused = parse_table::<OutputFlags>(&table(&[("force", Value::Switch(true))]), &[]).unwrap_err();
        assert!(refused[0].1.starts_with("unknown key, expected one of vocabulary-size, "), "{refused:?}");
    }

    #[test]
    fn a_wrong_value_has_the_message_of_the_command_line() {
        let flags = ["--positive-from", "9"].map(str::to_owned);
        let refused = parse::<RowFlags>(&flags).unwrap_err();
        let expected = "positive-from 9: expected a number from 1 to 5";
        assert_eq!(refused, (Some("positive-from".to_owned()), expected.to_owned()));
        let flags = ["--max-tokens", "-4"].map(str::to_owned);
        assert!(parse::<RowFlags>(&flags).unwrap_err().1.starts_with("max-tokens -4: expected"));
    }
}
