//! `trainer report`: converts training folders into one HTML page.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use super::out::check_place;
use crate::arguments::Report;
use crate::error::Result;
use crate::tell::tell;
use report::{PAGE_BEGIN, Run, page};
use runs::training::{put, temporary_beside};

/// Writes the page.
pub fn report(arguments: &Report) -> Result<()> {
    let Report { runs, out } = arguments;
    check_place(out)?;
    check_replaceable(out)?;
    drop(temporary_beside(out)?);
    let mut read = runs.iter().map(|folder| Run::read(folder)).collect::<runs::Result<Vec<_>>>()?;
    name_apart(&mut read);
    put(out, |file| file.write_all(page(&read).as_bytes()))?;
    tell(&format!("the report is in {}", out.display()));
    Ok(())
}

/// An existing report is replaced; any other file is not.
fn check_replaceable(out: &Path) -> Result<()> {
    let mut begin = [0; PAGE_BEGIN.len()];
    match File::open(out).and_then(|mut file| file.read_exact(&mut begin)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(()) if begin == *PAGE_BEGIN.as_bytes() => Ok(()),
        _ => Err(runs::Error::Occupied {
            path: out.to_owned(),
            found: "something else".to_owned(),
            expected: "a free name or a report",
            remedy: "choose another --out".to_owned(),
        }
        .into()),
    }
}

/// Runs with the same name are distinguished by their paths.
fn name_apart(runs: &mut [Run]) {
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    for run in runs {
        if names.iter().filter(|name| **name == run.name).count() > 1 {
            run.name.clone_from(&run.path);
        }
    }
}
