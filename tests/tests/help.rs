//! The help of every command: `-h` fits a terminal of 80 × 50, `--help` ends with two examples. Versions are complete.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use tests::programs::{program, run};

const COLUMNS: usize = 80;
const LINES: usize = 50;

/// The programs that need no PyTorch, and those whose --version names HDF5.
const PROGRAMS: [&str; 6] = ["mapper", "combiner", "reducer", "merge", "sentimill", "emr"];
const WITH_HDF5: [&str; 3] = ["reducer", "merge", "sentimill"];

fn output(command: &[&str], flag: &str) -> String {
    let mut program = program(command[0]);
    program.args(&command[1..]).arg(flag).env("COLUMNS", COLUMNS.to_string());
    let finished = run(&mut program, b"").succeeded();
    assert_eq!(finished.stderr, "");
    finished.said()
}

/// A command and all its subcommands, by the list in its help.
fn commands(command: Vec<String>) -> Vec<Vec<String>> {
    let help = output(&command.iter().map(String::as_str).collect::<Vec<_>>(), "-h");
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest.split("\n\n").next().unwrap());
    let names =
        listed.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names: Vec<_> =
        names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").collect();
    let below = names.into_iter().flat_map(|name| commands([&command[..], &[name.to_owned()]].concat()));
    let below: Vec<_> = below.collect();
    [vec![command], below].concat()
}

fn all_commands() -> Vec<Vec<String>> {
    let all: Vec<_> = PROGRAMS.iter().flat_map(|name| commands(vec![(*name).to_owned()])).collect();
    assert!(all.contains(&vec!["merge".to_owned(), "gc".to_owned()]), "{all:?}");
    all
}

#[test]
fn the_short_help_of_every_command_fits_a_terminal() {
    for command in all_commands() {
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        let help = output(&words, "-h");
        assert!(help.lines().count() <= LINES, "{command:?} has {} lines:\n{help}", help.lines().count());
        let widest = help.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= COLUMNS, "{command:?}: {widest}");
    }
}

#[test]
fn the_long_help_of_every_command_ends_with_two_examples() {
    for command in all_commands() {
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        let help = output(&words, "--help");
        let (_, examples) =
            help.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{command:?}:\n{help}"));
        let runs = |line: &&str| line.strip_prefix("  ").is_some_and(|line| !line.starts_with(' '));
        let n_examples = examples.lines().filter(runs).count();
        assert_eq!(n_examples, 2, "{command:?}:\n{examples}");
        assert!(examples.contains(&command.join(" ")), "{command:?}:\n{examples}");
        let widest = help.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= COLUMNS, "{command:?}: {widest}");
    }
}

#[test]
fn a_short_version_is_one_line_and_a_long_one_names_the_libraries() {
    for name in PROGRAMS {
        let short = output(&[name], "-V");
        assert!(short.starts_with(&format!("{name} {}", env!("CARGO_PKG_VERSION"))), "{short}");
        assert_eq!(short.lines().count(), 1, "{short}");
        let long = output(&[name], "--version");
        let mut expected = format!("{short}Unicode {}\n", corpus::clean::UNICODE_VERSION);
        if WITH_HDF5.contains(&name) {
            expected += &format!("HDF5 {}\n", dataset::hdf5_version());
        }
        assert_eq!(long, expected);
    }
}
