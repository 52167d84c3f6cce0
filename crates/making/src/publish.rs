//! Moves a complete dataset to its path and writes its manifest. Never overwrites another file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use dataset::commit::ListedFile;
use dataset::commit::RECORD_BYTES_MAX;
use dataset::manifest::{DatasetManifest, manifest_name};
use durable::sha256::{self, Summary};
use program::bounded;
use program::exit::{Exit, Failed};
use program::place::{check_folder, folder_of};
use program::progress::Progress;
use program::temporary::{self, TemporaryPath};
use program::threads::spawn;
use store::naming::{give_name, make_folder, sync_folder};

use crate::beside::Beside;
use crate::error::{Error, Result, at};
use crate::record::parsed_manifest;

/// The block size of most file systems. A full file system has no free block.
const PROBE_BYTES: usize = 4 << 10;

/// The paths of one dataset's files.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) dataset: PathBuf,
    pub(crate) manifest: PathBuf,
}

impl Places {
    /// `reviews.h5` and `reviews.manifest.json` for the output `reviews.h5`.
    pub(crate) fn of(out: &Path) -> Self {
        let mut places = Self { dataset: out.to_owned(), manifest: PathBuf::new() };
        places.manifest = out.with_file_name(manifest_name(&places.name()));
        places
    }

    /// The file name of the dataset.
    pub(crate) fn name(&self) -> String {
        let out = &self.dataset;
        out.file_name().unwrap_or(out.as_os_str()).to_string_lossy().into_owned()
    }

    /// The path of a file of this name in the folder of the dataset.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dataset.with_file_name(name)
    }

    /// The existing manifest, if there is one.
    pub(crate) fn read_manifest(&self) -> Result<Option<DatasetManifest>> {
        let bytes = match bounded::read(&self.manifest, RECORD_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => at(&self.manifest, "read the manifest", read)?,
        };
        parsed_manifest(&self.manifest.display().to_string(), &bytes).map(Some)
    }

    /// Checks, by creating an unnamed file, that files can be written: the folder or its parent exists, is
    /// writable and has free space. Also checks that existing files at the paths of the requested ones may be
    /// earlier versions of them.
    pub(crate) fn check(&self, requested: &[Beside]) -> Result<()> {
        let mut folder = folder_of(&self.dataset);
        if !at(folder, "read its metadata", folder.try_exists())? {
            folder = folder_of(folder);
        }
        check_folder(folder, "--out")?;
        let written = tempfile::tempfile_in(folder)
            .and_then(|mut probe| probe.write_all(&[0; PROBE_BYTES]).and_then(|()| probe.sync_data()));
        at(&self.dataset, "write a file", written)?;
        requested.iter().try_for_each(|file| file.check_existing(&self.beside(&file.name)))
    }

    /// Syncs the names of existing files. The process that named the files may have been killed before it
    /// synced the names.
    pub(crate) fn sync(&self) -> Result<()> {
        sync(folder_of(&self.dataset))
    }

    /// Returns a temporary name for a file in the folder of the dataset. The file does not exist yet.
    pub(crate) fn temporary(&self) -> Result<TemporaryPath> {
        let folder = folder_of(&self.dataset);
        at(folder, "make the folder", make_folder(folder))?;
        at(&self.dataset, "write a file", temporary::path_in(folder))
    }

    /// Writes a small file under a temporary name.
    pub(crate) fn write_temporary(
        &self,
        name: &str,
        action: &'static str,
        bytes: &[u8],
    ) -> Result<TemporaryPath> {
        let path = self.beside(name);
        let temporary = at(&path, action, temporary::path_in(folder_of(&path)))?;
        let written = File::create_new(&temporary)
            .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
        at(&path, action, written)?;
        Ok(temporary)
    }

    /// Writes the manifest, and overwrites an older one of the same dataset.
    pub(crate) fn write_manifest(&self, manifest: &DatasetManifest) -> Result<()> {
        let mut json = serde_json::to_vec_pretty(manifest).expect("a manifest of plain values is JSON");
        json.push(b'\n');
        let file = self.write_temporary(&manifest_name(&self.name()), "write the manifest", &json)?;
        at(&self.manifest, "rename the manifest", fs::rename(&file, &self.manifest))?;
        sync(folder_of(&self.manifest))
    }
}

/// A complete file that still has a temporary name.
pub(crate) struct Finished {
    pub(crate) file: TemporaryPath,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

fn read_back(file: &Path) -> Result<Summary> {
    at(file, "read it back", sha256::summary(file, &Progress::default()))
}

impl Finished {
    pub(crate) fn of(file: TemporaryPath) -> Result<Self> {
        let Summary { bytes, sha256 } = read_back(&file)?;
        Ok(Self { file, bytes, sha256 })
    }

    /// Reads the file on another thread while `check` reads it, too.
    pub(crate) fn checked<T>(
        file: TemporaryPath,
        check: impl FnOnce(&Path) -> Result<T>,
    ) -> Result<(Self, T)> {
        let (checked, read) = thread::scope(|scope| {
            let reading = spawn(scope, || read_back(&file));
            (check(&file), reading.join())
        });
        let checked = checked?;
        let Summary { bytes, sha256 } = read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((Self { file, bytes, sha256 }, checked))
    }

    /// The file in a manifest, under its name.
    pub(crate) fn listed(&self, name: &str) -> ListedFile {
        ListedFile { name: name.to_owned(), bytes: self.bytes, sha256: self.sha256.clone() }
    }

    /// Checks that there is no file at the path, an equal file, or a file that may be replaced.
    pub(crate) fn check_place(&self, place: &Path, replaceable: &Replaceable) -> Result<()> {
        match at(place, "read its metadata", place.try_exists())? {
            true => replaceable.check(place, &self.sha256).map(|_| ()),
            false => Ok(()),
        }
    }

    /// Moves the file to its path. An existing file is accepted if it is equal, and replaced if it may be; another one is not
    /// overwritten.
    pub(crate) fn publish(self, place: &Path, replaceable: &Replaceable) -> Result<()> {
        let named = match give_name(&self.file, place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match replaceable.check(place, &self.sha256)? {
                    There::Equal => return Ok(()),
                    There::Old => fs::rename(&self.file, place),
                }
            }
            named => named,
        };
        at(place, "rename the dataset", named)?;
        sync(folder_of(place))
    }
}

/// The existing file that may be replaced.
#[derive(Clone, Debug)]
pub(crate) enum Replaceable {
    /// None.
    Nothing,
    /// The file with the SHA-256 in its manifest, if a manifest names one.
    Recorded(Option<String>),
}

/// An existing file, compared with the new one.
enum There {
    Equal,
    /// It may be replaced.
    Old,
}

impl Replaceable {
    fn check(&self, place: &Path, new_sha256: &str) -> Result<There> {
        let Self::Recorded(recorded) = self else {
            return same_file(place, new_sha256).map(|()| There::Equal);
        };
        let there = at(place, "read the existing file", sha256::of_file(place))?;
        match recorded {
            _ if there == new_sha256 => Ok(There::Equal),
            Some(recorded) if there == *recorded => Ok(There::Old),
            _ => Err(not_replaced(place, OTHER_SHA256)),
        }
    }

    /// Deletes a file of a dataset that was replaced by one without this file. Any other file is kept.
    pub(crate) fn remove(&self, place: &Path) -> Result<()> {
        let Self::Recorded(Some(recorded)) = self else { return Ok(()) };
        if !at(place, "read its metadata", place.try_exists())?
            || at(place, "read the existing file", sha256::of_file(place))? != *recorded
        {
            return Ok(());
        }
        at(place, "remove it", fs::remove_file(place))?;
        sync(folder_of(place))
    }
}

/// The reason for which an existing file that differs from its manifest is not replaced.
pub(crate) const OTHER_SHA256: &str = "its SHA-256 is not the one in the manifest beside it";

/// The error for an existing file that --force does not replace.
pub(crate) fn not_replaced(place: &Path, why: &str) -> Error {
    let message = format!(
        "{}: already exists and is not replaced: {why}; --force replaces only datasets of merge and sentimill: move it away \
         or choose another --out",
        place.display()
    );
    Failed::new(Exit::Usage, message).into()
}

/// Checks that the existing file has this SHA-256.
pub(crate) fn same_file(place: &Path, sha256: &str) -> Result<()> {
    let there = at(place, "read the existing file", sha256::of_file(place))?;
    if there == sha256 {
        return Ok(());
    }
    Err(Error::OtherFile {
        path: place.to_owned(),
        found: format!("another file (sha256 {there:.8})"),
        expected: format!("this dataset (sha256 {sha256:.8})"),
    })
}

fn sync(folder: &Path) -> Result<()> {
    at(folder, "sync the folder", sync_folder(folder))
}
