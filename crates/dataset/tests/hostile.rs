//! Malicious files: they are refused within bounded time and memory, and no other file is opened.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

mod fixture;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use corpus::digest::Digest;
use dataset::dataset_file::DatasetReader;
use fixture::{rows, write_dataset, write_dataset_of};
use hdf5::filters::Filter;
use hdf5::types::{FixedUnicode, VarLenUnicode};
use hdf5::{File, Hyperslab};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

/// Time limit, which none of these reads reaches unless it blocks.
const LIMIT: Duration = Duration::from_secs(120);

/// A dataset that was altered.
struct Altered {
    _folder: TempDir,
    path: PathBuf,
}

impl Altered {
    fn by(alter: impl FnOnce(&File, &Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reviews.h5");
        write_dataset(&path, &rows());
        let file = File::open_rw(&path).unwrap();
        alter(&file, folder.path());
        file.close().unwrap();
        Self { _folder: folder, path }
    }

    /// The error, which must come within the time limit.
    #[track_caller]
    fn refused(&self) -> String {
        let (told, hears) = mpsc::channel();
        let path = self.path.clone();
        thread::spawn(move || {
            told.send(DatasetReader::open(&path).map(|_| ()).map_err(|error| error.to_string()))
        });
        let ended = hears.recv_timeout(LIMIT).expect("reading it does not end");
        let said = ended.expect_err("it was taken for a dataset");
        said.strip_prefix(&format!("{}: ", self.path.display())).unwrap_or(&said).to_owned()
    }
}

/// A pipe without a writer: opening it blocks forever.
fn pipe_in(folder: &Path) -> PathBuf {
    let pipe = folder.join("pipe");
    // A system call, because the program `mkfifo` would be a child process, which inherits the locks of files
    // that other tests have open.
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    pipe
}

#[test]
fn links_to_other_files_are_not_followed() {
    for name in ["label", "digests", "vocabulary", "vocabulary/count", "further"] {
        let altered = Altered::by(|file, folder| {
            let _ = file.unlink(name);
            file.link_external(pipe_in(folder).to_str().unwrap(), "/label", name).unwrap();
        });
        let expected =
            format!("{name} is a link to another file, expected a dataset or a group of this file");
        assert!(altered.refused().starts_with(&expected), "{name}: {}", altered.refused());
    }
}

#[test]
fn circular_links_are_not_followed() {
    let to_each_other = Altered::by(|file, _| {
        file.unlink("label").unwrap();
        file.link_soft("/circle", "label").unwrap();
        file.link_soft("/label", "circle").unwrap();
    });
    assert!(to_each_other.refused().contains("is a symbolic link, expected"), "{}", to_each_other.refused());

    let into_itself =
        Altered::by(|file, _| file.group("vocabulary").unwrap().link_hard("/vocabulary", "again").unwrap());
    let expected = "the list of datasets and groups is \"vocabulary/again\" among others";
    assert!(into_itself.refused().starts_with(expected), "{}", into_itself.refused());

    let of_the_whole = Altered::by(|file, _| file.link_hard("/", "again").unwrap());
    let expected = "the list of datasets and groups is \"again\" among others";
    assert!(of_the_whole.refused().starts_with(expected), "{}", of_the_whole.refused());
}

#[test]
fn excessive_links_are_refused_without_visiting_all() {
    let altered = Altered::by(|file, _| {
        (0..10_000).for_each(|n| drop(file.create_group(&format!("group{n}")).unwrap()));
    });
    assert!(altered.refused().starts_with("the list of datasets does not match its digest"));
}

#[test]
fn elements_in_other_files_are_not_read() {
    for name in ["label", "digests"] {
        let in_a_pipe = Altered::by(|file, folder| {
            let pipe = pipe_in(folder);
            file.unlink(name).unwrap();
            let dataset = file.new_dataset::<u8>().shape(3).external(pipe.to_str().unwrap(), 0, 3);
            dataset.create(name).unwrap();
        });
        let virtually = Altered::by(|file, folder| {
            let pipe = pipe_in(folder);
            file.unlink(name).unwrap();
            let all = || Hyperslab::from(..);
            let dataset = file.new_dataset::<u8>().shape(3);
            dataset.virtual_map(pipe.to_str().unwrap(), "label", 3, all(), 3, all()).create(name).unwrap();
        });
        for altered in [in_a_pipe, virtually] {
            let expected = format!("the layout of {name} does not match its digest");
            assert!(altered.refused().starts_with(&expected), "{}", altered.refused());
        }
    }
}

#[test]
fn other_filters_and_impossible_sizes_are_refused() {
    let of = |filters: &[Filter], rows: usize, chunk: usize| {
        Altered::by(|file, _| {
            file.unlink("label").unwrap();
            let column = file.new_dataset::<u8>().shape(rows).chunk(chunk);
            column.set_filters(filters).create("label").unwrap();
        })
    };
    let as_written = [Filter::Shuffle, Filter::Deflate(1), Filter::Fletcher32];
    for altered in [
        of(&[Filter::Shuffle, Filter::NBit, Filter::Fletcher32], 3, 3),
        of(&as_written, usize::MAX >> 2, 3),
        of(&as_written, 1 << 40, u32::MAX as usize),
    ] {
        let refused = altered.refused();
        assert!(refused.starts_with("the layout of label does not match its digest"), "{refused}");
    }

    let table = Altered::by(|file, _| {
        file.unlink("digests").unwrap();
        file.new_dataset::<u8>().shape(1_usize << 50).create("digests").unwrap();
    });
    assert!(table.refused().starts_with("digests does not match its digest"), "{}", table.refused());
}

#[test]
fn variable_length_and_huge_attributes_are_refused() {
    let of_any_length = Altered::by(|file, _| {
        let text: VarLenUnicode =
            file.attr("format").unwrap().read_scalar::<FixedUnicode<32>>().unwrap().parse().unwrap();
        file.delete_attr("format").unwrap();
        file.new_attr::<VarLenUnicode>().create("format").unwrap().write_scalar(&text).unwrap();
    });
    let many = Altered::by(|file, _| {
        file.delete_attr("schema_version").unwrap();
        file.new_attr::<u64>().shape(8_000).create("schema_version").unwrap();
    });
    for altered in [of_any_length, many] {
        assert!(
            altered.refused().starts_with("attribute")
                && altered.refused().contains("does not match its digest"),
            "{}",
            altered.refused()
        );
    }
}

#[test]
fn words_crafted_to_exhaust_memory_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.h5");
    // A word of 80 MB, in a file of about 400 kB.
    write_dataset_of(&path, &[vec![b'a'; 80_000_000]], &[], Digest::default());
    assert!(fs::metadata(&path).unwrap().len() < 1_000_000);

    let refused = Altered { _folder: folder, path }.refused();

    assert!(
        refused.starts_with("the vocabulary is 80000016 bytes in memory, expected at most 67108864"),
        "{refused}"
    );
}

#[test]
fn words_that_share_bytes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty-word.h5");
    write_dataset_of(&path, &[&b"a"[..], b"", b"b"], &[], Digest::default());

    let refused = Altered { _folder: folder, path }.refused();

    assert!(
        refused.starts_with("the end of word 1, which begins at byte 1, is 1, expected more"),
        "{refused}"
    );
}
