//! The README's console blocks are run, one after the other in one folder, and print what the README shows.
//!
//! A block's lines that begin with `$ ` are commands, the others what they print on standard output and standard
//! error together. A file that a block shows by `cat` before anything made it is the reader's own, and is written
//! first. `UPDATE_GOLDEN=1` writes what commands print into the README.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::programs::folder_of_programs;

const FENCE: &str = "```console\n";

struct Step<'a> {
    command: &'a str,
    output: &'a str,
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn blocks(readme: &str) -> Vec<&str> {
    readme.split(FENCE).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

fn steps(block: &str) -> Vec<Step<'_>> {
    let commands = block.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some((*at - line.len(), line))
    });
    let begins: Vec<usize> = commands.filter(|(_, line)| line.starts_with("$ ")).map(|(at, _)| at).collect();
    let ends = begins.iter().copied().skip(1).chain([block.len()]);
    let steps = begins.iter().zip(ends).map(|(&from, to)| block[from..to].split_once('\n').unwrap());
    steps.map(|(command, output)| Step { command: &command[2..], output }).collect()
}

fn run(folder: &Path, command: &str) -> String {
    let path = format!("{}:{}", folder_of_programs().display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", &format!("exec 2>&1\n{command}")])
        .env("PATH", path)
        .current_dir(folder)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{command}\n{printed}");
    printed
}

#[test]
fn the_readmes_commands_print_what_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let path = project().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let mut renewed = readme.clone();
    for block in blocks(&readme) {
        let mut printed = String::new();
        for step in steps(block) {
            let shown = step.command.strip_prefix("cat ").filter(|file| !folder.path().join(file).exists());
            if let Some(file) = shown {
                fs::write(folder.path().join(file), step.output).unwrap();
            }
            printed += &format!("$ {}\n{}", step.command, run(folder.path(), step.command));
        }
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            renewed = renewed.replace(block, &printed);
        } else {
            assert_eq!(printed, block, "run with UPDATE_GOLDEN=1 to renew README.md");
        }
    }
    // Other tests of this program read it at the same time.
    if renewed != readme {
        fs::write(&path, renewed).unwrap();
    }
}

#[test]
fn the_readme_names_only_make_targets_and_files_that_exist() {
    let readme = fs::read_to_string(project().join("README.md")).unwrap();
    let makefile = fs::read_to_string(project().join("Makefile")).unwrap();
    let shell = readme.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    for target in shell.lines().filter_map(|line| line.strip_prefix("make ")) {
        let target = target.split(' ').next().unwrap();
        assert!(makefile.contains(&format!("\n{target}:")), "make {target}");
    }
    for link in readme.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        assert!(project().join(link).exists(), "{link}");
    }
}

#[test]
fn the_readmes_python_reads_a_dataset() {
    let python = project().join(".deps/test/bin/python");
    if !python.exists() {
        tests::skipped(&format!("the README's Python: no {}; run `make setup`", python.display()));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let readme = fs::read_to_string(project().join("README.md")).unwrap();
    let line = "{\"reviewText\": \"Great battery!\", \"overall\": 5}";
    let make = format!(
        "echo '{line}' | mapper | reducer --run run --partition 0 --partitions 1 && merge --run run --out reviews.h5"
    );
    run(folder.path(), &make);
    let script = readme.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let output = Command::new(python).args(["-c", script]).current_dir(folder.path()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "1 [0 0 0 0 1] great battery\n");
}
