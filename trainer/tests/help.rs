//! The help of the program and its commands: `-h` fits a terminal of 80 × 50, `--help` ends with two examples.
#![allow(clippy::unwrap_used)]

mod command;

use command::{run, trainer};

const COMMANDS: [&[&str]; 21] = [
    &[],
    &["fit"],
    &["pretrain"],
    &["ngrams"],
    &["embed"],
    &["serve"],
    &["autotune"],
    &["autotune", "ngrams"],
    &["autotune", "fit"],
    &["evaluate"],
    &["predict"],
    &["explain"],
    &["export"],
    &["vectors"],
    &["vectors", "neighbours"],
    &["vectors", "analogy"],
    &["vectors", "similarity"],
    &["vectors", "pip"],
    &["vectors", "convert"],
    &["report"],
    &["launch"],
];

fn help(command: &[&str], flag: &str) -> String {
    let mut program = trainer();
    program.args(command).arg(flag).env("COLUMNS", "80");
    let (code, said, told) = run(program);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    said
}

#[test]
fn the_short_help_of_every_command_fits_a_terminal() {
    for command in COMMANDS {
        let help = help(command, "-h");
        assert!(help.lines().count() <= 50, "{command:?}:\n{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{command:?}:\n{help}");
        assert!(help.ends_with("--help shows all options and examples.\n"), "{command:?}:\n{help}");
    }
}

#[test]
fn the_long_help_of_every_command_ends_with_two_examples() {
    for command in COMMANDS {
        let help = help(command, "--help");
        let (_, examples) = help.split_once("\nExamples:\n").unwrap();
        let runs = |line: &&str| line.strip_prefix("  ").is_some_and(|line| !line.starts_with(' '));
        let commands = examples.lines().filter(runs).collect::<Vec<_>>();
        assert_eq!(commands.len(), 2, "{command:?}:\n{examples}");
        assert!(commands.iter().all(|line| line.contains("trainer ")), "{command:?}:\n{examples}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{command:?}:\n{help}");
    }
}

#[test]
fn without_a_command_the_help_is_printed_as_an_error() {
    let (code, said, told) = run(trainer());
    assert_eq!((code, said.as_str()), (Some(64), ""));
    assert!(told.contains("Usage: trainer") && told.contains("Commands:"), "{told}");
}

#[test]
fn a_long_version_names_the_libraries() {
    let mut program = trainer();
    program.arg("--version");
    let (code, said, _) = run(program);
    assert_eq!(code, Some(0));
    for library in ["\nUnicode ", "\nHDF5 ", "\nPyTorch "] {
        assert!(said.contains(library), "{said}");
    }
}
