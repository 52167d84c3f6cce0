//! A finished dataset → its place, whole or not at all, with its manifest beside it; never over another file.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dataset::commit::RECORD_BYTES_MAX;
use dataset::manifest::DatasetManifest;
use dataset::sha256;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempPath;

use crate::error::{Error, Result, at};

/// The files of one dataset.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) dataset: PathBuf,
    pub(crate) padded: PathBuf,
    pub(crate) manifest: PathBuf,
}

impl Places {
    /// `reviews.h5`, `reviews.padded.h5` and `reviews.manifest.json`, where `reviews.h5` is asked for.
    pub(crate) fn of(out: &Path) -> Self {
        let name = out.file_stem().unwrap_or(out.as_os_str()).to_string_lossy().into_owned();
        Self {
            dataset: out.to_owned(),
            padded: out.with_file_name(format!("{name}.padded.h5")),
            manifest: out.with_file_name(format!("{name}.manifest.json")),
        }
    }

    /// The folder that all three are in.
    pub(crate) fn folder(&self) -> &Path {
        self.dataset.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// The manifest that is there, if one is.
    pub(crate) fn read_manifest(&self) -> Result<Option<DatasetManifest>> {
        let size = match fs::metadata(&self.manifest) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => at(&self.manifest, found)?.len(),
        };
        let bytes =
            if size <= RECORD_BYTES_MAX { at(&self.manifest, fs::read(&self.manifest))? } else { Vec::new() };
        let manifest = serde_json::from_slice(&bytes).map_err(|source| Error::Record {
            object: self.manifest.display().to_string(),
            expected: "manifest of a dataset",
            source,
        })?;
        Ok(Some(manifest))
    }

    /// A name for a file that is still being written, in the folder where it will stay. The file does not exist,
    /// and goes away with the value returned.
    pub(crate) fn temporary(&self) -> Result<TempPath> {
        let folder = self.folder();
        at(folder, fs::create_dir_all(folder))?;
        let named = tempfile::Builder::new().prefix(".merge-").suffix(".h5").tempfile_in(folder);
        let path = at(folder, named)?.into_temp_path();
        at(&path, fs::remove_file(&path))?;
        Ok(path)
    }

    /// Writes the manifest, over an older one of the same dataset.
    pub(crate) fn write_manifest(&self, manifest: &DatasetManifest) -> Result<()> {
        let mut json = serde_json::to_vec_pretty(manifest).expect("a manifest of plain values is JSON");
        json.push(b'\n');
        // As readable as any new file is, by the user's umask.
        let readable = Permissions::from_mode(0o666);
        let named =
            tempfile::Builder::new().prefix(".merge-").permissions(readable).tempfile_in(self.folder());
        let mut file = at(self.folder(), named)?;
        let written = file.write_all(&json).and_then(|()| file.as_file().sync_all());
        at(&self.manifest, written)?;
        at(&self.manifest, file.persist(&self.manifest).map_err(|error| error.error))?;
        sync_folder(self.folder())
    }
}

/// Moves a finished file to its place. A file that is there already stays; it is only accepted where it is the same.
pub(crate) fn publish(finished: TempPath, place: &Path) -> Result<()> {
    match renameat_with(CWD, &*finished, CWD, place, RenameFlags::NOREPLACE) {
        Ok(()) => {
            // The name is gone, so there is nothing left to remove.
            let _ = finished.keep();
            sync_folder(
                place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")),
            )
        }
        Err(rustix::io::Errno::EXIST) => {
            let there = at(place, sha256::of_file(place))?;
            let ours = at(&finished, sha256::of_file(&finished))?;
            if there == ours { Ok(()) } else { Err(other_file(place, &there, &ours)) }
        }
        // A file system that cannot refuse to overwrite by rename can by link.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            at(place, fs::hard_link(&finished, place))?;
            sync_folder(place.parent().unwrap_or(Path::new(".")))
        }
        Err(error) => at(place, Err(error.into())),
    }
}

pub(crate) fn other_file(place: &Path, there: &str, ours: &str) -> Error {
    Error::OtherFile {
        path: place.to_owned(),
        found: format!("another file (sha256 {there:.8})"),
        expected: format!("this dataset (sha256 {ours:.8})"),
    }
}

fn sync_folder(folder: &Path) -> Result<()> {
    at(folder, File::open(folder).and_then(|folder| folder.sync_all()))
}
