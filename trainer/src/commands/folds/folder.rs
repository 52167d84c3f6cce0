//! The folder of a cross-validation: a local folder, which this process locks, or a prefix in S3. Only rank 0 reads
//! and writes it.

use std::io::Write;
use std::path::{Path, PathBuf};

use ::training::out::{check_force, check_place, check_restarts};
use ::training::remote::{Expected, FoldsPrefix};
use program::location::Location;
use runs::folds::{FOLDS, FoldsRecord, are_folds, check_replaceable, clear, name_of};
use runs::training::{self, Hold, LOCK_WAIT, put};

use super::super::training::Session;
use crate::arguments::Fit;
use crate::error::{Error, Result};
use crate::ranks::restarts;

/// The folder of a cross-validation.
pub(super) struct Folder {
    location: Location,
    /// The path or URL, for messages.
    shown: PathBuf,
    is_replaced: bool,
    /// The prefix, if it is in S3; only on rank 0.
    prefix: Option<FoldsPrefix>,
    /// The lock; only on rank 0.
    _hold: Option<Hold>,
}

impl Folder {
    /// Locks the folder. It must be new, empty or, with --resume or --force, a cross-validation.
    pub(super) fn take(out: &Location, arguments: &Fit, session: &Session) -> Result<Self> {
        let flags = &arguments.training;
        let (mut prefix, mut hold) = (None, None);
        session.ranks().of_rank_0(|| {
            match out {
                Location::Local(folder) => {
                    if flags.force {
                        check_restarts(folder, restarts())?;
                        check_force(folder, "--init-from", arguments.lstm.init_from.as_ref())?;
                    }
                    check_place(folder)?;
                    hold = Some(Hold::take(folder, LOCK_WAIT)?);
                    check_occupant(folder, flags.resume.is_some(), flags.force)?;
                }
                Location::S3(url) => {
                    let expected =
                        if flags.resume.is_some() { Expected::Training } else { Expected::Nothing };
                    prefix = Some(FoldsPrefix::at(url, &flags.storage.options(), expected)?);
                }
            }
            Ok(())
        })?;
        let (location, shown) = (out.clone(), PathBuf::from(out.to_string()));
        Ok(Self { location, shown, is_replaced: flags.force, prefix, _hold: hold })
    }

    /// The path or URL, for messages.
    pub(super) fn shown(&self) -> &Path {
        &self.shown
    }

    /// The training folder of a fold.
    pub(super) fn of_fold(&self, number: u16) -> Location {
        match &self.location {
            Location::Local(folder) => folder.join(name_of(number)).into(),
            Location::S3(url) => Location::S3(url.join(&name_of(number))),
        }
    }

    /// Deletes the cross-validation that --force replaces.
    pub(super) fn clear(&self, session: &Session) -> Result<()> {
        let Location::Local(folder) = &self.location else { return Ok(()) };
        if !self.is_replaced {
            return Ok(());
        }
        session.ranks().of_rank_0(|| Ok(clear(folder)?))
    }

    /// Writes the metrics of all folds.
    pub(super) fn put(&self, record: &FoldsRecord) -> Result<()> {
        let json = record.json()?;
        match (&self.location, &self.prefix) {
            (Location::Local(folder), _) => Ok(put(&folder.join(FOLDS), |file| file.write_all(&json))?),
            (Location::S3(_), Some(prefix)) => Ok(prefix.put(FOLDS, &json)?),
            (Location::S3(url), None) => {
                Err(Error::internal(&format!("{url} is written by another rank than 0")))
            }
        }
    }
}

/// Refuses a folder that is neither empty nor a cross-validation that is resumed or replaced.
fn check_occupant(folder: &Path, is_resumed: bool, is_replaced: bool) -> Result<()> {
    if is_replaced {
        return Ok(check_replaceable(folder)?);
    }
    let names = training::names(folder)?;
    let Some(first) = names.first() else { return Ok(()) };
    let are_folds = are_folds(names.iter().map(String::as_str));
    if are_folds && is_resumed {
        return Ok(());
    }
    let (found, remedy) = match are_folds {
        true => (
            "a cross-validation",
            "resume it with --resume, replace it with --force, or choose another --out",
        ),
        false => (first.as_str(), "choose another --out"),
    };
    Err(runs::Error::occupied(folder, found, "a new name or an empty folder", remedy).into())
}
