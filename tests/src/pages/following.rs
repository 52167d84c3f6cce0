//! Runs the blocks of a page one after the other in a new folder, as a reader does.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::emr::Emr;
use crate::programs::{folder_of_programs, without_hadoop};
use crate::s3_server::{S3Server, with_s3};
use crate::skipped;

use super::agreement::{Figures, agree};
use super::blocks::{Block, blocks, shell, steps};
use super::{project, relative, renews};

/// Python with h5py and PyTorch.
const PYTHON: &str = ".deps/test/bin/python";

/// Reviews that the reader has in the bucket.
const REVIEWS: [(&str, &str); 2] = [
    ("reviews/one.json", "{\"reviewText\": \"Great battery\", \"overall\": 5}\n"),
    ("reviews/two.json", "{\"reviewText\": \"Broke at once\", \"overall\": 5}\n"),
];

/// The result of a page.
#[derive(Debug, Default)]
pub struct Followed {
    /// Descriptions of the differences from the page.
    pub wrong: Vec<String>,
    /// The files and folders that are in the reader's folder at the end.
    pub names: BTreeSet<String>,
}

struct Reader<'a> {
    folder: tempfile::TempDir,
    tools: tempfile::TempDir,
    s3: Option<S3Server>,
    emr: Option<&'a Emr>,
    /// `Near` after the page's first training.
    figures: Cell<Figures>,
}

/// Follows a page from top to bottom. A page that names `s3://bucket/` has an S3 server.
pub fn follow(path: &Path) -> Followed {
    let page = fs::read_to_string(path).unwrap();
    let s3 = page.contains("s3://bucket/").then(S3Server::start_s3s_fs);
    if let Some(s3) = &s3 {
        REVIEWS.iter().for_each(|(name, line)| s3.put(name, line.as_bytes()));
    }
    follow_as(path, &page, &Reader::new(s3, None))
}

/// Follows a page whose `s3://bucket/` and clusters are those of an EMR.
pub fn follow_on(path: &Path, emr: &Emr) -> Followed {
    let page = fs::read_to_string(path).unwrap();
    REVIEWS.iter().for_each(|(name, line)| emr.put(name, line.as_bytes()));
    follow_as(path, &page, &Reader::new(None, Some(emr)))
}

fn follow_as(path: &Path, page: &str, reader: &Reader<'_>) -> Followed {
    let mut followed = Followed::default();
    let mut renewed = page.to_owned();
    for block in blocks(page).iter().filter(|block| block.not_run.is_none()) {
        let at = format!("{}:{}", relative(path), block.line);
        if let Some(missing) = missing(block) {
            // Later blocks may need the files of this one.
            skipped(&format!("{at} and the rest of the page: {missing}"));
            break;
        }
        let can_go_on = match (block.language, block.file) {
            ("console", _) => reader.types(block, &at, &mut renewed, &mut followed.wrong),
            ("sh", _) => {
                let (succeeded, printed) = reader.runs(&["-e", "-o", "pipefail"], block.text);
                if !succeeded {
                    followed.wrong.push(format!("{at}: the block fails\n{printed}"));
                }
                succeeded
            }
            (_, Some(file)) => fs::write(reader.folder.path().join(file), block.text).is_ok(),
            _ => true,
        };
        // The following blocks would fail, because they require the files of this block.
        if !can_go_on {
            break;
        }
    }
    if renewed != page && renews() {
        fs::write(path, renewed).unwrap();
    }
    let entries = fs::read_dir(reader.folder.path()).unwrap();
    followed.names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    followed
}

/// Returns a requirement of a block that is not installed. This is allowed only on a developer's machine.
fn missing(block: &Block<'_>) -> Option<&'static str> {
    let has = |word: &str| {
        block.text.split(|character: char| !character.is_alphanumeric()).any(|found| found == word)
    };
    if has("trainer") && !folder_of_programs().join("trainer").exists() {
        return Some("the trainer is not built, for want of PyTorch");
    }
    if has("python") && !project().join(PYTHON).exists() {
        return Some("no Python with h5py and PyTorch; `make setup` installs it");
    }
    None
}

impl<'a> Reader<'a> {
    fn new(s3: Option<S3Server>, emr: Option<&'a Emr>) -> Self {
        let (folder, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        // The reader's Python has this project's package.
        let python = format!(
            "#!/bin/sh\nPYTHONPATH={} exec {} -B \"$@\"\n",
            project().join("python").display(),
            project().join(PYTHON).display()
        );
        let path = tools.path().join("python");
        fs::write(&path, python).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, tools, s3, emr, figures: Cell::new(Figures::Exact) }
    }

    /// Runs the commands of a console block, and updates the block in the page. Returns whether all commands
    /// succeed.
    fn types(&self, block: &Block<'_>, at: &str, page: &mut String, wrong: &mut Vec<String>) -> bool {
        let mut block_printed = String::new();
        for step in steps(block.text) {
            let own = step.command.strip_prefix("cat ").map(|file| self.folder.path().join(file));
            if let Some(file) = own.filter(|file| !step.command.contains(['<', '|']) && !file.exists()) {
                fs::write(file, step.output).unwrap();
            }
            if step.command.contains("trainer fit") {
                self.figures.set(Figures::Near);
            }
            let (succeeded, printed) = self.runs(&[], &shell(step.command));
            let agrees = succeeded && agree(step.output, &printed, self.figures.get());
            if !agrees {
                let fails = if succeeded { "" } else { " (it fails)" };
                wrong.push(format!(
                    "{at}: $ {}{fails}\nshown:\n{}printed:\n{printed}",
                    step.command, step.output
                ));
            }
            if !succeeded {
                return false;
            }
            block_printed += &format!("$ {}\n{}", step.command, if agrees { step.output } else { &printed });
        }
        *page = page.replace(block.text, &block_printed);
        true
    }

    /// Runs commands in a shell with these options, in the reader's folder. Returns whether they succeed, and their
    /// output.
    fn runs(&self, options: &[&str], commands: &str) -> (bool, String) {
        let programs = folder_of_programs();
        let path = [self.tools.path(), programs, &programs.join("examples")]
            .map(|folder| folder.display().to_string());
        let path = format!("{}:{}", path.join(":"), std::env::var("PATH").unwrap());
        let mut command: Command = without_hadoop(Path::new("bash"));
        if let Some(s3) = &self.s3 {
            command = with_s3(command, &format!("http://{}", s3.address()));
        }
        if let Some(emr) = self.emr {
            emr.of_user(&mut command);
        }
        let output = command
            .args(options)
            .args(["-c", &format!("exec 2>&1\n{commands}")])
            .env("PATH", path)
            .env("NO_COLOR", "1")
            .env("SENTIMILL_CACHE", self.tools.path().join("cache"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
