//! The project's programs as processes: found, fed and heard out.
//!
//! A process gets the environment of the tests without Hadoop's variables, which would decide over its arguments.

use std::env;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// How a process ended, and all it said.
#[derive(Debug)]
pub struct Finished {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
    command: String,
}

impl Finished {
    /// Panics, with what was said, where the exit code is another one.
    #[track_caller]
    pub fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code of {}, which said:\n{}", self.command, self.stderr);
        self
    }

    /// Panics where the process failed.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        self.with_code(0)
    }

    /// Standard output as text.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// A program of this project, or an example of one, as built beside the tests.
pub fn program(name: &str) -> Command {
    let folder = folder_of_programs();
    let path =
        [folder.join(name), folder.join("examples").join(name)].into_iter().find(|path| path.is_file());
    let path = path.unwrap_or_else(|| folder.join(name));
    assert!(
        path.is_file(),
        "{} is missing: run `make build`, or `cargo build --release --workspace --bins`",
        path.display()
    );
    without_hadoop(&path)
}

/// The folder above that of the running test: `target/release/` above `deps/`.
pub fn folder_of_programs() -> PathBuf {
    let test = env::current_exe().expect("a running program has a file");
    let folder = test.ancestors().nth(2).expect("a test lies in target/release/deps/");
    folder.to_owned()
}

/// Any program, in the environment that the project's own ones get.
pub fn without_hadoop(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if ["mapreduce_", "mapred_", "map_"].iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command to its end with these bytes on standard input.
#[track_caller]
pub fn run(command: &mut Command, input: &[u8]) -> Finished {
    let named = format!("{command:?}");
    let mut child = start(command);
    let mut stdin = child.stdin.take().expect("standard input is piped");
    // Input and output at once: a process that has filled one pipe may wait on the other.
    thread::scope(|scope| {
        scope.spawn(move || match stdin.write_all(input) {
            // It may refuse its input without reading it.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.expect("a pipe takes bytes"),
        });
        finish(child, &named)
    })
}

/// Starts a command with all three of its streams piped.
#[track_caller]
pub fn start(command: &mut Command) -> Child {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
}

/// Hears a process out to its end.
#[track_caller]
pub fn finish(child: Child, named: &str) -> Finished {
    let output = child.wait_with_output().expect("pipes of a child can be read");
    let code = output.status.code();
    Finished {
        code: code.unwrap_or_else(|| panic!("{named} was killed: {}", output.status)),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        command: named.to_owned(),
    }
}
