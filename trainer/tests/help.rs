//! The help of the programs that train models, and of their commands: `-h` fits a terminal of 80 × 50, `--help` ends with two examples.
#![allow(clippy::unwrap_used)]

mod command;

use command::{program, run};

/// Commands of each program.
const COMMANDS: [(&str, &[&str]); 3] = [
    (
        "trainer",
        &["", "fit", "pretrain", "autotune", "evaluate", "predict", "explain", "export", "report", "launch"],
    ),
    ("ngrams", &["", "train", "autotune", "evaluate", "predict", "explain", "export", "report"]),
    ("vectors", &["", "train", "serve", "neighbours", "analogy", "similarity", "pip", "convert", "report"]),
];

/// Calls `check` with the name of each program, each of its commands, and the help.
fn each_help(flag: &str, check: impl Fn(&str, &str, String)) {
    for (name, command) in
        COMMANDS.into_iter().flat_map(|(name, all)| all.iter().map(move |one| (name, *one)))
    {
        let mut program = program(name);
        program.args(Some(command).filter(|command| !command.is_empty())).arg(flag).env("COLUMNS", "80");
        let (code, said, told) = run(program);
        assert_eq!((code, told.as_str()), (Some(0), ""));
        check(name, command, said);
    }
}

#[test]
fn the_short_help_of_every_command_fits_a_terminal() {
    each_help("-h", |name, command, help| {
        assert!(help.lines().count() <= 50, "{name} {command}:\n{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{name} {command}:\n{help}");
        assert!(help.ends_with("--help shows all options and examples.\n"), "{name} {command}:\n{help}");
    });
}

#[test]
fn the_long_help_of_every_command_ends_with_two_examples() {
    each_help("--help", |name, command, help| {
        let (_, examples) = help.split_once("\nExamples:\n").unwrap();
        let runs = |line: &&str| line.strip_prefix("  ").is_some_and(|line| !line.starts_with(' '));
        let commands = examples.lines().filter(runs).collect::<Vec<_>>();
        assert_eq!(commands.len(), 2, "{name} {command}:\n{examples}");
        let is_of_program = |line: &&str| line.contains(&format!("{name} "));
        assert!(commands.iter().all(is_of_program), "{name} {command}:\n{examples}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{name} {command}:\n{help}");
    });
}

#[test]
fn without_a_command_the_help_is_printed_as_an_error() {
    for (name, _) in COMMANDS {
        let (code, said, told) = run(program(name));
        assert_eq!((code, said.as_str()), (Some(64), ""));
        assert!(told.contains(&format!("Usage: {name}")) && told.contains("Commands:"), "{told}");
    }
}

#[test]
fn a_long_version_names_the_libraries() {
    for (name, library) in [("trainer", "\nPyTorch "), ("ngrams", ""), ("vectors", "")] {
        let mut program = program(name);
        program.arg("--version");
        let (code, said, _) = run(program);
        assert_eq!(code, Some(0));
        for library in ["\nUnicode ", "\nHDF5 ", library] {
            assert!(said.contains(library), "{said}");
        }
        assert_eq!(said.contains("PyTorch"), name == "trainer", "{said}");
    }
}

#[test]
fn a_command_that_is_in_another_program_now_is_refused_with_the_new_command() {
    for (old, new) in [
        ("ngrams --input a.txt", "ngrams train --input a.txt"),
        ("embed --input - --out b", "vectors train --input - --out b"),
        ("serve --help", "vectors serve --help"),
        ("vectors neighbours a b", "vectors neighbours a b"),
        ("autotune ngrams --minutes 5", "ngrams autotune --minutes 5"),
        ("autotune fit a.h5 --minutes 5", "trainer autotune a.h5 --minutes 5"),
    ] {
        let mut program = program("trainer");
        program.args(old.split(' '));
        let (code, said, told) = run(program);
        assert_eq!((code, said.as_str()), (Some(64), ""), "{told}");
        let expected = format!("trainer: this command is in another program now; run `{new}`; see --help");
        assert_eq!(told, expected);
    }
}

#[test]
fn a_report_names_settings_by_flags_that_there_are() {
    let mut all = String::new();
    for [name, command] in
        [["trainer", "fit"], ["trainer", "pretrain"], ["ngrams", "train"], ["vectors", "train"]]
    {
        let mut program = program(name);
        program.args([command, "--help"]);
        all += &run(program).1;
    }
    for (place, name) in runs::recipe::SETTING_NAMES {
        let flag = name.split(',').next().unwrap_or(name);
        let is_known =
            ["", ","].iter().any(|end| all.split_whitespace().any(|word| word == format!("{flag}{end}")));
        assert!(!name.starts_with("--") || is_known, "{place}: {name}");
    }
}
