//! `trainer report`: converts training folders into one HTML page.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use super::out::check_place;
use crate::arguments::Report;
use crate::error::{Error, Result};
use crate::tell::tell;
use program::place::folder_of;
use report::{PAGE_BEGIN, Run, page};
use runs::saved::is_listed;
use runs::training::{SETTINGS, put, temporary_beside};

/// Writes the page.
pub fn report(arguments: &Report) -> Result<()> {
    let Report { runs, out, .. } = arguments;
    check_place(out)?;
    check_replaceable(out)?;
    drop(temporary_beside(out)?);
    runs.iter().try_for_each(|folder| check_training(folder))?;
    let mut read = runs.iter().map(|folder| Run::read(folder)).collect::<runs::Result<Vec<_>>>()?;
    name_apart(&mut read);
    put(out, |file| file.write_all(page(&read).as_bytes()))?;
    tell(&format!("the report is in {}", out.display()));
    Ok(())
}

/// Refuses a path that is not a training folder.
fn check_training(folder: &Path) -> Result<()> {
    let refused = |found: &str, expected: String| {
        Err(Error::Unexpected { path: folder.to_owned(), found: found.to_owned(), expected })
    };
    let training = "a training folder of `trainer fit` or `trainer pretrain`";
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
        _ => Err(runs::Error::Occupied {
            path: out.to_owned(),
            found: "another file".to_owned(),
            expected: "a new name or a report",
            remedy: "choose another --out".to_owned(),
        }
        .into()),
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
