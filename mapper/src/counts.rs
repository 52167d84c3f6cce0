//! Writes counts to the file of `--counts`. The file is replaced in one step, so it has either the complete
//! counts or its previous content.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use corpus::ledger::MapperCounts;
use program::exit::{Exit, Failed};
use program::place::{check_folder, folder_of};
use program::system::Failure;
use program::temporary;

/// Maximum size of an existing file of counts, far above the actual size.
const COUNTS_BYTES_MAX: u64 = 64 << 10;

/// A writable file for counts.
#[derive(Debug)]
pub struct CountsFile {
    path: PathBuf,
    folder: PathBuf,
}

impl CountsFile {
    /// Checks, before any input is read, that counts can be written to this path and that no other data is
    /// overwritten.
    pub fn prepare(path: &Path, inputs: &[PathBuf]) -> Result<Self, Failed> {
        // A symbolic link is kept, and its target is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&target) {
            Ok(there) => check_there(path, &there, inputs)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritten(path, &error)),
        }
        let folder = folder_of(&target).to_owned();
        check_folder(&folder, "--counts")?;
        tempfile::tempfile_in(&folder).map_err(|error| unwritten(path, &error))?;
        Ok(Self { path: target, folder })
    }

    /// Writes the complete counts and renames the file.
    pub fn write(self, counts: &MapperCounts) -> Result<(), Failed> {
        let write = || -> io::Result<()> {
            let mut file = temporary::file_in(&self.folder)?;
            writeln!(file, "{}", serde_json::to_string_pretty(counts)?)?;
            file.as_file().sync_all()?;
            file.persist(&self.path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|error| unwritten(&self.path, &error))
    }
}

/// Checks that the existing file has counts and is not used by this run.
fn check_there(path: &Path, there: &Metadata, inputs: &[PathBuf]) -> Result<(), Failed> {
    let is_it = |other: &Metadata| (other.dev(), other.ino()) == (there.dev(), there.ino());
    let is_stream = |stream: &dyn AsFd| {
        let file = stream.as_fd().try_clone_to_owned().map(File::from);
        file.and_then(|file| file.metadata()).is_ok_and(|stream| is_it(&stream))
    };
    let is_input = inputs.iter().any(|input| fs::metadata(input).is_ok_and(|input| is_it(&input)));
    let used = if is_input || is_stream(&io::stdin()) {
        Some("the input")
    } else if is_stream(&io::stdout()) {
        Some("the output")
    } else {
        None
    };
    if let Some(used) = used {
        let found = format!("is {used} of this run, expected another file");
        return Err(refused(Exit::Usage, path, &format!("{found}; choose another --counts")));
    }
    let found = match there.file_type() {
        kind if kind.is_dir() => "is a folder",
        kind if !kind.is_file() => "is a device or a pipe",
        _ if holds_counts(path) => return Ok(()),
        _ => "exists and is not a file of counts",
    };
    let expected =
        "expected no file or one written by --counts; nothing was changed: choose another --counts";
    Err(refused(Exit::Usage, path, &format!("{found}, {expected}")))
}

fn unwritten(path: &Path, error: &io::Error) -> Failed {
    let why = Failure::writing("write the counts", error, "choose another --counts");
    refused(Exit::Io, path, &why.to_string())
}

fn refused(exit: Exit, path: &Path, why: &str) -> Failed {
    Failed::new(exit, format!("--counts {}: {why}", path.display()))
}

fn holds_counts(path: &Path) -> bool {
    let mut json = Vec::new();
    let read = File::open(path).and_then(|file| file.take(COUNTS_BYTES_MAX).read_to_end(&mut json));
    read.is_ok() && serde_json::from_slice::<MapperCounts>(&json).is_ok()
}
