//! The command `report`: converts training folders into one HTML page.

mod words;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use program::location::Location;
use program::place::folder_of;
use program::temporary;
use report::{PAGE_BEGIN, Run, page};
use runs::folds::{name_of, numbers_in};
use runs::saved::is_listed;
use runs::training::{SETTINGS, put, temporary_beside};
use store::S3Options;

use crate::arguments::Report;
use crate::error::{Error, Result};
use crate::origins;
use crate::out::check_place;
use crate::remote::{self, NewObject};
use crate::tell::tell;

/// Writes the page.
pub fn report(arguments: &Report) -> Result<()> {
    let Report { runs, out, storage, .. } = arguments;
    let s3 = storage.options();
    let place = Place::of(out, &s3)?;
    runs.iter().try_for_each(|run| match run {
        Location::Local(folder) => check_training(folder),
        Location::S3(_) => Ok(()),
    })?;
    let runs = runs.iter().map(|run| expanded(run, &s3)).collect::<Result<Vec<_>>>()?.concat();
    let mut read = runs.iter().map(|run| read_run(run, &s3)).collect::<Result<Vec<_>>>()?;
    if !arguments.origins.is_empty() {
        let (n_found, n_rows) = origins::find(&arguments.origins, &mut read)?;
        tell(&format!("the origins of {n_found} of {n_rows} most wrong rows were found"));
    }
    for (run, place) in read.iter_mut().zip(&runs) {
        words::add(run, place, &arguments.words, &s3)?;
    }
    if !arguments.words.is_empty() && !read.iter().any(Run::is_of_vectors) {
        return Err(Error::setting(
            "--words",
            "set for trainings of other models",
            "a training of `vectors train`",
        ));
    }
    name_apart(&mut read);
    let page = page(&read);
    match place {
        Place::File(path) => put(path, |file| file.write_all(page.as_bytes()))?,
        Place::Object(object) => object.put(page.as_bytes())?,
    }
    tell(&format!("the report is in {out}"));
    Ok(())
}

/// The trainings of a cross-validation, or a training itself.
fn expanded(run: &Location, s3: &S3Options) -> Result<Vec<Location>> {
    let folds: Vec<Location> = match run {
        Location::Local(folder) => {
            let folds = numbers_in(folder).into_iter().map(|number| folder.join(name_of(number)));
            // A fold without settings has not started.
            folds.filter(|fold| fold.join(SETTINGS).exists()).map(Location::from).collect()
        }
        Location::S3(url) => remote::folds_below(url, s3)?.into_iter().map(Location::S3).collect(),
    };
    Ok(if folds.is_empty() { vec![run.clone()] } else { folds })
}

/// Where the page is written, checked before any training is read.
enum Place<'a> {
    File(&'a Path),
    Object(NewObject),
}

impl<'a> Place<'a> {
    fn of(out: &'a Location, s3: &S3Options) -> Result<Self> {
        match out {
            Location::Local(path) => {
                check_place(path)?;
                check_replaceable(path)?;
                drop(temporary_beside(path)?);
                Ok(Self::File(path))
            }
            Location::S3(url) => Ok(Self::Object(NewObject::at(url, s3)?)),
        }
    }
}

/// Reads a training. The files that a report needs are fetched from S3 into a temporary folder.
fn read_run(run: &Location, s3: &S3Options) -> Result<Run> {
    match run {
        Location::Local(folder) => Ok(Run::read(folder)?),
        Location::S3(url) => {
            let tmpdir = std::env::temp_dir();
            let folder = temporary::folder_in(&tmpdir).map_err(|source| Error::io(&tmpdir, source))?;
            remote::fetch_for_report(url, s3, folder.path())?;
            let run = Run::read(folder.path())?;
            Ok(Run { name: url.file_name().to_owned(), path: url.to_string(), ..run })
        }
    }
}

/// Refuses a path that is not a training folder.
fn check_training(folder: &Path) -> Result<()> {
    let refused = |found: &str, expected: String| Err(Error::unexpected(folder.display(), found, expected));
    let training = "a training folder of `trainer`, `ngrams` or `vectors`";
    if !folder.exists() {
        return refused("no such folder", training.to_owned());
    }
    if !folder.is_dir() {
        return refused("a file", training.to_owned());
    }
    if !is_listed(folder) || folder.join(SETTINGS).exists() {
        return Ok(());
    }
    let parent = folder_of(folder);
    let hint = match parent.join(SETTINGS).exists() {
        true => format!("{training}; pass {}", parent.display()),
        false => format!("{training}; an exported model has no record of its training"),
    };
    refused("a model folder", hint)
}

/// Refuses to replace a file that is not a report.
fn check_replaceable(out: &Path) -> Result<()> {
    let mut begin = [0; PAGE_BEGIN.len()];
    match File::open(out).and_then(|mut file| file.read_exact(&mut begin)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(()) if begin == *PAGE_BEGIN.as_bytes() => Ok(()),
        _ => {
            let expected = "a new name or a report";
            Err(runs::Error::occupied(out, "another file", expected, "choose another --out").into())
        }
    }
}

/// Uses the paths of trainings with equal names as their names.
fn name_apart(runs: &mut [Run]) {
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    for run in runs {
        if names.iter().filter(|name| **name == run.name).count() > 1 {
            run.name.clone_from(&run.path);
        }
    }
}
