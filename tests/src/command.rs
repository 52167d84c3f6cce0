//! Runs a program that trains models as a user does: its exit code and output.

use std::process::Command;

use crate::programs::program as built;

/// A program, on one thread. On another machine than the one on which the tests were built, SENTIMILL_TRAINER is
/// the path of `trainer`, which has the others beside it.
pub fn program(name: &str) -> Command {
    let mut command = match std::env::var_os("SENTIMILL_TRAINER") {
        Some(trainer) => Command::new(std::path::Path::new(&trainer).with_file_name(name)),
        None => built(name),
    };
    command.env("OMP_NUM_THREADS", "1");
    command
}

/// The exit code and standard error.
pub fn ended(command: Command) -> (Option<i32>, String) {
    let (code, _, told) = run(command);
    (code, told)
}

/// The exit code, standard output and standard error.
pub fn run(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().expect("the program starts");
    let [said, told] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("output is text"));
    (output.status.code(), said, told.trim_end().to_owned())
}
