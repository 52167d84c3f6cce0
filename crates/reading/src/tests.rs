mod arrays;
mod arrow;
mod delimited;
mod encodings;
mod groups;
mod lines;
mod objects;
mod places;
mod tables;

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use ::tests::compressed::{bzip2, gzip, zstd};
use corpus::format::Format;
use corpus::lines::LineReader;
use program::exit::Fails;
use proptest::prelude::*;
use store::S3Options;
use tempfile::TempDir;

use corpus::encoding::UTF_8;
use corpus::lines::LineContent;

use crate::parquet::MAGIC;
use crate::source::Kind;
use crate::{
    Content, Error, FoundTables, InputEntry, Judgement, KeptColumns, Reading, ReadingOptions, Reviews,
    Source, find, ranges,
};

/// Source, offset and content of a line or of a row.
type Owned = (usize, u64, OwnedContent);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OwnedContent {
    Line(Vec<u8>),
    TooLong(u64, bool),
    Row(Option<String>, Option<u8>),
}

impl From<Content<'_>> for OwnedContent {
    fn from(what: Content<'_>) -> Self {
        match what {
            Content::Line(LineContent::Bytes(bytes)) => Self::Line(bytes.to_vec()),
            Content::Line(LineContent::TooLong { bytes, blank }) => Self::TooLong(bytes, blank),
            Content::Row { text, rating } => Self::Row(
                text.map(|text| String::from_utf8_lossy(text).into_owned()),
                rating.rating().map(corpus::entry::Rating::stars),
            ),
        }
    }
}

fn options(threads: usize) -> ReadingOptions {
    ReadingOptions {
        format: Format::default(),
        encoding: UTF_8,
        line_bytes_max: 1 << 20,
        threads: NonZeroUsize::new(threads).unwrap(),
        streams_max: NonZeroUsize::new(threads).unwrap(),
        batches_bytes: 128 << 20,
        columns: KeptColumns::OfFields,
    }
}

/// A folder with these files.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

fn found(inputs: &[PathBuf]) -> Result<Vec<Source>, Error> {
    let inputs: Vec<_> = inputs.iter().map(|input| input.to_str().unwrap().to_owned()).collect();
    find(&inputs, &S3Options::default())
}

fn all_of(folder: &TempDir) -> Vec<Source> {
    found(&[folder.path().to_owned()]).unwrap()
}

/// The entries visited by all threads, in order; or their errors.
fn read(reading: &Reading, threads: usize) -> Result<Vec<Owned>, Vec<Error>> {
    let (all, errors) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut own = Vec::new();
                let ended = reading.each(|entry| {
                    own.push((entry.place, entry.what.into()));
                    Ok::<_, Error>(())
                });
                all.lock().unwrap().extend(own);
                errors.lock().unwrap().extend(ended.err());
            });
        }
    });
    let (mut all, errors) = (all.into_inner().unwrap(), errors.into_inner().unwrap());
    if !errors.is_empty() {
        return Err(errors);
    }
    all.sort_unstable();
    Ok(all.into_iter().map(|(place, what)| (place.source, reading.offset(place), what)).collect())
}

/// The one error among three threads.
fn refused(sources: Vec<Source>, options: &ReadingOptions) -> Error {
    let reading = match Reading::start(sources, options) {
        Ok(reading) => reading,
        Err(error) => return error,
    };
    let mut errors = read(&reading, 3).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

/// The entries of one sequential reader per content.
fn naive(contents: &[&[u8]], line_bytes_max: usize) -> Vec<Owned> {
    let mut all = Vec::new();
    for (source, content) in contents.iter().enumerate() {
        let mut lines = LineReader::new(*content, line_bytes_max);
        while let Some(line) = lines.next_line().unwrap() {
            all.push((source, line.offset, Content::Line(line.content).into()));
        }
    }
    all
}

fn compressed(by: usize, content: &[u8]) -> Vec<u8> {
    match by {
        0 => content.to_vec(),
        1 => gzip(content),
        2 => bzip2(content),
        _ => zstd(content),
    }
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let pieces = vec!["\n", "\r", "\r\n", "\u{FEFF}", "a", " \t  ", "bcdefgh", "\u{E9}", "ijklmnopqrst"];
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat().into_bytes())
}
