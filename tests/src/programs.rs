//! Builds and runs the project's programs as processes, and collects their output.
//!
//! A process gets the environment of the tests without Hadoop's variables, which would affect its arguments.

use std::env;
use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread;

/// The exit code and the output of a process.
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
    /// Panics with the output if the exit code is a different one.
    #[track_caller]
    pub fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code of {}, which said:\n{}", self.command, self.stderr);
        self
    }

    /// Panics if the process failed.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        self.with_code(0)
    }

    /// Standard output as text.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// A program of this project, or an example, built from the current sources.
pub fn program(name: &str) -> Command {
    let folder = folder_of_programs();
    let path =
        [folder.join(name), folder.join("examples").join(name)].into_iter().find(|path| path.is_file());
    without_hadoop(
        &path.unwrap_or_else(|| panic!("{} has no {name}, which tests/run.py builds", folder.display())),
    )
}

/// The parent folder of the running test's folder, `target/debug/` for `deps/`, with programs built from the
/// current sources.
pub fn folder_of_programs() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = env::current_exe().expect("a running program has a file");
        let folder = test.ancestors().nth(2).expect("a test lies in target/debug/deps/").to_owned();
        // tests/run.py sets this after it has built the programs.
        if env::var_os("PROGRAMS_ARE_BUILT").is_none() {
            build_programs(&folder);
        }
        folder
    });
    &FOLDER
}

/// Builds the programs that have changed. For a package's tests cargo builds only the programs of that
/// package, so the tests would run outdated builds of the others.
fn build_programs(folder: &Path) {
    let name = folder.file_name().and_then(OsStr::to_str).expect("a profile has a folder");
    let profile = if name == "debug" { "dev" } else { name };
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the project");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([
        "build",
        "--quiet",
        "--workspace",
        "--bins",
        "--example",
        "demo-corpus",
        "--example",
        "launch-script",
        "--example",
        "parameter-server",
        "--profile",
        profile,
    ]);
    if !project.join(".deps/libtorch").exists() && env::var_os("LIBTORCH").is_none() {
        cargo.args(["--exclude", "c10d", "--exclude", "ranks", "--exclude", "trainer"]);
    }
    // Variables that cargo sets for a test are not passed to another build.
    let target = folder.parent().expect("a profile's folder lies in target/");
    let told = cargo.env("CARGO_TARGET_DIR", target).current_dir(project).output().expect("cargo starts");
    assert!(
        told.status.success(),
        "the programs under test cannot be built:\n{}",
        String::from_utf8_lossy(&told.stderr)
    );
}

/// Any program, in the environment of the project's programs.
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
    // Writes input and reads output concurrently, because a process that has filled one pipe may wait for the
    // other.
    thread::scope(|scope| {
        scope.spawn(move || match stdin.write_all(input) {
            // The process may refuse its input without reading it.
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

/// Waits for a process to exit and collects its output.
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
